"""Avro payloads."""
