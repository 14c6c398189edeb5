"""Metrics of the node and its clients, under Kafka's names."""
