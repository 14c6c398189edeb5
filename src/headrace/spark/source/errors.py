"""Errors of the source; each message gives the remedy."""

from headrace.errors import HeadraceError


class SourceError(HeadraceError):
    """The source cannot continue."""


class InvalidOption(SourceError, ValueError):
    """An option that is unknown, invalid, or contradicts another."""


class DataLost(SourceError):
    """Records were deleted before they could be read."""


class TopicRecreated(SourceError):
    """A topic was deleted and recreated, so its offsets refer to other records."""


class PlanOutdated(TopicRecreated):
    """A recreated topic that the query may read; a retry plans for the new topic."""


class DamagedRecords(SourceError):
    """Damaged records."""
