"""Rows written by a schema of a registry."""

import datetime
import pickle
from typing import Any

import pyarrow as pa
import pytest

from headrace.serdes import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from headrace.serdes.payload_errors import UnfitValue
from headrace.spark.sink.errors import WrongOption
from headrace.spark.sink.options import RegistryOptions
from headrace.spark.sink.values import RegistryValues
from tests.builders.registries import RegistryInMemory

URL = "http://127.0.0.1:1"
AVRO = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":["null","long"]},'
    '{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}]}]}'
)
JSON = '{"type":"object","properties":{"id":{"type":"integer"},"at":{"type":"string"}}}'
PROTOBUF = (
    'syntax = "proto3"; import "google/protobuf/timestamp.proto";'
    " message Order { int64 id = 1; google.protobuf.Timestamp at = 2; }"
)
AT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
BATCH = pa.record_batch(
    {
        "id": pa.array([7, 8, None], pa.int64()),
        "at": pa.array([AT, None, None], pa.timestamp("us", "UTC")),
    }
)


def written(format: str, serializer: Any) -> list[Any]:
    return RegistryValues(RegistryOptions(URL, format), "orders", serializer).of(BATCH)


def test_avro_has_times_and_nulls_and_a_row_of_nulls_is_a_tombstone() -> None:
    registry = RegistryInMemory()
    values = written("avro", AvroSerializer(registry, AVRO))
    read = AvroDeserializer(registry).of_values
    assert [read("orders", value) for value in values] == [
        {"id": 7, "at": AT},
        {"id": 8, "at": None},
        None,
    ]


def test_json_is_checked_by_its_schema_without_nulls() -> None:
    registry = RegistryInMemory()
    values = written("json", JsonSchemaSerializer(registry, JSON))
    read = JsonSchemaDeserializer(registry).of_values
    assert [read("orders", value) for value in values] == [
        {"id": 7, "at": "2026-01-01T00:00:00Z"},
        {"id": 8},
        None,
    ]


def test_protobuf_has_its_own_times() -> None:
    registry = RegistryInMemory()
    values = written("protobuf", ProtobufSerializer(registry, PROTOBUF))
    read = ProtobufDeserializer(registry).of_values
    first = read("orders", values[0])
    assert (first.id, first.at.ToDatetime(datetime.UTC)) == (7, AT)
    assert values[2] is None


def test_a_row_that_does_not_fit_the_schema_is_reported() -> None:
    text = AVRO.replace('["null","long"]', '"string"')
    with pytest.raises(UnfitValue, match="id"):
        written("avro", AvroSerializer(RegistryInMemory(), text))


def test_an_invalid_schema_is_refused_before_the_query_runs() -> None:
    with pytest.raises(WrongOption, match="values cannot be written as avro"):
        RegistryValues(RegistryOptions(URL, "avro", schema="{"), "orders").check()


def test_a_registry_without_an_address_is_refused_before_the_query_runs() -> None:
    with pytest.raises(WrongOption, match="registry's address"):
        RegistryValues(RegistryOptions("nowhere", "avro"), "orders").check()


def test_serializers_are_not_sent_to_executors() -> None:
    values = RegistryValues(RegistryOptions(URL, "avro", schema=AVRO), "orders")
    values.check()
    assert pickle.loads(pickle.dumps(values)) == values
