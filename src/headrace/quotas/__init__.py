"""Quotas: how much a client may use, and how long it is held back; values in, values out."""
