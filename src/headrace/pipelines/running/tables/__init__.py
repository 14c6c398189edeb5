"""The tables of a run: creation, properties, upkeep and generations."""
