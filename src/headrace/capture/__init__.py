"""Writes topics into files by windows of time and size, without Spark."""
