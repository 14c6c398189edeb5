"""What can go wrong between a topic and Spark, each with what to do about it."""

from headrace.errors import HeadraceError


class SourceError(HeadraceError):
    """The source cannot go on; the message says why, and what to do."""


class InvalidOption(SourceError, ValueError):
    """An option that does not exist here, contradicts another, or has an impossible value."""


class DataLost(SourceError):
    """Records were deleted before they could be read."""


class TopicRecreated(SourceError):
    """A topic was deleted and made again: its offsets mean other records now."""


class PlanOutdated(TopicRecreated):
    """The same where going on is allowed: a second try has a plan of the new topic."""


class DamagedRecords(SourceError):
    """Bytes that are no records, or not those that their producer sent."""
