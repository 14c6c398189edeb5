"""Compaction of logs: the choice of logs, the process that cleans them, and their batches."""
