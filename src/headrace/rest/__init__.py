"""Kafka over HTTP, by the interfaces of Confluent's REST proxy, versions 2 and 3, and push."""
