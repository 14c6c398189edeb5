"""Corrections of the past: replay, backfill and redrive."""
