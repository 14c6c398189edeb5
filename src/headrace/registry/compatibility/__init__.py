"""Compatibility of schemas, type by type, and the levels built on it."""
