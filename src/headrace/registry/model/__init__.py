"""The records of a registry and the state that they replay to."""
