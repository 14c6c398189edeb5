"""Kafka over HTTP: versions 2 and 3 of Confluent's REST proxy, streams and webhooks."""
