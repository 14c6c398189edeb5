"""Decisions about topics, brokers, configs and features, and the shell that carries them out."""
