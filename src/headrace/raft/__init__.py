"""KRaft: how the controllers of a cluster agree on one metadata log."""
