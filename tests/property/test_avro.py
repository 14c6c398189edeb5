"""Random Avro schemas, values and bytes."""

import io
import json
from collections.abc import Callable
from typing import Any

import avro.errors
import avro.schema
import fastavro
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.registry.compatibility.avro import incompatibilities
from headrace.serdes.avro.codec import decode, encode
from headrace.serdes.avro.containers import ContainerReader, ContainerWriter
from headrace.serdes.avro.json_reading import json_of_payload
from headrace.serdes.avro.json_writing import payload_of_json
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.payload_errors import PayloadError
from headrace.serdes.schemas import InvalidSchema
from tests.builders.avro_schemas import Schemas

seeds = st.integers(0, 1 << 32)


def schema_and_payload(seed: int) -> tuple[AvroSchema, bytes]:
    """A random schema and bytes of a value; not of a record that always holds itself."""
    schemas = Schemas(seed)
    schema = parse(json.dumps(schemas.schema()))
    try:
        return schema, payload_of_json(schema, schemas.json_value(schema.root))
    except RecursionError:
        assume(False)
        raise


@given(seed=seeds)
def test_a_printed_schema_is_read_as_the_same(seed: int) -> None:
    text = parse(json.dumps(Schemas(seed).schema())).canonical()
    assert parse(text).canonical() == text


@given(seed=seeds)
def test_a_normal_text_is_its_own_normal_text(seed: int) -> None:
    text = parse(json.dumps(Schemas(seed).schema())).normalized()
    assert parse(text).normalized() == text


@given(seed=seeds)
def test_values_round_trip(seed: int) -> None:
    """SCH-1"""
    schema, payload = schema_and_payload(seed)
    value = decode(schema, None, payload)
    assert repr(decode(schema, None, encode(schema, value))) == repr(value)


@given(seed=seeds)
def test_json_round_trips(seed: int) -> None:
    schema, payload = schema_and_payload(seed)
    assert payload_of_json(schema, json_of_payload(schema, payload)) == payload


@given(seed=seeds)
def test_fastavro_reads_the_same_values(seed: int) -> None:
    """SCH-1"""
    schema, payload = schema_and_payload(seed)
    assume('"namespace":""' not in schema.canonical())  # It gives such types another name.
    try:
        parsed = fastavro.parse_schema(json.loads(schema.canonical()))
    except fastavro.schema.UnknownType:  # It cannot read names of types that are defined later.
        assume(False)
        raise
    found = fastavro.schemaless_reader(io.BytesIO(payload), parsed, None)
    assert repr(decode(schema, None, payload)) == repr(found)


@given(seed=seeds, data=st.binary(max_size=200))
def test_hostile_bytes_are_our_error_and_no_other(seed: int, data: bytes) -> None:
    """SCH-10"""
    schemas = Schemas(seed)
    writer = parse(json.dumps(schemas.schema()))
    try:
        reader = parse(json.dumps(schemas.changed(json.loads(writer.canonical()))))
    except InvalidSchema:
        reader = writer
    attempts: list[Callable[[], object]] = [
        lambda: decode(writer, None, data),
        lambda: decode(writer, reader, data),
        lambda: json_of_payload(writer, data),
    ]
    for attempt in attempts:
        try:
            attempt()
        except PayloadError:
            continue


@given(seed=seeds, position=st.floats(0, 1), change=st.integers(1, 255))
def test_changed_bytes_are_our_error_and_no_other(seed: int, position: float, change: int) -> None:
    schema, payload = schema_and_payload(seed)
    assume(payload)
    damaged = bytearray(payload)
    damaged[int(position * (len(payload) - 1))] ^= change
    try:
        decode(schema, None, damaged)
    except PayloadError:
        return


@given(text=st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(
        ("int", "record", "enum", "fixed", "array", "map", "null", "R", "a.b", "")
    ) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(
            ("type", "name", "namespace", "fields", "items", "values", "symbols", "size",
             "default", "aliases", "order", "doc", "logicalType", "precision", "scale")
        ), inner, max_size=6,
    ),
    max_leaves=25,
).map(json.dumps))  # fmt: skip
def test_any_json_is_a_schema_or_an_invalid_one(text: str) -> None:
    for lenient in (False, True):
        try:
            schema = parse(text, lenient=lenient)
        except InvalidSchema:
            continue
        schema.normalized()


@given(text=st.text())
def test_any_text_is_a_schema_or_an_invalid_one(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(text + "\x00")


@given(seed=seeds)
def test_compatibility_agrees_with_avros_own_library(seed: int) -> None:
    """SCH-7"""
    schemas = Schemas(seed)
    old = schemas.schema()
    try:
        reader, writer = parse(json.dumps(schemas.changed(old))), parse(json.dumps(old))
    except InvalidSchema:
        assume(False)
        raise
    messages = incompatibilities(reader, writer)
    assume(not any("Unexpected exception" in found.text for found in messages))
    assert (not messages) == is_compatible_to_avro(reader.canonical(), writer.canonical())


def is_compatible_to_avro(reader: str, writer: str) -> bool:
    """The verdict of the checker in Avro's own library for Python.

    Unlike Java's, it does not resolve an alias in the namespace of its schema.
    """
    assume('"aliases"' not in reader or '"namespace"' not in reader)
    checker: Any = ReaderWriterCompatibilityChecker
    try:
        parsed = avro.schema.parse(reader), avro.schema.parse(writer)
    except avro.errors.SchemaParseException:
        # Unlike Java's it does not look outside a namespace for a name that is not in it.
        assume(False)
        raise
    judged = checker().get_compatibility(*parsed)
    return bool(judged.compatibility is SchemaCompatibilityType.compatible)


@given(seeds=st.lists(seeds, max_size=20), codec=st.sampled_from(("null", "deflate", "zstandard")))
def test_containers_return_the_written_values(seeds: list[int], codec: str) -> None:
    """SCH-5"""
    schema = parse('{"type":"map","values":["null","string","long"]}')
    values = [decode(schema, None, payload_of_json(schema, Schemas(seed).json_value(schema.root)))
              for seed in seeds]  # fmt: skip
    file = io.BytesIO()
    writer = ContainerWriter(file, schema, codec=codec, block_bytes=20)
    for value in values:
        writer.write(value)
    writer.flush()
    assert list(ContainerReader(file)) == values
