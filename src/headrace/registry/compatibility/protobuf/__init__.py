"""Compatibility of Protobuf schemas by Confluent's rules."""
