"""Moves data to a schema that cannot read it: read the old, transform each value, write the new.

Where the new schema can read the old data, no transform is needed: values are projected.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO, Final, TypeVar

from headrace.serdes.avro.codec import decoder_of, encode
from headrace.serdes.avro.containers import ContainerReader, ContainerWriter
from headrace.serdes.avro.errors import AvroError
from headrace.serdes.avro.schema import AvroSchema

DROP: Final = object()
"""What a transform returns for a value that is not to be moved."""

Transform = Callable[[Any], Any]
T = TypeVar("T")


class MigrationFailed(AvroError):
    """A value could not be moved; the message says the how-manieth, from 0, and why."""


def migrate_payloads(
    payloads: Iterable[bytes],
    old: AvroSchema,
    new: AvroSchema,
    transform: Transform | None = None,
) -> Iterator[bytes]:
    """Payloads of the old schema as those of the new."""
    decoder = decoder_of(old, new if transform is None else None)
    return _moved(map(decoder.read_whole, payloads), transform, partial(encode, new))


def migrate_values(values: Iterable[Any], new: AvroSchema, transform: Transform) -> Iterator[Any]:
    """Values, each transformed and found to fit the new schema, with its defaults filled in."""
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
    """Write a container file of the new schema; returns how many values it has."""
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
    except AvroError as error:
        raise MigrationFailed(f"value {number}: {error}") from error
