"""The topic `_schemas`: created, read, and written by one instance at a time."""
