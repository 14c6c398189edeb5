"""Shared by all coordinators, sans-IO: effects of decisions, their records and timers."""
