"""The DuckDB database in memory: loaded tables, and the views under which they are seen.

A name such as `refined.orders` is always a view: over a table in the schema `store` once it is
loaded, else over a name that exists only for a connection which was given the table's files to
scan. Such a view is listed and described like any other, but a query that was not prepared for it
fails; it can never see an empty table by mistake.

What is visible changes in transactions, and a query runs in one: it sees one version of every
table, those that were published when it began, however many are published meanwhile.
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
"""So many publications of a name are remembered, for queries that have just begun."""

_KEPT_SCHEMAS = 1_024


@dataclass(frozen=True, slots=True)
class Publication:
    """What a name shows: a version of a table, and where its rows are."""

    name: str
    version: int
    schema: pa.Schema
    stored_as: str | None = None
    """The table in the store; None if the files are scanned."""
    dataset: Any = None
    """The files to scan; None if nobody has asked for the table yet, or it is loaded."""
    rows: int = -1
    size_bytes: int = 0

    @property
    def is_loaded(self) -> bool:
        return self.stored_as is not None


@dataclass(frozen=True, slots=True)
class Change:
    """What one publication changes, all at one moment."""

    publications: Sequence[Publication] = ()
    appended: Mapping[str, Any] = field(default_factory=dict)
    """Readers of record batches to append to tables of the store."""
    views: Mapping[str, str] = field(default_factory=dict)
    """The SELECT of each merged view."""
    forgotten: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A connection in a transaction, and what it sees."""

    cursor: duckdb.DuckDBPyConnection
    publications: Mapping[str, Publication]


class Database:
    """One database, locked: it reaches no file, and its configuration does not change."""

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
        """Goes up when a publication begins and when it has ended: odd while one is under way."""
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
        """Put rows into a new table of the store, which nothing shows yet.

        Nobody learns the name of one whose index fails, so it is dropped here.
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
        """Give a table of the store up; queries that see it keep it until they end."""
        with self._publishing, self.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {STORE}.{stored_as}")

    def publish(self, change: Change, on_published: Callable[[], None] = lambda: None) -> None:
        """Let all new queries see this, and none of them a part of it.

        `on_published` tells Python's side of it, before anyone takes the change for done.
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
        """A connection for one query, which may scan the files of these tables.

        It may be told to filter by texts itself, and not by Arrow while the files are read.
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
        # Known before it is visible, so that whoever sees a serial finds what it stands for.
        for one in change.publications:
            self._remember(serials[one.name], one)
        self._writer.begin()
        try:
            self._carry_out(change, serials)
            self._writer.commit()
        except BaseException:
            self._writer.rollback()
            raise

    def _types_of(self, schema: pa.Schema) -> dict[str, str]:
        """The columns of an Arrow schema with the types that DuckDB gives them."""
        with self.cursor() as cursor:
            cursor.register("columns", schema.empty_table())
            rows = cursor.execute("DESCRIBE SELECT * FROM columns").fetchall()
        return {row[0]: row[1] for row in rows}

    def _lock(self) -> None:
        """In this order: each of these is the last moment to set what it locks."""
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")
        self._root.execute("SET GLOBAL allow_community_extensions = false")
        self._root.execute("SET GLOBAL allowed_configs = ['schema']")
        self._root.execute("SET GLOBAL enable_external_access = false")
        self._root.execute("SET GLOBAL lock_configuration = true")

    def _carry_out(self, change: Change, serials: Mapping[str, int]) -> None:
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
        """Make the view; DuckDB looks at its source's columns to do so."""
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
    """Under this name a connection finds the files of a table that is not loaded."""
    return f"files of {name}"
