"""Materialized and merged views."""
