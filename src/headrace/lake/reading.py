"""Rows out of data files: any version's files, read with the schema that the table has now.

A file may be older than a column or than its type; what it lacks is null, what it has is cast.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from headrace.lake.commits import AddedFile
from headrace.lake.errors import START_ANEW, LakeError, VersionGone
from headrace.lake.partitions import partition_array
from headrace.lake.schemas import conform

_BATCH_ROWS = 64 * 1024


def read_batches(
    place: Path,
    file: AddedFile,
    schema: pa.Schema,
    partition_by: Sequence[str],
    columns: Sequence[str] | None = None,
) -> Iterator[Any]:
    """The rows of one file as record batches of the schema, or of some columns of it."""
    wanted = pa.schema([schema.field(name) for name in columns]) if columns is not None else schema
    stored = [name for name in wanted.names if name not in partition_by]
    with _opened(place, file) as parquet:
        there = [name for name in stored if name in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=there):
            yield _completed(batch, wanted, file)


def dataset(
    place: Path, files: Sequence[AddedFile], schema: pa.Schema, partition_by: Sequence[str]
) -> Any:
    """All files as one dataset, from which DuckDB and Arrow take what a query needs.

    Only partitions are told to it: the log's own bounds are in milliseconds, and a reader who
    takes them to the letter would pass over rows.
    """
    import pyarrow.dataset as ds  # Brings pandas, which a stream over the table need not load.

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
    """Columns and rows of a dataset, as an Arrow table; `where` and `order` are SQL for DuckDB."""
    names = rows.schema.names if columns is None else list(columns)
    unknown = [name for name in names if name not in rows.schema.names]
    if unknown:
        raise LakeError(
            f"there is no column {', '.join(unknown)}; there are {', '.join(rows.schema.names)}"
        )
    if where is None and order is None:
        return rows.to_table(names) if limit is None else rows.head(limit, columns=names)
    query = f"SELECT {', '.join(map(quoted, names))} FROM rows"
    if where is not None:
        query += f" WHERE ({where}\n)"
    if order is not None:
        query += f" ORDER BY {order}\n"
    if limit is not None:
        query += f" LIMIT {limit}"
    found = run_sql(query, {"rows": rows})
    return conform(found, pa.schema([rows.schema.field(name) for name in names]))


def run_sql(query: str, relations: Mapping[str, Any]) -> Any:
    """An SQL query over Arrow data by DuckDB, which is given nothing else to read or to load."""
    import duckdb

    with connected(relations) as connection:
        try:
            connection.execute("SET enable_external_access = false")
            return connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise LakeError(f"the query could not be answered: {error}") from error


@contextmanager
def connected(relations: Mapping[str, Any]) -> Iterator[Any]:
    """A DuckDB of the moment that knows Arrow data under these names."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # The wheel's merges write texts as views, and Arrow fails to compare these with the bounds
        # of a file: so DuckDB filters rows itself.
        connection.execute("SET disabled_optimizers = 'filter_pushdown'")
        for name, data in relations.items():
            connection.register(name, data)
        yield connection


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def table_path(name: str) -> str:
    """`zone.table` as SQL takes it, whatever is in it."""
    zone, _, table = name.partition(".")
    return f"{quoted(zone)}.{quoted(table)}"


def _opened(place: Path, file: AddedFile) -> Any:
    try:
        return pq.ParquetFile(place / file.path)
    except FileNotFoundError as error:
        raise VersionGone(
            f"{place / file.path}, of version {file.version}, is not there any more: vacuum takes"
            f" away the files of old versions; {START_ANEW}"
        ) from error


def _completed(batch: Any, wanted: pa.Schema, file: AddedFile) -> Any:
    """The batch with the columns that the file lacks: those of its partition, and nulls."""
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
