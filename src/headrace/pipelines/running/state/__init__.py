"""The files of a pipeline next to its tables."""
