"""Migrates data to a new schema: topics of any type, and Avro container files."""

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
from headrace.schema_clients.registry_client import NewSchema
from headrace.serdes.avro.migration import DROP, Transform, migrate_container
from headrace.serdes.avro.parsing import parse
from headrace.serdes.schemas import SchemaType
from headrace.serdes.wire_format import header_name

if TYPE_CHECKING:
    from confluent_kafka import Message

    from headrace.schema_clients.deserializer import SchemaDeserializer
    from headrace.schema_clients.registry import Registry
    from headrace.schema_clients.serializer import SchemaSerializer


SILENCE_S = 60.0


class CannotMove(HeadraceError):
    """Data that could not be moved; the message has the place and the reason."""


def loaded_transform(text: str) -> Transform:
    """Load the function of an option; its errors are reported with its name."""
    function = load_object(text)
    if not callable(function):
        raise CannotMove(f"{text} is not a function")

    def transform(value: Any) -> Any:
        try:
            return function(value)
        except Exception as error:
            raise CannotMove(f"{text} raised {type(error).__name__}: {error}") from error

    return transform


def move_container(source: Path, target: Path, new: Found, transform: Transform | None) -> int:
    """Write a new file, which appears when it is complete; return the number of values."""
    if target.exists():
        raise CannotMove(f"{target} already exists; name another file")
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
    """Copy a topic's current records: keys and headers unchanged, values with the new schema.

    Records keep their partitions if the target has as many. The copy stops at the first value that
    cannot be moved; after fixing the transform, start again with a new topic.
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
    """Return a deserializer and a serializer of the new schema's type.

    A transform receives values in the writer's schema.
    """
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
    """Yield the current records; give up if the cluster stays silent before the end."""
    reader.assign(Start(from_beginning=True), partitions)
    deadline = time.monotonic() + SILENCE_S
    while not reader.is_at_end:
        records = reader.read()
        yield from records
        if records:
            deadline = time.monotonic() + SILENCE_S
        elif time.monotonic() > deadline and not reader.is_at_end:
            raise CannotMove(f"no records for {SILENCE_S:.0f} s: {reader.outage or 'no answer'}")


def _moved(record: "Message", read: "SchemaDeserializer[Any]", transform: Transform | None) -> Any:
    """Move one value; a tombstone stays a tombstone."""
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
    """Return the headers without the old schema's id; the new value has its own."""
    pairs: Any = record.headers() or []
    return [(name, content) for name, content in pairs if name != header_name("value")]


def _place(record: "Message") -> str:
    return f"{record.topic()}-{record.partition()} at offset {record.offset()}"
