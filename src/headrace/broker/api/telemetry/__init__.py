"""The APIs by which clients push their own metrics (KIP-714)."""
