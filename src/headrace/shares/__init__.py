"""Share groups: the state of share partitions and its coordinator."""
