"""Declarations of a pipeline: SQL, Python and pipeline.toml, read into the model."""
