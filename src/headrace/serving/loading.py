"""Rows of lake tables as bounded streams of record batches."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from headrace.errors import HeadraceError
from headrace.lake.commit_log import AddedFile
from headrace.lake.errors import TableRewritten, VersionGone
from headrace.lake.reading import read_batches
from headrace.lake.tables import Table

_BATCH_ROWS = 64 * 1024
_SAMPLE_ROWS = 1_000
_OVERHEAD = 1.25
"""The size of DuckDB's vectors relative to Arrow's; measured 1.15 with long strings."""
INDEX_BYTES_PER_ROW = 40
"""Measured 9 for integers and 37 for strings of 11 characters."""
COMMITS_MAX = 1_000
"""A table that is further behind is loaded whole."""


class TooLarge(HeadraceError):
    """The rows exceed the memory for loaded tables."""


class Rows:
    """A stream of batches into DuckDB that counts rows and bytes."""

    def __init__(
        self, schema: pa.Schema, batches: Iterable[Any], bytes_max: int, *, indexes: int = 0
    ) -> None:
        self.rows = 0
        self.size_bytes = 0
        self.is_too_large = False
        self._batches = batches
        self._bytes_max = bytes_max
        self._index_bytes = INDEX_BYTES_PER_ROW * indexes
        self.reader = pa.RecordBatchReader.from_batches(schema, self._counted())

    def _counted(self) -> Iterator[Any]:
        for batch in self._batches:
            self.rows += batch.num_rows
            self.size_bytes += int(batch.nbytes * _OVERHEAD) + batch.num_rows * self._index_bytes
            if self.size_bytes > self._bytes_max:
                # DuckDB converts this error, so the fact is kept here as well.
                self.is_too_large = True
                raise TooLarge(f"more than {self._bytes_max:,} bytes")
            yield batch


def whole(dataset: Any, bytes_max: int, *, indexes: int) -> Rows:
    """Read all rows of a version, file by file."""
    batches = dataset.scanner(batch_size=_BATCH_ROWS).to_batches()
    return Rows(dataset.schema, batches, bytes_max, indexes=indexes)


def estimated_bytes(dataset: Any, rows: int, *, indexes: int) -> int:
    """Estimate the memory of all rows by the first ones; 0 if there are no rows."""
    first = dataset.head(_SAMPLE_ROWS)
    if not first.num_rows or rows < 0:
        return 0
    each = first.nbytes * _OVERHEAD / first.num_rows + INDEX_BYTES_PER_ROW * indexes
    return int(each * rows)


def with_texts_as_views(dataset: Any) -> Any:
    """Declare texts and bytes as views, so that DuckDB filters them itself.

    Files rewritten by the deltalake wheel store texts as views, which Arrow cannot compare with
    DuckDB's filters. Arrow still applies all other filters and selects columns.
    """
    views = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}
    fields = [field.with_type(views.get(field.type, field.type)) for field in dataset.schema]
    fragments = list(dataset.get_fragments())
    return type(dataset)(fragments, pa.schema(fields), dataset.format, dataset.filesystem)


def appended(
    table: Table, files: Iterable[AddedFile], schema: pa.Schema, bytes_max: int, *, indexes: int
) -> Rows:
    """Read the rows of files added to a table."""
    by = table.partition_by
    batches = (batch for file in files for batch in read_batches(table.place, file, schema, by))
    return Rows(schema, batches, bytes_max, indexes=indexes)


def files_added(table: Table, after_version: int, to_version: int) -> list[AddedFile] | None:
    """Return the files added between two versions; None if the table must be loaded whole."""
    versions = range(after_version + 1, to_version + 1)
    if len(versions) > COMMITS_MAX:
        return None
    try:
        if any(table.history.commit(version).has_new_schema for version in versions):
            return None
        return table.added(after_version, to_version)
    except (TableRewritten, VersionGone):
        return None
