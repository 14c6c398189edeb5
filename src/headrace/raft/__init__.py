"""The replicated metadata log: its files, its epochs, and who leads it."""
