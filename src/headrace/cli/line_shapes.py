"""The input of `headrace produce`: lines in lists, and their formats: keys, values, nulls."""

import os
import select
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from headrace.cli.record_text import parse_json_record
from headrace.client.bulk import RecordProducer
from headrace.client.records import OutgoingRecord
from headrace.errors import HeadraceError

Pair = tuple[bytes | None, bytes | None]
Item = TypeVar("Item")

CHUNK_BYTES = 1 << 20


class LineShape(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that turn a line into a record."""

    key_separator: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0
    partition: int = -1
    null_marker: bytes | None = None
    from_json: bool = False
    repartition: bool = False
    """Ignore the partition of a JSON line, and let the key choose."""

    @property
    def is_bare(self) -> bool:
        """Return whether records consist of a value only."""
        return (
            self.key is None
            and self.key_separator is None
            and not self.headers
            and not self.timestamp_ms
        )


def send_lines(producer: RecordProducer, shape: LineShape, lines: list[bytes]) -> None:
    """Send lines as records by the fastest call that their format allows.

    An invalid line raises an error after all lines before it have been sent.
    """
    if shape.from_json:
        _send_each(lines, lambda line: record_of(line, shape), producer.send)
    elif shape.is_bare:
        producer.send_values(_nulled(lines, shape.null_marker), shape.partition)
    else:
        _send_each(
            lines,
            lambda line: pair_of(line, shape),
            lambda pairs: producer.send_pairs(
                pairs, shape.partition, shape.headers, shape.timestamp_ms
            ),
        )


class LineSplitter:
    """Splits chunks into lines; an unfinished last line is kept for the next chunk."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def push(self, chunk: bytes) -> list[bytes]:
        """Return the lines completed by this chunk, without their newlines."""
        end = chunk.find(b"\n")
        if end < 0:
            # Collect the parts: joining each time costs quadratic time for a line over many chunks.
            self._rest.append(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._rest:
            lines[0] = b"".join([*self._rest, lines[0]])
        last = lines.pop()
        self._rest = [last] if last else []
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line if the stream does not end with a newline."""
        last = b"".join(self._rest)
        self._rest = []
        return [last] if last else []


def read_lines(
    descriptor: int, idle: Callable[[], None], *, interval_s: float = 0.5
) -> Iterator[list[bytes]]:
    """Yield lists of lines as they arrive; call `idle` periodically while none arrive."""
    splitter = LineSplitter()
    while True:
        if not select.select([descriptor], [], [], interval_s)[0]:
            idle()
            continue
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            break
        if lines := splitter.push(chunk):
            yield lines
    if lines := splitter.finish():
        yield lines


def record_of(line: bytes, shape: LineShape) -> OutgoingRecord:
    """Build the record of a JSON line; options of the command line override the line."""
    found = parse_json_record(line)
    return found._replace(
        key=found.key if shape.key is None else shape.key,
        headers=found.headers + shape.headers,
        timestamp_ms=shape.timestamp_ms or found.timestamp_ms,
        partition=_partition(found.partition, shape),
    )


def _partition(found: int, shape: LineShape) -> int:
    if shape.partition >= 0 or shape.repartition:
        return shape.partition
    return found


def pair_of(line: bytes, shape: LineShape) -> Pair:
    """Split one line into key and value."""
    if shape.key_separator is None:
        return shape.key, None if line == shape.null_marker else line
    key, separator, value = line.partition(shape.key_separator)
    if not separator:
        # Without a key the record would silently go to any partition.
        raise HeadraceError(f"no key separator {shape.key_separator.decode()!r} in {_shown(line)}")
    marker = shape.null_marker
    return (None if key == marker else key, None if value == marker else value)


def _send_each(
    lines: list[bytes], convert: Callable[[bytes], Item], send: Callable[[list[Item]], None]
) -> None:
    items: list[Item] = []
    try:
        items.extend(map(convert, lines))
    finally:
        # `extend` keeps the records built before a line raised.
        if items:
            send(items)


def _nulled(lines: Iterable[bytes], marker: bytes | None) -> list[bytes | None]:
    if marker is None:
        return list(lines)
    return [None if line == marker else line for line in lines]


def _shown(line: bytes) -> str:
    return repr(line[:60].decode(errors="replace")) + ("..." if len(line) > 60 else "")
