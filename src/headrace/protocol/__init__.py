"""Bytes to messages and back: Kafka's wire protocol and record formats, without any I/O."""
