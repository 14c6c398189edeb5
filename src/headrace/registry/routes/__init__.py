"""Confluent's REST interface: paths, parameters, answers."""
