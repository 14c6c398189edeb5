"""Spark and Kafka without jars: a source, a sink, sessions, and what workers need."""
