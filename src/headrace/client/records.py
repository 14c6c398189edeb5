"""Records before and after confluent-kafka."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

Headers = Sequence[tuple[str, bytes | None]]


class OutgoingRecord(NamedTuple):
    """A record to send; time 0 means now, and partition -1 leaves the choice to the key."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0
    partition: int = -1


class ProducerRecord(NamedTuple):
    """A record as it was passed to `send`."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Any = None
    timestamp_ms: int = 0
    partition: int | None = None


class RecordMetadata(NamedTuple):
    """The place of an acknowledged record; with `acks=0` the offset is unknown and -1."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class ReadRecord(Protocol):
    """A record as it is read, in the shape of confluent-kafka's messages."""

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def timestamp(self) -> tuple[int, int]: ...
    def key(self) -> Any: ...
    def value(self) -> Any: ...
    def headers(self) -> Any: ...
