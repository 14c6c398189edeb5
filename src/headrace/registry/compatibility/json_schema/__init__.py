"""Compatibility of JSON Schemas by Confluent's rules: keyword by keyword, with named changes."""

from headrace.registry.compatibility.json_schema.comparison import differences, incompatibilities

__all__ = ["differences", "incompatibilities"]
