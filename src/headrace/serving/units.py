"""What is refreshed together: a table by itself, or both layers of a merged view."""

import os
import threading
from dataclasses import dataclass, field

import pyarrow as pa

from headrace.lake.catalog import MergedViewEntry
from headrace.lake.commits import CommitLog
from headrace.lake.tables import Table
from headrace.serving.database import Publication

_INDEX_ROWS_MIN = 100_000
"""Smaller tables are searched as quickly without an index."""
_INDEX_LOOKUPS_MIN = 3
_INDEXES_MAX = 3
"""Each costs memory, and time when rows are added."""
_COUNTED_COLUMNS_MAX = 64

CommitIdentity = tuple[int, int, int]


@dataclass(slots=True, eq=False)
class ServedTable:
    """A table of the lake as it was opened, and what is shown of it."""

    table: Table
    identity: CommitIdentity
    shown: Publication
    indexes: tuple[str, ...] = ()
    """The columns that rows are looked up by: the key of a merged view, or learned from use."""
    refused_bytes: int = 0
    """The size of its files when they were found too large to load; 0 if they never were."""
    lookups: dict[str, int] = field(default_factory=dict)
    """How often rows were asked for by each column alone."""

    @property
    def name(self) -> str:
        return self.table.name

    def count_lookup(self, column: str) -> None:
        if column in self.lookups or len(self.lookups) < _COUNTED_COLUMNS_MAX:
            self.lookups[column] = self.lookups.get(column, 0) + 1

    def column_to_index(self) -> str | None:
        """The column that a further index is worth its memory for."""
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
        """DuckDB has no indexes of lists, structs and maps."""
        schema = self.shown.schema
        return column in schema.names and not pa.types.is_nested(schema.field(column).type)


@dataclass(slots=True, eq=False)
class Unit:
    """Tables whose versions belong together, in the order in which these are looked up."""

    name: str
    tables: tuple[ServedTable, ...]
    view: MergedViewEntry | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_warm: bool = False
    """Whether it was asked for and is kept up to date since."""
    used_at: float = 0.0
    due_at: float = 0.0
    failure: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(one.shown.size_bytes for one in self.tables)


def opened(table: Table, keys: tuple[str, ...] = ()) -> ServedTable:
    """A table that nothing is shown of yet but its columns.

    DuckDB's indexes of several columns do not help lookups, so only a single key gets one.
    """
    shown = Publication(table.name, -1, table.schema)
    indexes = keys if len(keys) == 1 else ()
    return ServedTable(table, commit_identity(table, table.version), shown, indexes)


def commit_identity(table: Table, version: int) -> CommitIdentity:
    """What tells a commit from the one of the same number after a table was made anew."""
    found = os.stat(table.place / "_delta_log" / f"{version:020}.json")
    return version, found.st_ino, found.st_mtime_ns


def was_made_again(served: ServedTable) -> bool:
    """Whether the table was removed and made in the same place since it was looked at.

    A commit that is missing may just have been cleaned up; then later ones are there.
    """
    version = served.identity[0]
    try:
        return commit_identity(served.table, version) != served.identity
    except FileNotFoundError:
        return CommitLog(served.table.place).last_checkpoint() < version
