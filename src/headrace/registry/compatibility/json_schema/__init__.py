"""Compatibility of JSON Schemas by Confluent's rules: keyword by keyword, with named changes."""
