"""Typed settings under Kafka's own property names."""
