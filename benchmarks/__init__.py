"""Costs of a node: Headrace beside Apache Kafka, with the same clients on the same machine."""
