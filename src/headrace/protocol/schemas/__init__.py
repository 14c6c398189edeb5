"""Kafka's messages, one module per API with its request, its response and their parts."""
