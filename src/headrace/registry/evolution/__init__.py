"""Changes between two schemas, the readers that they break, and advice."""
