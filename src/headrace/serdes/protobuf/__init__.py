"""Protobuf schemas and messages: text to descriptors and back, bytes and JSON to messages."""
