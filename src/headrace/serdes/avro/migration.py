"""Migrates data to a schema that cannot read it: decode, transform each value, encode.

If the new schema can read the old data, no transform is needed: values are projected.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO, Final, TypeVar

from headrace.serdes.avro.codec import decoder_of, encode
from headrace.serdes.avro.containers import ContainerReader, ContainerWriter
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.payload_errors import PayloadError

DROP: Final = object()
"""Returned by a transform to drop a value."""

Transform = Callable[[Any], Any]
T = TypeVar("T")


class MigrationFailed(PayloadError):
    """A value could not be migrated; the message contains its index, from 0, and the reason."""


def migrate_payloads(
    payloads: Iterable[bytes],
    old: AvroSchema,
    new: AvroSchema,
    transform: Transform | None = None,
) -> Iterator[bytes]:
    """Convert payloads of the old schema to payloads of the new one."""
    decoder = decoder_of(old, new if transform is None else None)
    return _moved(map(decoder.read_whole, payloads), transform, partial(encode, new))


def migrate_values(values: Iterable[Any], new: AvroSchema, transform: Transform) -> Iterator[Any]:
    """Transform values, validate them against the new schema and fill in its defaults."""
    decoder = decoder_of(new, None)
    return _moved(values, transform, lambda value: decoder.read_whole(encode(new, value)))


def migrate_container(
    source: BinaryIO,
    target: BinaryIO,
    new: AvroSchema,
    transform: Transform | None = None,
    *,
    codec: str | None = None,
) -> int:
    """Write a container file of the new schema; return the number of values."""
    reader = ContainerReader(source, new if transform is None else None)
    writer = ContainerWriter(target, new, codec=codec or reader.header.codec)
    count = sum(1 for _ in _moved(reader, transform, writer.write))
    writer.flush()
    return count


def _moved(
    values: Iterable[Any], transform: Transform | None, finish: Callable[[Any], T]
) -> Iterator[T]:
    number = 0
    try:
        for value in values:
            moved = value if transform is None else transform(value)
            if moved is not DROP:
                yield finish(moved)
            number += 1
    except PayloadError as error:
        raise MigrationFailed(f"value {number}: {error}") from error
