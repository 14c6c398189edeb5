"""Errors of the sink."""

from headrace.errors import HeadraceError


class SinkError(HeadraceError):
    """The sink cannot write; the message gives the remedy."""


class WrongOption(SinkError):
    """An option of the sink is missing or invalid."""


class WrongColumns(SinkError):
    """The DataFrame's columns do not make records."""


class Fenced(SinkError):
    """Another attempt of this task, or another run of this query, has taken over."""


class OtherTasks(SinkError):
    """A partly written batch is repeated with another number of tasks."""
