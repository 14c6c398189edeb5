"""What the sink refuses, and why."""

from headrace.errors import HeadraceError


class SinkError(HeadraceError):
    """The sink cannot write; the message says what to do."""


class WrongOption(SinkError):
    """An option of the sink is missing or has a value that it cannot have."""


class WrongColumns(SinkError):
    """The DataFrame's columns do not make records."""


class Fenced(SinkError):
    """Another attempt of this task, or another run of this query, has taken over."""


class OtherTasks(SinkError):
    """A batch that was written in part comes again, cut into other tasks."""
