"""Records as our own code passes them around, before and after confluent-kafka."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

Headers = Sequence[tuple[str, bytes | None]]


class OutgoingRecord(NamedTuple):
    """One record to send; a time of 0 means now, and partition -1 lets the key decide."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0
    partition: int = -1


class ProducerRecord(NamedTuple):
    """A record as it was given to `send`, before anything was done to it."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Any = None
    timestamp_ms: int = 0
    partition: int | None = None


class RecordMetadata(NamedTuple):
    """Where an acknowledged record lies; with `acks=0` nobody says its offset, which is then -1."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class ReadRecord(Protocol):
    """A record as a reader sees it, in the shape of confluent-kafka's messages."""

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def timestamp(self) -> tuple[int, int]: ...
    def key(self) -> Any: ...
    def value(self) -> Any: ...
    def headers(self) -> Any: ...
