"""Serializers and deserializers backed by a schema registry, for confluent-kafka and our client."""
