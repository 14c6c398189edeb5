"""Connections between the nodes of a cluster."""
