"""Columns of the values in payloads, built by compiled code."""
