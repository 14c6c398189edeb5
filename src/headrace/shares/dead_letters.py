"""Dead letters: record, group, time and reason of a rejected record (KIP-1191)."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headrace.protocol.batches import HEADER_SIZE, Record, build_batch
from headrace.protocol.records import Headers

PREFIX = "__dlq.errors."
_NUMBERS_BYTES = 32  # Maximum size of the lengths, deltas and counts of a record.
_LENGTH_BYTES = 5


class Origin(NamedTuple):
    """The place of a rejected record."""

    group_id: str
    topic: str
    partition: int


def dead_letter(
    origin: Origin,
    offset: int,
    delivery_count: int,
    delivery_count_limit: int,
    now_ms: int,
    record: Record | None,
) -> Record:
    """The dead letter of one record; with the record itself if the group wants a copy.

    Headers of an earlier dead letter are dropped, so that they are not mistaken for this one's.
    """
    limit_reached = delivery_count >= delivery_count_limit
    facts: Headers = (
        (PREFIX + "topic", origin.topic.encode()),
        (PREFIX + "partition", b"%d" % origin.partition),
        (PREFIX + "offset", b"%d" % offset),
        (PREFIX + "group", origin.group_id.encode()),
        (PREFIX + "delivery.count", b"%d" % delivery_count),
        (
            PREFIX + "message",
            b"The delivery count limit was reached."
            if limit_reached
            else b"The record was rejected by a member of the group.",
        ),
    )
    if record is None:
        return Record(0, now_ms, None, None, facts)
    own = tuple(header for header in record.headers if not header[0].startswith(PREFIX))
    return Record(0, now_ms, record.key, record.value, own + facts)


def letter_batches(letters: Iterable[Record], size_max: int) -> Iterator[bytearray]:
    """Return letters as batches of a valid size; a letter that is too large gets no copy."""
    batch: list[Record] = []
    size = HEADER_SIZE
    for letter in letters:
        letter_size = _size_of(letter)
        if HEADER_SIZE + letter_size > size_max:
            facts = tuple(header for header in letter.headers if header[0].startswith(PREFIX))
            letter = Record(0, letter.timestamp, None, None, facts)
            letter_size = _size_of(letter)
        if batch and size + letter_size > size_max:
            yield build_batch(batch)
            batch, size = [], HEADER_SIZE
        batch.append(Record(len(batch), letter.timestamp, letter.key, letter.value, letter.headers))
        size += letter_size
    if batch:
        yield build_batch(batch)


def _size_of(letter: Record) -> int:
    """An upper bound of the letter's size in a batch."""
    contents = [letter.key, letter.value]
    for name, content in letter.headers:
        contents += [name.encode(), content]
    return _NUMBERS_BYTES + sum(len(content or b"") + _LENGTH_BYTES for content in contents)
