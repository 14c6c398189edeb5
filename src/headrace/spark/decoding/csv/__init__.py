"""CSV payloads."""
