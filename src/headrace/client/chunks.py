"""Chunks: large records as several ordinary ones, in this module only as values.

A chunk has the key, the timestamp and the headers of its record, and four headers of its own. The
chunks of a record are consecutive among those of their session, in one partition. A session is one
caller of a producer at a time, so a new record of a session proves that the previous one ended.

Records are joined at the offset of their last chunk. Other records may lie between the chunks, so
a committed offset may be behind records that were processed. `Joiner.hold` returns that offset, and
the commit's metadata has the offset behind the last processed record.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from confluent_kafka import Message, TopicPartition

from headrace.client.progress import Place, offset_of, place_of
from headrace.errors import HeadraceError

ID = "headrace.chunk.id"
INDEX = "headrace.chunk.index"
COUNT = "headrace.chunk.count"
SIZE = "headrace.chunk.size"
_NAMES = frozenset({ID, INDEX, COUNT, SIZE})
_DIGITS_MAX = 12
_PROCESSED = "headrace.chunks.processed="


class ChunkedRecordTooLarge(HeadraceError):
    """Incomplete records need more memory than `chunk.memory`; `message` is the chunk.

    Give the consumer more memory, or poll again to continue without the record.
    """

    def __init__(self, text: str, message: Message) -> None:
        super().__init__(text)
        self.message = message


class Dropped(NamedTuple):
    """A record whose chunks will not all arrive."""

    place: Place
    offset: int
    reason: str


class Sessions:
    """Names the chunked records of one producer.

    A session is taken while a record is sent, so concurrent callers have different ones.
    """

    def __init__(self) -> None:
        self._idle: list[tuple[str, int]] = []

    def take(self) -> tuple[str, int]:
        """Return a session and the number of its next record."""
        return self._idle.pop() if self._idle else (uuid4().hex, 0)

    def give_back(self, session: tuple[str, int]) -> None:
        name, number = session
        self._idle.append((name, number + 1))


def split(
    value: bytes, size_max: int, session: tuple[str, int], headers: Any
) -> Iterator[tuple[bytes, list[tuple[str, Any]]]]:
    """Yield the chunks of a value, each with its headers."""
    own = list(headers.items() if isinstance(headers, dict) else headers or ())
    count = -(-len(value) // size_max)
    name, number = session
    for index in range(count):
        described = [
            (ID, f"{name}-{number}"),
            (INDEX, str(index)),
            (COUNT, str(count)),
            (SIZE, str(len(value))),
        ]
        yield value[index * size_max : (index + 1) * size_max], [*own, *described]


class Chunk(NamedTuple):
    """The headers of a chunk."""

    session: str
    number: int
    place: int
    """The index of the chunk in the record."""
    total: int
    size_bytes: int


def chunk_of(message: Message) -> Chunk | None:
    """Return what a message is a chunk of; None for any other record, also with odd headers."""
    headers = message.headers()
    if not headers:
        return None
    listed: Any = headers
    found = {name: value for name, value in listed if name in _NAMES}
    if len(found) < len(_NAMES):
        return None
    session, _, number = _text(found[ID]).rpartition("-")
    texts = [number, *(_text(found[name]) for name in (INDEX, COUNT, SIZE))]
    if not session or not all(map(_is_number, texts)):
        return None
    record, place, total, size_bytes = map(int, texts)
    return Chunk(session, record, place, total, size_bytes) if place < total <= size_bytes else None


def own_headers(headers: Any) -> list[tuple[str, Any]]:
    """Return the headers of the record without those of its chunk."""
    return [header for header in headers if header[0] not in _NAMES]


def processed_by(metadata: str | None) -> int | None:
    """Return the offset up to which a partition was processed, if the metadata has one."""
    if not metadata or not metadata.startswith(_PROCESSED):
        return None
    text = metadata.removeprefix(_PROCESSED)
    return int(text) if text.isdecimal() else None


@dataclass(slots=True)
class _Incomplete:
    """A record with some of its chunks."""

    chunk: Chunk
    first_offset: int
    pieces: list[bytes] = field(default_factory=list)
    left_bytes: int = 0
    timestamp_ms: int = 0
    arrived_ms: int = 0


class Joiner:
    """Joins the chunks that one consumer reads, in bounded memory.

    An incomplete record is dropped when its session sends another chunk than the next one. A
    record of a dead producer is dropped when its partition has a record that is newer by the
    timeout, by the timestamps and by the time of arrival. A slow consumer has only late arrivals,
    and old events have only old timestamps, so neither loses a record.
    """

    def __init__(self, memory_bytes_max: int, timeout_ms: int) -> None:
        self.memory_bytes_max = memory_bytes_max
        self.dropped: list[Dropped] = []
        """Records dropped since the caller last cleared the list."""
        self._timeout_ms = timeout_ms
        self._reserved_bytes = 0
        self._incomplete: dict[tuple[Place, str], _Incomplete] = {}
        self._first_offsets: dict[tuple[Place, int], int] = {}
        self._processed: dict[Place, int] = {}

    def has_work(self, batch: Sequence[Message]) -> bool:
        """Return whether a batch needs `join`, record by record."""
        if self._first_offsets:
            batched = {(place_of(message), offset_of(message)) for message in batch}
            kept = {
                place: first for place, first in self._first_offsets.items() if place in batched
            }
            self._first_offsets = kept
        if self._incomplete or self._processed:
            return True
        # The common cases first: no headers at all, and headers without a chunk's.
        found: Any = list(filter(None, map(Message.headers, batch)))
        return any(name == ID for headers in found for name, _ in headers)

    def join(self, message: Message, now_ms: int) -> Message | None:
        """Return a whole record; None for a chunk, or for a record that was processed before."""
        place = place_of(message)
        self._expire(place, message, now_ms)
        chunk = chunk_of(message)
        whole = message if chunk is None else self._add(place, chunk, message, now_ms)
        if whole is None:
            return None
        return None if self._is_processed(place, offset_of(whole)) else whole

    def skip_processed(self, place: Place, processed: int) -> None:
        """Skip whole records below an offset, because they were processed before a restart."""
        self._processed[place] = processed

    def hold(self, place: Place, next_offset: int) -> int:
        """Return the offset to commit when everything below `next_offset` is processed."""
        firsts = [
            record.first_offset for (where, _), record in self._incomplete.items() if where == place
        ]
        for (where, last), first in self._first_offsets.items():
            if where == place and last >= next_offset:
                firsts.append(first)
        return min([next_offset, *firsts])

    def commit_points(self, offsets: Mapping[Place, int]) -> list[TopicPartition]:
        """Return the offsets to commit, with metadata where processed records come after them."""
        points = []
        for place, processed in offsets.items():
            held = self.hold(place, processed)
            if held < processed:
                points.append(TopicPartition(*place, held, f"{_PROCESSED}{processed}"))
            else:
                points.append(TopicPartition(*place, processed))
        return points

    def drop(self, places: Collection[Place]) -> None:
        """Drop the state of partitions that are revoked or continue at another offset."""
        for key in [key for key in self._incomplete if key[0] in places]:
            self._forget(key)
        for span in [span for span in self._first_offsets if span[0] in places]:
            del self._first_offsets[span]
        for place in places:
            self._processed.pop(place, None)

    def _add(self, place: Place, chunk: Chunk, message: Message, now_ms: int) -> Message | None:
        """Add a chunk; return its message with the whole value if it is the last one."""
        key = place, chunk.session
        known = self._incomplete.get(key)
        if known is not None and known.chunk.number == chunk.number:
            if chunk.place < len(known.pieces):
                return None  # A copy of the chunk, for example by a mirror.
        elif known is not None:
            self._give_up(key, "its producer went on to the next record")
            known = None
        if known is None:
            if chunk.place:
                self._note_missing_start(place, chunk, message)
                return None
            known = self._begin(key, chunk, message)
        piece = message.value() or b""
        if chunk.place != len(known.pieces) or chunk._replace(place=0) != known.chunk or not piece:
            self._give_up(key, "a chunk is missing")
            return None
        known.pieces.append(piece)
        known.left_bytes -= len(piece)
        known.timestamp_ms, known.arrived_ms = message.timestamp()[1], now_ms
        return self._completed(key, known, message)

    def _begin(self, key: tuple[Place, str], chunk: Chunk, message: Message) -> _Incomplete:
        self._make_room(chunk, message)
        self._reserved_bytes += chunk.size_bytes
        begun = _Incomplete(chunk, offset_of(message), left_bytes=chunk.size_bytes)
        self._incomplete[key] = begun
        return begun

    def _completed(
        self, key: tuple[Place, str], known: _Incomplete, message: Message
    ) -> Message | None:
        is_last = len(known.pieces) == known.chunk.total
        if known.left_bytes < 0 or is_last != (known.left_bytes == 0):
            self._give_up(key, "its chunks have another size than their headers")
            return None
        if not is_last:
            return None
        self._first_offsets[key[0], offset_of(message)] = known.first_offset
        self._forget(key)
        message.set_value(b"".join(known.pieces))
        # A record that was sent without headers is read without a list.
        message.set_headers(own_headers(message.headers()) or None)  # type: ignore[arg-type]
        return message

    def _make_room(self, chunk: Chunk, message: Message) -> None:
        """Drop records that are old by their timestamps; fail if that is not enough."""
        needed = self._reserved_bytes + chunk.size_bytes - self.memory_bytes_max
        timestamp_ms = message.timestamp()[1]
        for key, record in list(self._incomplete.items()):
            if needed > 0 and timestamp_ms - record.timestamp_ms > self._timeout_ms:
                needed -= record.chunk.size_bytes
                self._give_up(key, "it is older than chunk.timeout.ms and its memory is needed")
        if needed > 0:
            place = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
            raise ChunkedRecordTooLarge(
                f"{place}: a record of {chunk.size_bytes} bytes in chunks, with"
                f" {self._reserved_bytes} bytes of other incomplete records, exceeds chunk.memory"
                f" ({self.memory_bytes_max})",
                message,
            )

    def _expire(self, place: Place, message: Message, now_ms: int) -> None:
        if not self._incomplete:
            return
        timestamp_ms = message.timestamp()[1]
        for key, record in list(self._incomplete.items()):
            age_ms = min(timestamp_ms - record.timestamp_ms, now_ms - record.arrived_ms)
            if key[0] == place and age_ms > self._timeout_ms:
                self._give_up(key, "no chunk arrived within chunk.timeout.ms")

    def _is_processed(self, place: Place, offset: int) -> bool:
        processed = self._processed.get(place)
        if processed is None:
            return False
        if offset >= processed:
            del self._processed[place]
        return offset < processed

    def _note_missing_start(self, place: Place, chunk: Chunk, message: Message) -> None:
        """Report a record without a beginning once, by its last chunk."""
        if chunk.place == chunk.total - 1:
            reason = "its first chunks were not read"
            self.dropped.append(Dropped(place, offset_of(message), reason))

    def _give_up(self, key: tuple[Place, str], reason: str) -> None:
        self.dropped.append(Dropped(key[0], self._incomplete[key].first_offset, reason))
        self._forget(key)

    def _forget(self, key: tuple[Place, str]) -> None:
        self._reserved_bytes -= self._incomplete.pop(key).chunk.size_bytes


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= _DIGITS_MAX
