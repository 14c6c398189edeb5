"""Moves data to a new schema: topics of any type, and Avro's container files."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.python_objects import load_object
from headrace.cli.schema_sources import Found
from headrace.client.producer import Producer
from headrace.client.reader import RecordReader, Start
from headrace.errors import HeadraceError
from headrace.serdes.avro.migration import DROP, Transform, migrate_container
from headrace.serdes.avro.parsing import parse
from headrace.serdes.registry_client import NewSchema
from headrace.serdes.schemas import SchemaType
from headrace.serdes.wire_format import header_name

if TYPE_CHECKING:
    from confluent_kafka import Message

    from headrace.serdes.clients.deserializer import SchemaDeserializer
    from headrace.serdes.clients.registry import Registry
    from headrace.serdes.clients.serializer import SchemaSerializer


SILENCE_S = 60.0


class CannotMove(HeadraceError):
    """Data that could not be moved; the message says which, and why."""


def loaded_transform(text: str) -> Transform:
    """The function that an option names; what it raises is told with its name."""
    function = load_object(text)
    if not callable(function):
        raise CannotMove(f"{text} is no function")

    def transform(value: Any) -> Any:
        try:
            return function(value)
        except Exception as error:
            raise CannotMove(f"{text} raised {type(error).__name__}: {error}") from error

    return transform


def move_container(source: Path, target: Path, new: Found, transform: Transform | None) -> int:
    """A new file, which appears when it is whole; how many values it has."""
    if target.exists():
        raise CannotMove(f"{target} is there already; name another file")
    schema = parse(new.text, new.dependencies, lenient=True)
    partial = target.with_name(f"{target.name}.part")
    try:
        with source.open("rb") as old_file, partial.open("wb") as new_file:
            count = migrate_container(old_file, new_file, schema, transform)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return count


def move_topic(
    bootstrap: str,
    properties: Mapping[str, str],
    topic: str,
    target: str,
    registry: "Registry",
    new: NewSchema,
    transform: Transform | None,
) -> dict[str, int]:
    """Copy what a topic holds now, keys and headers as they are, values as the new schema's.

    Records keep their partitions where the target has as many. It fails at the first value that
    cannot be moved: run it again into a new topic once the transform can.
    """
    read, write = _serdes(registry, new, reads_as_written=transform is not None)
    counts = {"records": 0, "dropped": 0}
    with (
        closing(RecordReader(bootstrap, topic, properties)) as reader,
        Producer({**properties, "bootstrap.servers": bootstrap}) as producer,
    ):
        partitions = reader.partitions()
        keeps_places = producer.partitions_of(target) >= len(partitions)
        for record in _records_now(reader, partitions):
            value = _moved(record, read, transform)
            if value is DROP:
                counts["dropped"] += 1
                continue
            producer.send(
                target,
                _written(record, write, target, value),
                record.key(),
                partition=record.partition() if keeps_places else None,
                headers=_kept_headers(record),
                timestamp_ms=record.timestamp()[1],
            )
            counts["records"] += 1
    return counts


def _serdes(
    registry: "Registry", new: NewSchema, *, reads_as_written: bool
) -> "tuple[SchemaDeserializer[Any], SchemaSerializer[Any]]":
    """Of the new schema's type; a transform sees values as they were written."""
    reader = None if reads_as_written else new
    match SchemaType(new.schema_type):
        case SchemaType.AVRO:
            from headrace.serdes import AvroDeserializer, AvroSerializer

            return AvroDeserializer(registry, reader), AvroSerializer(registry, new)
        case SchemaType.JSON:
            from headrace.serdes import JsonSchemaDeserializer, JsonSchemaSerializer

            return JsonSchemaDeserializer(registry, reader), JsonSchemaSerializer(registry, new)
        case SchemaType.PROTOBUF:
            from headrace.serdes import ProtobufDeserializer, ProtobufSerializer

            return ProtobufDeserializer(registry, reader), ProtobufSerializer(registry, new)


def _records_now(reader: RecordReader, partitions: list[int]) -> "Iterator[Message]":
    """What is there; a cluster that falls silent before the end is given up."""
    reader.assign(Start(from_beginning=True), partitions)
    deadline = time.monotonic() + SILENCE_S
    while not reader.is_at_end:
        records = reader.read()
        yield from records
        if records:
            deadline = time.monotonic() + SILENCE_S
        elif time.monotonic() > deadline and not reader.is_at_end:
            raise CannotMove(f"nothing came for {SILENCE_S:.0f} s: {reader.outage or 'no answer'}")


def _moved(record: "Message", read: "SchemaDeserializer[Any]", transform: Transform | None) -> Any:
    """A tombstone stays one; its place in a compacted topic is all that it says."""
    payload = record.value()
    if payload is None:
        return None
    try:
        value = read.from_record(record.topic() or "", "value", payload, record.headers())
        return value if transform is None else transform(value)
    except HeadraceError as error:
        raise CannotMove(f"{_place(record)}: {error}") from error


def _written(
    record: "Message", write: "SchemaSerializer[Any]", target: str, value: Any
) -> bytes | None:
    try:
        return write.of_values(target, value)
    except HeadraceError as error:
        raise CannotMove(f"{_place(record)}: {error}") from error


def _kept_headers(record: "Message") -> list[tuple[str, Any]]:
    """All but the one that names the old schema: the new value names its own."""
    pairs: Any = record.headers() or []
    return [(name, content) for name, content in pairs if name != header_name("value")]


def _place(record: "Message") -> str:
    return f"{record.topic()}-{record.partition()} at offset {record.offset()}"
