"""Serializers and deserializers by a schema registry, for confluent-kafka and for our client."""
