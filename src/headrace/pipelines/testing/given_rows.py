"""Rows given by a test, converted to rows of a topic or table."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace.pipelines.analysing.raw_days import DAY
from headrace.pipelines.model import ERROR, PAYLOAD, PipelineSettings, Source
from headrace.pipelines.problems import PipelineError, nearest
from headrace.pipelines.queries.sources import metadata_prefix, source_options, source_properties
from headrace.runtime.clock import SystemClock

Row = Mapping[str, Any]
Payload = str | bytes | None

_UNFIT = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError)
"""Arrow's errors for values that do not fit a column's type."""


def listed(name: str, rows: Any) -> list[Any]:
    """Return the rows as a list; a single row or payload is an error."""
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise PipelineError(f"give {name} a list of rows, not {type(rows).__name__}")
    return list(rows)


def table_rows(name: str, rows: Iterable[Row], schema: pa.Schema) -> pa.Table:
    """Return rows as a table's columns; missing columns are null."""
    named = [dict(row) for row in rows]
    for row in named:
        _check_names(name, row, schema)
    try:
        return pa.Table.from_pylist(named, schema=schema)
    except _UNFIT as error:
        reason = next(filter(None, (_unfit(column, named) for column in schema)), str(error))
        raise PipelineError(f"these rows do not fit {name}: {reason}") from error


def with_days(rows: pa.Table) -> pa.Table:
    """Fill the day that the runner adds, where it was not given."""
    import pyarrow.compute as pc

    days = pc.coalesce(rows[DAY], rows["timestamp"].cast(pa.date32()))
    return rows.set_column(rows.schema.get_field_index(DAY), rows.schema.field(DAY), days)


def source_rows(
    source: Source, rows: Sequence[Row | Payload], schema: pa.Schema, first_offset: int
) -> pa.Table:
    """Return rows of a topic: with columns by name, by default the next ones of partition 0."""
    prefix = metadata_prefix(source)
    placed = []
    for offset, row in enumerate(rows, start=first_offset):
        if not isinstance(row, Mapping):
            raise PipelineError(
                f"{source.name}: {row!r} is not a row; give all rows as payloads, or none"
            )
        place: dict[str, Any] = {
            "topic": (source.topic or source.name).partition(",")[0],
            "partition": 0,
            "offset": offset,
            "timestamp": dt.datetime.fromtimestamp(SystemClock().now_ms() / 1000, dt.UTC),
            "timestampType": 0,
        }
        named = {f"{prefix}{key}": value for key, value in place.items()}
        known = {key: value for key, value in named.items() if key in schema.names}
        placed.append({**known, **{key: _as_bytes(row[key], key, schema) for key in row}})
    return table_rows(f"sources.{source.name}", placed, schema)


def decoded(source: Source, settings: PipelineSettings, payloads: Sequence[Payload]) -> list[Row]:
    """Return payloads as the source decodes them: columns, or an error."""
    as_bytes = [text.encode() if isinstance(text, str) else text for text in payloads]
    if source.format == "bytes":
        return [{"value": value} for value in as_bytes]
    from headrace.spark.decoding.formats import decoder_of

    decoder = decoder_of(source_options(source, settings), source_properties(source, settings))
    if decoder is None:
        raise PipelineError(f"sources.{source.name} has no decoder for {source.format}")
    found = decoder.decode(pa.array(as_bytes, pa.binary()))
    rows = found.columns.to_pylist()
    return [
        {**row, ERROR: error, PAYLOAD: payload if error else None}
        for row, error, payload in zip(rows, found.errors.to_pylist(), as_bytes, strict=True)
    ]


def _unfit(column: pa.Field, rows: Sequence[Row]) -> str:
    """Return the first value that a column cannot hold, which Arrow's error does not name."""
    for row in rows:
        value = row.get(column.name)
        try:
            pa.array([value], column.type)
        except _UNFIT as error:
            return f"column {column.name} is {column.type}, and {value!r} does not fit ({error})"
    return ""


def _check_names(name: str, row: Row, schema: pa.Schema) -> None:
    for column in row:
        if column not in schema.names:
            raise PipelineError(
                f"{name} has no column {column}; it has {', '.join(schema.names)}"
                f"{nearest(column, schema.names)}"
            )


def _as_bytes(value: Any, column: str, schema: pa.Schema) -> Any:
    """Encode a text in UTF-8 if the column holds bytes."""
    is_binary = column in schema.names and pa.types.is_binary(schema.field(column).type)
    return value.encode() if is_binary and isinstance(value, str) else value
