"""What the lines of `headrace produce` mean: keys, values, nulls, and what all records share."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from headrace.cli.record_text import parse_json_record
from headrace.client.bulk import RecordProducer
from headrace.client.records import OutgoingRecord
from headrace.errors import HeadraceError

Pair = tuple[bytes | None, bytes | None]
Item = TypeVar("Item")


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How a line becomes a record."""

    key_separator: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0
    partition: int = -1
    null_marker: bytes | None = None
    from_json: bool = False
    repartition: bool = False
    """Whether the partition that a JSON line names is left to the key."""

    @property
    def is_bare(self) -> bool:
        """Whether records are no more than values."""
        return (
            self.key is None
            and self.key_separator is None
            and not self.headers
            and not self.timestamp_ms
        )


def send_lines(producer: RecordProducer, shape: Shape, lines: list[bytes]) -> None:
    """Send lines as records by the quickest way that their shape allows.

    A line that cannot be read is an error, after everything before it was sent.
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


def record_of(line: bytes, shape: Shape) -> OutgoingRecord:
    """The record of a JSON line; what the command line says comes before what the line says."""
    found = parse_json_record(line)
    return found._replace(
        key=found.key if shape.key is None else shape.key,
        headers=found.headers + shape.headers,
        timestamp_ms=shape.timestamp_ms or found.timestamp_ms,
        partition=_partition(found.partition, shape),
    )


def _partition(found: int, shape: Shape) -> int:
    if shape.partition >= 0 or shape.repartition:
        return shape.partition
    return found


def pair_of(line: bytes, shape: Shape) -> Pair:
    """Key and value of one line."""
    if shape.key_separator is None:
        return shape.key, None if line == shape.null_marker else line
    key, separator, value = line.partition(shape.key_separator)
    if not separator:
        # Sent without a key it would land on any partition, and nobody would notice.
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
        # `extend` keeps what it took before a line raised.
        if items:
            send(items)


def _nulled(lines: Iterable[bytes], marker: bytes | None) -> list[bytes | None]:
    if marker is None:
        return list(lines)
    return [None if line == marker else line for line in lines]


def _shown(line: bytes) -> str:
    return repr(line[:60].decode(errors="replace")) + ("..." if len(line) > 60 else "")
