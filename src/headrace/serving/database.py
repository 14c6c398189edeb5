"""The DuckDB database in memory: loaded tables, and the views through which queries read them.

A name such as `refined.orders` is always a view. The view of a loaded table reads a table in the
schema `store`. The view of any other table reads a name that exists only in connections prepared to
scan its files. Such a view is listed and described like any other, but fails in other connections,
so no query reads an empty table by mistake.

Publications and queries are transactions: a query reads the versions that were published when it
began, however many are published meanwhile.
"""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa

from headrace.lake.reading import quoted, table_path
from headrace.serving.loading import with_texts_as_views

STORE = "store"
_KEPT_PUBLICATIONS = 8
"""Publications kept per name, for queries that have just begun."""

_KEPT_SCHEMAS = 1_024


@dataclass(frozen=True, slots=True)
class Publication:
    """A visible version of a table, and the place of its rows."""

    name: str
    version: int
    schema: pa.Schema
    stored_as: str | None = None
    """The table in the store; None if the files are scanned."""
    dataset: Any = None
    """The files to scan; None if the table is unused or loaded."""
    rows: int = -1
    size_bytes: int = 0

    @property
    def is_loaded(self) -> bool:
        return self.stored_as is not None


@dataclass(frozen=True, slots=True)
class Change:
    """The changes of one publication, visible at the same moment."""

    publications: Sequence[Publication] = ()
    appended: Mapping[str, Any] = field(default_factory=dict)
    """Readers of record batches to append to tables of the store."""
    views: Mapping[str, str] = field(default_factory=dict)
    """The SELECT of each merged view."""
    forgotten: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A connection in a transaction, and the publications that it reads."""

    cursor: duckdb.DuckDBPyConnection
    publications: Mapping[str, Publication]


class Database:
    """A database without access to files and with a fixed configuration."""

    def __init__(self, memory_bytes: int, threads: int, default_zone: str) -> None:
        self._root = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": f"{memory_bytes}B",
                "threads": threads,
                "temp_directory": "",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "python_enable_replacements": "false",
            },
        )
        self._default_zone = default_zone
        self._writer = self._root.cursor()
        self._publishing = threading.Lock()
        self.types_of = lru_cache(_KEPT_SCHEMAS)(self._types_of)
        self._zones: set[str] = set()
        self._serials = itertools.count(1)
        self.changes = 0
        """Incremented at the begin and at the end of a publication: odd while one is under way."""
        self._publications: dict[int, Publication] = {}
        self._serials_of: dict[str, list[int]] = {}
        self._root.execute(f"CREATE SCHEMA {STORE}")
        self._root.execute(f"CREATE TABLE {STORE}.published (name VARCHAR, serial BIGINT)")
        self.add_zone(default_zone)
        self._lock()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        return self._root.cursor()

    def add_zone(self, zone: str) -> None:
        if zone not in self._zones:
            self._root.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(zone)}")
            self._zones.add(zone)

    def load(self, batches: pa.RecordBatchReader, indexes: Iterable[str]) -> str:
        """Load rows into a new table of the store, which no view reads yet.

        If an index fails, the table is dropped, because no caller receives its name.
        """
        name = f"t{next(self._serials)}"
        with self.cursor() as cursor:
            cursor.register("incoming", batches)
            cursor.execute(f"CREATE TABLE {STORE}.{name} AS SELECT * FROM incoming")
        try:
            for column in indexes:
                self.index(name, column)
        except BaseException:
            self.drop(name)
            raise
        return name

    def index(self, stored_as: str, column: str) -> None:
        name = quoted(f"{stored_as} by {column}")
        with self.cursor() as cursor:
            cursor.execute(f"CREATE INDEX {name} ON {STORE}.{stored_as} ({quoted(column)})")

    def drop(self, stored_as: str) -> None:
        """Drop a table of the store; queries that read it keep it until they end."""
        with self._publishing, self.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {STORE}.{stored_as}")

    def publish(self, change: Change, on_published: Callable[[], None] = lambda: None) -> None:
        """Make a change visible to all new queries, as a whole.

        `on_published` updates the Python objects before the publication counts as ended.
        """
        with self._publishing:
            self.changes += 1
            try:
                self._publish(change)
                on_published()
            finally:
                self.changes += 1

    @contextmanager
    def snapshot(
        self, names: Iterable[str] = (), *, filters_texts: bool = False
    ) -> Iterator[Snapshot]:
        """Open a connection for one query, which may scan the files of these tables.

        With `filters_texts`, DuckDB filters texts itself instead of Arrow.
        """
        with self.cursor() as cursor:
            cursor.execute(f"SET schema = '{self._default_zone}'")
            cursor.begin()
            rows = cursor.execute(f"SELECT name, serial FROM {STORE}.published").fetchall()
            seen = {name: self._publications[serial] for name, serial in rows}
            for name in names:
                if (found := seen.get(name)) is not None and found.dataset is not None:
                    files = with_texts_as_views(found.dataset) if filters_texts else found.dataset
                    cursor.register(scan_name(name), files)
            yield Snapshot(cursor, seen)

    def close(self) -> None:
        self._writer.close()
        self._root.close()

    def _publish(self, change: Change) -> None:
        serials = {one.name: next(self._serials) for one in change.publications}
        # Remembered before it is visible, so that every visible serial has a publication.
        for one in change.publications:
            self._remember(serials[one.name], one)
        self._writer.begin()
        try:
            self._apply(change, serials)
            self._writer.commit()
        except BaseException:
            self._writer.rollback()
            raise

    def _types_of(self, schema: pa.Schema) -> dict[str, str]:
        """Return the columns of an Arrow schema with their DuckDB types."""
        with self.cursor() as cursor:
            cursor.register("columns", schema.empty_table())
            rows = cursor.execute("DESCRIBE SELECT * FROM columns").fetchall()
        return {row[0]: row[1] for row in rows}

    def _lock(self) -> None:
        """Lock the configuration; the order matters, since each statement may forbid others."""
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")
        self._root.execute("SET GLOBAL allow_community_extensions = false")
        self._root.execute("SET GLOBAL allowed_configs = ['schema']")
        self._root.execute("SET GLOBAL enable_external_access = false")
        self._root.execute("SET GLOBAL lock_configuration = true")

    def _apply(self, change: Change, serials: Mapping[str, int]) -> None:
        writer = self._writer
        for stored_as, batches in change.appended.items():
            writer.register("incoming", batches)
            writer.execute(f"INSERT INTO {STORE}.{stored_as} SELECT * FROM incoming")
            writer.unregister("incoming")
        for name in (*serials, *change.forgotten):
            writer.execute(f"DELETE FROM {STORE}.published WHERE name = ?", [name])
        for one in change.publications:
            self._show(one)
            row = [one.name, serials[one.name]]
            writer.execute(f"INSERT INTO {STORE}.published VALUES (?, ?)", row)
        for name, select in change.views.items():
            writer.execute(f"CREATE OR REPLACE VIEW {table_path(name)} AS {select}")
        for name in change.forgotten:
            writer.execute(f"DROP VIEW IF EXISTS {table_path(name)}")

    def _show(self, publication: Publication) -> None:
        """Create the view; DuckDB reads the columns of its source."""
        source = f"{STORE}.{publication.stored_as}"
        if not publication.is_loaded:
            source = quoted(scan_name(publication.name))
            self._writer.register(scan_name(publication.name), publication.schema.empty_table())
        path = table_path(publication.name)
        self._writer.execute(f"CREATE OR REPLACE VIEW {path} AS SELECT * FROM {source}")

    def _remember(self, serial: int, publication: Publication) -> None:
        self._publications[serial] = publication
        known = self._serials_of.setdefault(publication.name, [])
        known.append(serial)
        if len(known) > _KEPT_PUBLICATIONS:
            del self._publications[known.pop(0)]


def scan_name(name: str) -> str:
    """Return the name of a table's files in a connection that scans them."""
    return f"files of {name}"
