"""Records as our own code passes them around, before and after confluent-kafka."""

from collections.abc import Sequence
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes | None]]


class OutgoingRecord(NamedTuple):
    """One record to send; a time of 0 means now, and partition -1 lets the key decide."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0
    partition: int = -1


class ReadRecord(NamedTuple):
    """A record as a reader sees it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
