"""Units of refresh: a table, or both layers of a merged view."""

import os
import threading
from dataclasses import dataclass, field

import pyarrow as pa

from headrace.lake.catalog import MergedViewEntry
from headrace.lake.commit_log import CommitLog
from headrace.lake.tables import Table
from headrace.serving.database import Publication

_INDEX_ROWS_MIN = 100_000
"""Smaller tables are searched as fast without an index."""
_INDEX_LOOKUPS_MIN = 3
_INDEXES_MAX = 3
"""Each index costs memory, and time when rows are appended."""
_COUNTED_COLUMNS_MAX = 64

CommitIdentity = tuple[int, int, int]


@dataclass(slots=True, eq=False)
class ServedTable:
    """An opened table of the lake, and its visible version."""

    table: Table
    identity: CommitIdentity
    shown: Publication
    indexes: tuple[str, ...] = ()
    """The indexed columns: the key of a merged view, or columns of frequent lookups."""
    refused_bytes: int = 0
    """The size of the files when they were too large to load; 0 if they never were."""
    lookups: dict[str, int] = field(default_factory=dict)
    """The number of lookups by each single column."""

    @property
    def name(self) -> str:
        return self.table.name

    def count_lookup(self, column: str) -> None:
        if column in self.lookups or len(self.lookups) < _COUNTED_COLUMNS_MAX:
            self.lookups[column] = self.lookups.get(column, 0) + 1

    def column_to_index(self) -> str | None:
        """Return the column that deserves a further index."""
        if len(self.indexes) >= _INDEXES_MAX or self.shown.rows < _INDEX_ROWS_MIN:
            return None
        often = {
            column: times
            for column, times in self.lookups.copy().items()
            if times >= _INDEX_LOOKUPS_MIN
            and column not in self.indexes
            and self._can_be_indexed(column)
        }
        return max(often, key=often.__getitem__, default=None)

    def _can_be_indexed(self, column: str) -> bool:
        """DuckDB cannot index lists, structs and maps."""
        schema = self.shown.schema
        return column in schema.names and not pa.types.is_nested(schema.field(column).type)


@dataclass(slots=True, eq=False)
class Unit:
    """Tables that are refreshed together, in the order in which their versions are read."""

    name: str
    tables: tuple[ServedTable, ...]
    view: MergedViewEntry | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_warm: bool = False
    """True from the first query on; the unit is refreshed since."""
    used_at: float = 0.0
    due_at: float = 0.0
    failure: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(one.shown.size_bytes for one in self.tables)


def opened(table: Table, keys: tuple[str, ...] = ()) -> ServedTable:
    """Open a table, of which only the columns are visible yet.

    Indexes of several columns do not help DuckDB's lookups, so only a single key gets one.
    """
    shown = Publication(table.name, -1, table.schema)
    indexes = keys if len(keys) == 1 else ()
    return ServedTable(table, commit_identity(table, table.version), shown, indexes)


def commit_identity(table: Table, version: int) -> CommitIdentity:
    """Identify a commit, to detect a table that was removed and created again."""
    found = os.stat(table.place / "_delta_log" / f"{version:020}.json")
    return version, found.st_ino, found.st_mtime_ns


def was_recreated(served: ServedTable) -> bool:
    """Return whether the table was removed and created again in the same place.

    A missing commit may just have been cleaned up; then later commits exist.
    """
    version = served.identity[0]
    try:
        return commit_identity(served.table, version) != served.identity
    except FileNotFoundError:
        return CommitLog(served.table.place).last_checkpoint() < version
