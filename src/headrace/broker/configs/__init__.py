"""Configs at run time: their layers, the effective configs of topics, and the loggers."""
