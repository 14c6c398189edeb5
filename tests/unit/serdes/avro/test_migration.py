"""Old data are migrated by a transform, or by the new schema alone."""

import io
from typing import Any

import pytest

from headrace.serdes.avro.codec import decode, encode
from headrace.serdes.avro.containers import ContainerReader, ContainerWriter
from headrace.serdes.avro.migration import (
    DROP,
    MigrationFailed,
    migrate_container,
    migrate_payloads,
    migrate_values,
)
from headrace.serdes.avro.parsing import parse

OLD = parse('{"type":"record","name":"P","fields":[{"name":"name","type":"string"}]}')
NEW = parse(
    '{"type":"record","name":"P","fields":[{"name":"first","type":"string"},'
    '{"name":"last","type":"string"},{"name":"lang","type":"string","default":"en"}]}'
)
WIDER = parse(
    '{"type":"record","name":"P","fields":[{"name":"name","type":"string"},'
    '{"name":"lang","type":"string","default":"en"}]}'
)
ADA = {"first": "Ada", "last": "Lovelace", "lang": "en"}


def split(value: Any) -> Any:
    first, _, last = value["name"].partition(" ")
    return {"first": first, "last": last} if last else DROP


def test_payloads_are_read_transformed_and_written() -> None:
    """SCH-8"""
    payloads = [encode(OLD, {"name": "Ada Lovelace"}), encode(OLD, {"name": "Plato"})]
    moved = list(migrate_payloads(payloads, OLD, NEW, split))
    assert [decode(NEW, None, payload) for payload in moved] == [ADA]


def test_without_a_transform_the_new_schema_reads_the_old_data() -> None:
    """SCH-8, SCH-10"""
    moved = list(migrate_payloads([encode(OLD, {"name": "Plato"})], OLD, WIDER))
    assert decode(WIDER, None, moved[0]) == {"name": "Plato", "lang": "en"}


def test_values_get_the_new_defaults() -> None:
    """SCH-8"""
    assert list(migrate_values([{"name": "Ada Lovelace"}], NEW, split)) == [ADA]


def test_a_container_file_moves_to_a_new_one() -> None:
    """SCH-8"""
    source, target = io.BytesIO(), io.BytesIO()
    writer = ContainerWriter(source, OLD, codec="snappy")
    writer.write({"name": "Ada Lovelace"})
    writer.flush()
    count = migrate_container(source, target, NEW, split)
    assert (count, list(ContainerReader(target))) == (1, [ADA])


def test_the_value_that_cannot_be_migrated_is_named() -> None:
    """SCH-8"""
    payloads = [encode(OLD, {"name": "Ada Lovelace"}), encode(OLD, {"name": "Alan Turing"})]
    bad = {"first": "Alan", "last": None}
    with pytest.raises(MigrationFailed, match="value 1: last: null is not a string"):
        list(
            migrate_payloads(payloads, OLD, NEW, lambda v: bad if "Alan" in v["name"] else split(v))
        )
