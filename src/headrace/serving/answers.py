"""Answers: bounded rows of a query, written as JSON, as an Arrow stream or as CSV."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc

from headrace.http.errors import BadRequest, NotAcceptable
from headrace.http.negotiation import choose
from headrace.lake.arrow_times import python_rows, python_values


class Column(msgspec.Struct, frozen=True):
    """A column with its DuckDB type."""

    name: str
    type: str


class QueryAnswer(msgspec.Struct, frozen=True):
    """The JSON form of an answer."""

    columns: list[Column]
    rows: list[dict[str, Any]]
    row_count: int
    cut: str | None
    """The limit that cut the rows, `rows` or `bytes`; null if these are all."""
    versions: dict[str, int]
    """The version of each table read."""
    scanned: list[str]
    """Tables whose files were scanned because they are not loaded."""


@dataclass(frozen=True, slots=True)
class FewRows:
    """Rows as tuples, which cost less than Arrow's columns for a handful of rows."""

    schema: pa.Schema
    tuples: Sequence[tuple[Any, ...]]

    @property
    def num_rows(self) -> int:
        return len(self.tuples)

    def to_pylist(self) -> list[dict[str, Any]]:
        names = self.schema.names
        return [dict(zip(names, row, strict=True)) for row in self.tuples]

    def to_table(self) -> pa.Table:
        columns = zip(*self.tuples, strict=True) if self.tuples else ([] for _ in self.schema)
        arrays = [
            pa.array(column, one.type) for column, one in zip(columns, self.schema, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows, with the facts that every form of an answer includes."""

    columns: Sequence[Column]
    rows: pa.Table | FewRows
    cut: str | None
    versions: Mapping[str, int]
    scanned: Sequence[str]

    @property
    def table(self) -> pa.Table:
        return self.rows.to_table() if isinstance(self.rows, FewRows) else self.rows

    @property
    def headers(self) -> dict[str, str]:
        versions = ", ".join(f"{name}={version}" for name, version in self.versions.items())
        found = {
            "Headrace-Rows": str(self.rows.num_rows),
            "Headrace-Versions": versions,
            "Headrace-Cut": self.cut or "",
            "Headrace-Scanned": ", ".join(self.scanned),
        }
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class Format:
    """A format of answers."""

    name: str
    media_type: str
    write: Callable[[Answer], bytes]


def bounded(
    reader: pa.RecordBatchReader, names: Sequence[str], rows_max: int, bytes_max: int
) -> tuple[pa.Table, str | None]:
    """Return the rows within the limits, and the limit that cut them, if any."""
    batches: list[Any] = []
    rows = size_bytes = 0
    cut = None
    for batch in reader:
        if rows + batch.num_rows > rows_max:
            batch, cut = batch.slice(0, rows_max - rows), "rows"
        if size_bytes + batch.nbytes > bytes_max:
            batch, cut = _fitting(batch, bytes_max - size_bytes), "bytes"
        batches.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if cut is not None:
            break
    table = pa.Table.from_batches(batches, schema=reader.schema)
    return table.rename_columns(unique(names)), cut


def _fitting(batch: Any, bytes_max: int) -> Any:
    """Return the first rows of a batch within a size, found by bisection."""
    fits, too_many = 0, batch.num_rows
    while too_many - fits > 1:
        rows = (fits + too_many) // 2
        if batch.slice(0, rows).nbytes > bytes_max:
            too_many = rows
        else:
            fits = rows
    return batch.slice(0, fits)


def unique(names: Sequence[str]) -> list[str]:
    """Make column names unique: the second `id` becomes `id_1`."""
    taken: set[str] = set()
    chosen: list[str] = []
    for name in names:
        candidate, number = name, 0
        while candidate in taken or (number and candidate in names):
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate)
        chosen.append(candidate)
    return chosen


def write_json(answer: Answer) -> bytes:
    document = QueryAnswer(
        columns=list(answer.columns),
        rows=_rows(answer.rows),
        row_count=answer.rows.num_rows,
        cut=answer.cut,
        versions=dict(answer.versions),
        scanned=list(answer.scanned),
    )
    return _JSON.encode(document)


def write_arrow(answer: Answer) -> bytes:
    sink = io.BytesIO()
    table = answer.table
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def write_csv(answer: Answer) -> bytes:
    """Write CSV with a header; values without a CSV form are written as JSON."""
    sink = io.BytesIO()
    table = answer.table
    columns = [_flat(column) for column in table.columns]
    flat = pa.Table.from_arrays(columns, names=table.column_names)
    pyarrow.csv.write_csv(flat, sink)
    return sink.getvalue()


FORMATS = (
    Format("json", "application/json", write_json),
    Format("arrow", "application/vnd.apache.arrow.stream", write_arrow),
    Format("csv", "text/csv", write_csv),
)


def chosen_format(name: str | None, accept: str) -> Format:
    """Choose by `?format=`, or without it by the Accept header."""
    if name is not None:
        for one in FORMATS:
            if one.name == name.lower():
                return one
        known = ", ".join(one.name for one in FORMATS)
        raise BadRequest(f"unknown format {name}; choose one of {known}")
    types = {one.media_type: one for one in FORMATS}
    chosen = choose(accept, tuple(types))
    if chosen is None:
        raise NotAcceptable(f"answers have the types {', '.join(types)}")
    return types[chosen]


def _rows(rows: pa.Table | FewRows) -> list[dict[str, Any]]:
    return rows.to_pylist() if isinstance(rows, FewRows) else python_rows(rows)


def _flat(column: Any) -> Any:
    type = column.type
    if pa.types.is_date(type) or pa.types.is_timestamp(type):
        return _with_times_beyond_arrow(column)
    is_plain = (
        pa.types.is_primitive(type)
        or pa.types.is_string(type)
        or pa.types.is_decimal(type)
        or pa.types.is_null(type)
    )
    if is_plain and not pa.types.is_interval(type):
        return column
    return pa.chunked_array([pa.array(_texts(column), pa.string())])


def _with_times_beyond_arrow(column: Any) -> Any:
    """Return times as texts if some have years that Arrow writes wrongly."""
    values = python_values(column)
    is_far = pa.array([isinstance(value, str) for value in values], pa.bool_())
    if not pc.any(is_far).as_py():
        return column
    near = pc.if_else(is_far, pa.scalar(None, column.type), column).cast(pa.string())
    texts = [value.replace("T", " ") if isinstance(value, str) else None for value in values]
    return pc.coalesce(near, pa.array(texts, pa.string()))


def _texts(column: Any) -> Iterator[str | None]:
    for value in python_values(column):
        if value is None or isinstance(value, str):  # A text of another type, such as an ENUM.
            yield value
        else:
            encoded = _JSON.encode(value).decode()
            yield encoded[1:-1] if isinstance(value, bytes) else encoded


def _plain(value: Any) -> Any:
    """Encode values without a JSON form, such as Arrow's intervals."""
    return str(value)


_JSON = msgspec.json.Encoder(enc_hook=_plain, decimal_format="number")
