"""Whether data of one schema can be read by another, type by type, and the levels built on it."""
