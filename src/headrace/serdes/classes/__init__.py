"""Schemas from Python classes, and Python classes from schemas."""

from headrace.serdes.classes.model import Inexpressible
from headrace.serdes.classes.naming import Flavour
from headrace.serdes.classes.wire import Wire, named

__all__ = ["Flavour", "Inexpressible", "Wire", "named"]
