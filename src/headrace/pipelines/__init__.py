"""Pipelines on Spark: what a pipeline's files declare, and what runs it."""
