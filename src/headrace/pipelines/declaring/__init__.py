"""What a pipeline's files say: SQL, Python and pipeline.toml, read into the model."""
