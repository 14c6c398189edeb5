"""The topic `_schemas`: made, read, written to by one instance at a time, and kept as state."""
