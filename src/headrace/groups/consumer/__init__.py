"""Consumer groups (KIP-848), and their migration from and to the classic protocol."""
