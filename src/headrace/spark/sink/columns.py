"""The parts of records from the DataFrame's columns, one Arrow batch at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from headrace.spark.sink.errors import WrongColumns
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.values import RegistryValues, json_values

IGNORED = frozenset({"offset", "timestampType"})
"""Columns of the source that records do not have; ignored, so that a topic can be copied."""

ANY_PARTITION = -1
NOW = 0
FIRST_MS = 1
"""The earliest time for librdkafka, which replaces 0 by the current time."""

Payload = bytes | str | None
Headers = list[tuple[str, bytes | None]]


def _is_payload(kind: DataType) -> bool:
    return isinstance(kind, StringType | BinaryType)


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = {field.name: field.dataType for field in kind.elementType.fields}
    return (
        fields.keys() == {"key", "value"}
        and isinstance(fields["key"], StringType)
        and isinstance(fields["value"], BinaryType)
    )


_PARTS: dict[str, tuple[Callable[[DataType], bool], str]] = {
    "key": (_is_payload, "STRING or BINARY"),
    "value": (_is_payload, "STRING or BINARY"),
    "topic": (lambda kind: isinstance(kind, StringType), "STRING"),
    "partition": (lambda kind: isinstance(kind, IntegerType), "INT"),
    "headers": (_is_headers, "ARRAY<STRUCT<key: STRING, value: BINARY>>"),
    "timestamp": (lambda kind: isinstance(kind, TimestampType), "TIMESTAMP"),
}


@dataclass(frozen=True, slots=True)
class Rows:
    """The records of one Arrow batch, part by part; missing parts are None."""

    values: list[Payload]
    keys: list[Payload] | None
    topics: list[str] | None
    partitions: list[int] | None
    headers: list[Headers] | None
    timestamps_ms: list[int] | None

    @property
    def is_plain(self) -> bool:
        """Return whether the records are only keys and values for one topic."""
        return not (self.topics or self.partitions or self.headers or self.timestamps_ms)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of each part of a record."""

    parts: frozenset[str]
    value_columns: tuple[str, ...]
    """The columns in the value; empty if there is a column `value`."""
    registry_values: RegistryValues | None = None
    """Serializes values by a schema; without it they are plain JSON."""

    def rows(self, batch: Any) -> Rows:
        """Return the parts of all records of a RecordBatch."""
        return Rows(
            values=self._values(batch),
            keys=_payloads(batch.column("key")) if "key" in self.parts else None,
            topics=_topics(batch.column("topic")) if "topic" in self.parts else None,
            partitions=(
                batch.column("partition").fill_null(ANY_PARTITION).to_pylist()
                if "partition" in self.parts
                else None
            ),
            headers=_headers(batch.column("headers")) if "headers" in self.parts else None,
            timestamps_ms=(
                _milliseconds(batch.column("timestamp")) if "timestamp" in self.parts else None
            ),
        )

    def _values(self, batch: Any) -> list[Payload]:
        if self.value_columns:
            chosen = batch.select(list(self.value_columns))
            return self.registry_values.of(chosen) if self.registry_values else json_values(chosen)
        return _payloads(batch.column("value"))


def columns_of(schema: StructType, options: SinkOptions) -> Columns:
    """Assign the columns to the parts of records, or raise `WrongColumns`."""
    kinds = {field.name: field.dataType for field in schema.fields}
    parts = {name for name in _PARTS if name in kinds}
    if options.topic is not None:
        parts.discard("topic")
    elif "topic" not in parts:
        raise WrongColumns("the topic is missing: set the option topic, or add a column `topic`")
    value_columns: tuple[str, ...] = ()
    if options.is_value_of_columns:
        parts = {name for name in parts - {"value"} if name == "key" or _fits(name, kinds[name])}
        value_columns = _value_columns(list(kinds), parts, options.value_columns)
    else:
        _check_all_are_used(kinds, parts)
    for name in sorted(parts):
        if not _fits(name, kinds[name]):
            raise WrongColumns(
                f"column `{name}` is {kinds[name].simpleString()} and must be {_PARTS[name][1]}"
                + ("; cast it, or set value.format=json" if name == "value" else "; cast it")
            )
    return Columns(frozenset(parts), value_columns, _registry_values(options))


def _fits(part: str, kind: DataType) -> bool:
    return _PARTS[part][0](kind)


def _registry_values(options: SinkOptions) -> RegistryValues | None:
    if options.registry is None:
        return None
    assert options.topic is not None, "a registry needs the option topic"
    values = RegistryValues(options.registry, options.topic)
    values.check()
    return values


def _value_columns(names: Sequence[str], parts: set[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Choose the columns in the value; `timestamp` is included, as it may be the event's time."""
    for name in wanted:
        if name not in names:
            raise WrongColumns(
                f"value.columns names the unknown column `{name}`; columns: {', '.join(names)}"
            )
    chosen = tuple(wanted) or tuple(name for name in names if name not in parts - {"timestamp"})
    if not chosen:
        raise WrongColumns("value.format needs at least one column for the value")
    return chosen


def _check_all_are_used(kinds: dict[str, DataType], parts: set[str]) -> None:
    if "value" not in parts:
        raise WrongColumns(
            f"there is no column `value` among {', '.join(kinds) or 'no columns'}: add one, for"
            " example by to_json(struct(*)), or set value.format=json"
        )
    unused = [name for name in kinds if name not in _PARTS and name not in IGNORED]
    if unused:
        raise WrongColumns(
            f"{', '.join(f'`{name}`' for name in unused)} would not be written: a record has key,"
            " value, topic, partition, headers and timestamp. Drop the rest, or set"
            " value.format=json"
        )


def _payloads(column: Any) -> list[Payload]:
    """Return text and bytes as bytes: text is UTF-8 in Arrow, so it is not decoded."""
    import pyarrow as pa

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    payloads: list[Payload] = column.to_pylist()
    return payloads


def _topics(column: Any) -> list[str]:
    if column.null_count:
        raise WrongColumns(
            "a row's topic is null: fill the column `topic`, or set the option topic"
        )
    topics: list[str] = column.to_pylist()
    return topics


def _headers(column: Any) -> list[Headers]:
    return [
        [(header["key"], header["value"]) for header in headers or ()]
        for headers in column.to_pylist()
    ]


def _milliseconds(column: Any) -> list[int]:
    import pyarrow as pa

    micros = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
    return [NOW if one is None else one // 1000 or FIRST_MS for one in micros.to_pylist()]
