"""Drivers that run flows and views once or until stopped, and restart failed ones."""
