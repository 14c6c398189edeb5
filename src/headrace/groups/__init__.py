"""Groups of consumers, their assignments and their committed offsets."""
