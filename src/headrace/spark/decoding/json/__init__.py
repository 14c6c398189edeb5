"""JSON payloads."""
