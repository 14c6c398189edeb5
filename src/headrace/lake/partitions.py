"""Partitions of a table: by which columns there may be some, their names, and their rows."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from string import ascii_letters, digits
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.lake.errors import IncompatibleSchema
from headrace.lake.far_times import date_text, days_of, micros_of, time_text
from headrace.lake.schemas import type_text

Values = tuple[str | None, ...]
"""What makes a partition, as the log has it."""

PARTITION_YEARS = (-262_143, 262_142)
"""The wheel reads no partition of years beyond these, and then nothing of the table at all."""
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_FOLDER_BYTES_MAX = 255
_UNESCAPED = frozenset(ascii_letters + digits + " !$&()+,-.;@_~")


def check_partition_columns(schema: pa.Schema, by: Sequence[str]) -> None:
    """Refuse columns whose values are no names of folders."""
    for name in by:
        if name not in schema.names:
            raise IncompatibleSchema(
                f"there is no column {name} to partition by; there are {', '.join(schema.names)}"
            )
        of = schema.field(name).type
        if pa.types.is_nested(of) or pa.types.is_binary(of) or pa.types.is_floating(of):
            raise IncompatibleSchema(
                f"column {name} is {type_text(of)}, by which a table cannot be partitioned; take a"
                " column of text, numbers or dates"
            )
    if by and len(by) == len(schema):
        raise IncompatibleSchema("a table needs a column that it is not partitioned by")


def rows_by_partition(rows: Any, by: Sequence[str]) -> Iterator[tuple[Values, Any]]:
    """The rows of each partition, in their order."""
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
    """The folder of a partition, named as Hive, Spark and DuckDB read it.

    A value that is too long for a folder's name gets a shorter one; the log has the value.
    """
    folder = f"{_escaped(name)}={_NULL_PARTITION if value is None else _escaped(value)}"
    if len(folder.encode()) <= _FOLDER_BYTES_MAX:
        return folder
    return f"{_escaped(name)[:64]}-{sha256(folder.encode()).hexdigest()}"


def partition_texts(column: Any) -> list[str | None]:
    """Values of a partition column as Delta writes them in its log, years beyond 9999 as Spark.

    Delta takes an empty text for null.
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
    """A partition's value out of the log, once for each row."""
    if text is None or (text == "" and not pa.types.is_binary(of)):
        return pa.nulls(rows, of)
    if pa.types.is_timestamp(of):
        micros = pa.scalar(micros_of(text), pa.int64()).cast(pa.timestamp("us", of.tz))
        return pa.repeat(micros.cast(of), rows)
    if pa.types.is_date32(of):
        return pa.repeat(pa.scalar(days_of(text), pa.int32()).cast(of), rows)
    return pa.repeat(pa.scalar(text).cast(of), rows)


def _named(column: Any, name: str) -> list[str | None]:
    """The texts of a partition column, if every reader understands them."""
    texts = partition_texts(column)
    if pa.types.is_temporal(column.type):
        for text in filter(None, texts):
            year = int(text[: text.index("-", 1)])
            if not PARTITION_YEARS[0] <= year <= PARTITION_YEARS[1]:
                raise IncompatibleSchema(
                    f"column {name} has the value {text}, by which no table can be partitioned:"
                    " years are at most six digits, up to 262142. Let an expectation drop or"
                    " quarantine such rows; a time in the wrong unit (milliseconds for seconds) is"
                    " the usual cause"
                )
    return texts


def _time_text(micros: int) -> str:
    return time_text(micros, separator=" ", timespec="microseconds")


def _plain_text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str) -> str:
    """Only ASCII is escaped: Hive's way knows no others, and Spark takes them apart."""
    return "".join(c if c in _UNESCAPED or c > "\x7f" else f"%{ord(c):02X}" for c in text)
