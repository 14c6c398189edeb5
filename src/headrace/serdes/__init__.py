"""Schemas and what they encode: Avro, JSON Schema, Protobuf, and the serializers of clients."""
