"""Queries of a pipeline as DataFrames: names, topics and change events resolved for Spark."""
