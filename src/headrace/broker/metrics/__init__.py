"""Figures about the node and its clients: gathered, named as Kafka names them, served."""
