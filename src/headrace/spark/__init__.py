"""Spark and Kafka without jars: a source, a sink, sessions, and what workers need."""

from headrace.spark.launching.pickled_package import with_package

__all__ = ["with_package"]
