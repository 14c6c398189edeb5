"""Reading the rows of data files with the table's current schema.

A file may be older than a column or its type: missing columns are null, the others are cast.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from headrace.lake.commit_log import AddedFile
from headrace.lake.data_files import FileWriter
from headrace.lake.errors import RESTART_ADVICE, LakeError, VersionGone
from headrace.lake.partitions import partition_array
from headrace.lake.schemas import conform

_BATCH_ROWS = 64 * 1024
_UNQUOTED_WORD = re.compile(r"(?<![\w\"'])\w+(?![\w\"'])")


def read_batches(
    place: Path,
    file: AddedFile,
    schema: pa.Schema,
    partition_by: Sequence[str],
    columns: Sequence[str] | None = None,
) -> Iterator[Any]:
    """Yield the rows of one file as record batches of the schema, or of some of its columns."""
    wanted = pa.schema([schema.field(name) for name in columns]) if columns is not None else schema
    stored = [name for name in wanted.names if name not in partition_by]
    with _opened(place, file) as parquet:
        there = [name for name in stored if name in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=there):
            yield _completed(batch, wanted, file)


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a table version with their schema; plain data that tasks unpickle."""

    place: str
    schema: pa.Schema
    partition_by: tuple[str, ...]
    files: tuple[AddedFile, ...]

    def batches(self, number: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
        file = self.files[number]
        return read_batches(Path(self.place), file, self.schema, self.partition_by, columns)

    def writer(self) -> FileWriter:
        return FileWriter(Path(self.place), self.schema, self.partition_by)


def dataset(
    place: Path, files: Sequence[AddedFile], schema: pa.Schema, partition_by: Sequence[str]
) -> Any:
    """Return files as one Arrow dataset with the values of their partitions.

    It gets no bounds: those in the log are rounded to milliseconds, and would hide rows.
    """
    import pyarrow.dataset as ds  # Imports pandas, which a stream over the table does not need.

    file_format = ds.ParquetFileFormat()
    local = pafs.LocalFileSystem()
    fragments = [
        file_format.make_fragment(
            str(place / file.path),
            filesystem=local,
            partition_expression=_partition_expression(file, schema, partition_by),
        )
        for file in files
    ]
    return ds.FileSystemDataset(fragments, schema, file_format, local)


def select(
    rows: Any,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    limit: int | None = None,
    order: str | None = None,
) -> Any:
    """Return columns and rows of a dataset as an Arrow table.

    `where` and `order` are DuckDB's SQL; `order` may also be a column with or without a direction.
    """
    names = rows.schema.names if columns is None else list(columns)
    unknown = [name for name in names if name not in rows.schema.names]
    if unknown:
        raise LakeError(
            f"there is no column {', '.join(unknown)}; columns: {', '.join(rows.schema.names)}"
        )
    if where is None and order is None:
        return rows.to_table(names) if limit is None else rows.head(limit, columns=names)
    query = f"SELECT {', '.join(map(quoted, names))} FROM rows"
    if where is not None:
        query += f" WHERE ({where}\n)"
    if order is not None:
        query += f" ORDER BY {_with_quoted_column(order, rows.schema.names)}\n"
    if limit is not None:
        query += f" LIMIT {limit}"
    try:
        found = run_sql(query, {"rows": rows})
    except LakeError as error:
        named = _unquoted_keywords(f"{where or ''} {order or ''}", rows.schema.names)
        if not named:
            raise
        advice = f"quote columns with names that are SQL keywords: {', '.join(named)}"
        raise LakeError(f"{error}\n{advice}") from error
    return conform(found, pa.schema([rows.schema.field(name) for name in names]))


def _with_quoted_column(order: str, names: Sequence[str]) -> str:
    """Quote a single column of an ORDER BY: names such as `offset` are keywords of SQL."""
    name, _, direction = order.strip().partition(" ")
    is_column = name in names and direction.strip().upper() in ("", "ASC", "DESC")
    return f"{quoted(name)} {direction}" if is_column else order


def _unquoted_keywords(sql: str, names: Sequence[str]) -> list[str]:
    """Return the quoted names of columns that are keywords, and are not quoted in the SQL."""
    words = {word.lower() for word in _UNQUOTED_WORD.findall(sql)}
    used = [name for name in names if name.lower() in words]
    return [quoted(name) for name in used if name.lower() in _reserved_words()]


def _reserved_words() -> set[str]:
    query = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
    return set(run_sql(query, {})["keyword_name"].to_pylist())


def run_sql(query: str, relations: Mapping[str, Any]) -> Any:
    """Run a DuckDB query over Arrow data, without access to files or other data."""
    import duckdb

    with connected(relations) as connection:
        try:
            connection.execute("SET enable_external_access = false")
            return connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise LakeError(f"the query failed: {error}") from error


@contextmanager
def connected(relations: Mapping[str, Any]) -> Iterator[Any]:
    """Open an in-memory DuckDB over Arrow data under these names."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # deltalake's merges write strings as views, which Arrow cannot compare with the bounds of a
        # file. So DuckDB filters rows itself.
        connection.execute("SET disabled_optimizers = 'filter_pushdown'")
        for name, data in relations.items():
            connection.register(name, data)
        yield connection


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def table_path(name: str) -> str:
    """Quote `zone.table` for SQL."""
    zone, _, table = name.partition(".")
    return f"{quoted(zone)}.{quoted(table)}"


def _opened(place: Path, file: AddedFile) -> Any:
    try:
        return pq.ParquetFile(place / file.path)
    except FileNotFoundError as error:
        raise VersionGone(
            f"{place / file.path}, of version {file.version}, is gone: vacuum removes the files of"
            f" old versions; {RESTART_ADVICE}"
        ) from error


def _completed(batch: Any, wanted: pa.Schema, file: AddedFile) -> Any:
    """Add the columns that the file lacks: partition values and nulls."""
    for name, text in file.partition_values.items():
        if name in wanted.names:
            values = partition_array(text, wanted.field(name).type, batch.num_rows)
            batch = batch.append_column(name, values)
    return conform(batch, wanted)


def _partition_expression(
    file: AddedFile, schema: pa.Schema, partition_by: Sequence[str]
) -> Any | None:
    expression = None
    for name in partition_by:
        value = partition_array(file.partition_values.get(name), schema.field(name).type, 1)[0]
        one = pc.field(name) == value if value.is_valid else pc.is_null(pc.field(name))
        expression = one if expression is None else expression & one
    return expression
