"""The doors to the outside world: the only modules that touch the machine."""
