"""Who consumes what: groups of consumers, their assignments and their committed offsets."""
