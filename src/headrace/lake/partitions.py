"""Partitions of a table: valid columns, folder names, values in the log, and rows by partition."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from string import ascii_letters, digits
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.lake.arrow_times import date_text, days_of, micros_of, time_text
from headrace.lake.errors import IncompatibleSchema
from headrace.lake.schemas import type_text

Values = tuple[str | None, ...]
"""The values of a partition, as the log has them."""

PARTITION_YEARS = (-262_143, 262_142)
"""deltalake cannot read tables with partitions beyond these years."""
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_FOLDER_BYTES_MAX = 255
_UNESCAPED = frozenset(ascii_letters + digits + " !$&()+,-.;@_~")


def check_partition_columns(schema: pa.Schema, by: Sequence[str]) -> None:
    """Reject columns whose values cannot be names of folders."""
    for name in by:
        if name not in schema.names:
            raise IncompatibleSchema(
                f"there is no column {name} to partition by; columns: {', '.join(schema.names)}"
            )
        of = schema.field(name).type
        if pa.types.is_nested(of) or pa.types.is_binary(of) or pa.types.is_floating(of):
            raise IncompatibleSchema(
                f"a table cannot be partitioned by column {name} of type {type_text(of)}; use a"
                " column of strings, integers or dates"
            )
    if by and len(by) == len(schema):
        raise IncompatibleSchema("a table needs a column that it is not partitioned by")


def rows_by_partition(rows: Any, by: Sequence[str]) -> Iterator[tuple[Values, Any]]:
    """Yield the rows of each partition, in their order."""
    if not by:
        yield (), rows
        return
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    names = [str(number) for number in range(len(by))]
    keys = table.select(list(by)).rename_columns(names)
    numbered = keys.append_column("row", pa.array(np.arange(table.num_rows)))
    # With threads the rows of a partition would come in any order.
    groups = numbered.group_by(names, use_threads=False).aggregate([("row", "list")])
    texts = [_named(groups[number], name) for number, name in zip(names, by, strict=True)]
    for values, found in zip(zip(*texts, strict=True), groups["row_list"], strict=True):
        yield values, table if len(groups) == 1 else table.take(found.values)


def folder_of(name: str, value: str | None) -> str:
    """Return the folder of a partition, named as Hive, Spark and DuckDB read it.

    Names that would be too long are replaced by a hash; the log has the value.
    """
    folder = f"{_escaped(name)}={_NULL_PARTITION if value is None else _escaped(value)}"
    if len(folder.encode()) <= _FOLDER_BYTES_MAX:
        return folder
    return f"{_escaped(name)[:64]}-{sha256(folder.encode()).hexdigest()}"


def partition_texts(column: Any) -> list[str | None]:
    """Format partition values as in Delta's log, with years beyond 9999 as in Spark.

    For Delta an empty string is null.
    """
    of = column.type
    if pa.types.is_date(of):
        days = column.cast(pa.date32()).cast(pa.int32()).to_pylist()
        return [None if one is None else date_text(one) for one in days]
    if pa.types.is_timestamp(of):
        micros = column.cast(pa.timestamp("us", of.tz)).cast(pa.int64()).to_pylist()
        return [None if one is None else _time_text(one) for one in micros]
    return [_plain_text(one) for one in column.to_pylist()]


def partition_array(text: str | None, of: pa.DataType, rows: int) -> pa.Array:
    """Return a partition's value from the log, repeated for each row."""
    if text is None or (text == "" and not pa.types.is_binary(of)):
        return pa.nulls(rows, of)
    if pa.types.is_timestamp(of):
        micros = pa.scalar(micros_of(text), pa.int64()).cast(pa.timestamp("us", of.tz))
        return pa.repeat(micros.cast(of), rows)
    if pa.types.is_date32(of):
        return pa.repeat(pa.scalar(days_of(text), pa.int32()).cast(of), rows)
    return pa.repeat(pa.scalar(text).cast(of), rows)


def _named(column: Any, name: str) -> list[str | None]:
    """Format a partition column; reject years that deltalake cannot read."""
    texts = partition_texts(column)
    if pa.types.is_temporal(column.type):
        for text in filter(None, texts):
            year = int(text[: text.index("-", 1)])
            if not PARTITION_YEARS[0] <= year <= PARTITION_YEARS[1]:
                raise IncompatibleSchema(
                    f"column {name} has the value {text}, and a table can be partitioned by years"
                    " up to 262142 only. Let an expectation drop or quarantine such rows. The usual"
                    " cause is a time in the wrong unit, such as milliseconds for seconds"
                )
    return texts


def _time_text(micros: int) -> str:
    return time_text(micros, separator=" ", timespec="microseconds")


def _plain_text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str) -> str:
    """Escape special ASCII characters only, as Hive does; Spark misreads other escapes."""
    return "".join(c if c in _UNESCAPED or c > "\x7f" else f"%{ord(c):02X}" for c in text)
