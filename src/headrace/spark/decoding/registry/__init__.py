"""Payloads in the wire format of a schema registry."""
