"""Lookups without an explicit transaction, in a third of the time of the usual path.

A single statement reads one state anyway; a transaction only serves to learn which one. The
database counts publications instead. If the count was even before and is the same after, nothing
was published in between, so the statement read the versions that Python has on record. Otherwise,
and in every unusual case, the lookup takes the usual path.

Plans are cached per shape of lookup and publication. Tables are read by their names in the store,
because DuckDB plans each statement again, including its views.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from headrace.lake.reading import table_path
from headrace.serving.answers import Answer, Column, FewRows
from headrace.serving.database import STORE, Database
from headrace.serving.errors import of_duckdb
from headrace.serving.lookups import Lookup, Shape, lookup_columns, lookup_sql
from headrace.serving.refreshing import Refresher
from headrace.serving.units import ServedTable, Unit
from headrace.serving.workers import Running

Rows = list[tuple[Any, ...]]

_ROWS_MAX = 1_000
_KEPT_MAX = 256
"""Cached statements per thread, and cached plans."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The plan of lookups of one shape, valid until the next publication."""

    changes: int
    spellings: Mapping[str, str]
    unit: Unit
    name: str
    sql: str
    column: str | None
    """Set for lookups by a single column."""
    columns: Sequence[Column]
    schema: pa.Schema
    times: Sequence[int]
    """The columns with times or dates."""
    versions: Mapping[str, int]


class QuickLookups:
    """Connections of the pool's threads, with their parsed statements."""

    def __init__(self, database: Database, refresher: Refresher) -> None:
        self._database = database
        self._refresher = refresher
        self._plans: dict[Shape, _Plan] = {}
        self._of_thread = threading.local()

    def look_up(self, lookup: Lookup, running: Running) -> Answer | None:
        """Return the answer, or None if the lookup must take the usual path."""
        before = self._database.changes
        plan = self._plan(lookup, before)
        if plan is None:
            return None
        self._refresher.touch(plan.unit)
        rows = self._rows(plan.sql, lookup.parameters, running)
        if rows is None or self._database.changes != before:
            return None
        if any(isinstance(row[number], str) for number in plan.times for row in rows):
            return None  # DuckDB returns years beyond Python's calendar as texts.
        if plan.column is not None:
            self._refresher.note_lookup(plan.name, plan.column)
        return Answer(
            columns=plan.columns,
            rows=FewRows(plan.schema, rows[: lookup.rows_max]),
            cut="rows" if len(rows) > lookup.rows_max else None,
            versions=plan.versions,
            scanned=(),
        )

    def _plan(self, lookup: Lookup, changes: int) -> _Plan | None:
        """Return the plan for the shape of a lookup, unless a publication is under way."""
        if changes % 2:
            return None
        shape = lookup.shape
        plan = self._plans.get(shape)
        spellings = self._refresher.spellings
        if plan is None or plan.changes != changes or plan.spellings is not spellings:
            plan = self._planned(shape, changes, spellings)
            if plan is None:
                return None
            if len(self._plans) >= _KEPT_MAX:
                self._plans.clear()
            self._plans[shape] = plan
        return plan

    def _planned(self, shape: Shape, changes: int, spellings: Mapping[str, str]) -> _Plan | None:
        written, conditions = shape
        name = self._refresher.resolve(written)
        unit = self._refresher.unit(name)
        if unit is None:
            return None
        types = self._refresher.column_types(name)
        tables = _behind(unit, name)
        schema = _flat_schema(unit, tables, types)
        if schema is None:
            return None
        columns = lookup_columns(name, types, [column for column, _ in conditions])
        is_table = tables[0].name == name
        path = f"{STORE}.{tables[0].shown.stored_as}" if is_table else table_path(name)
        return _Plan(
            changes,
            spellings,
            unit,
            name,
            sql=lookup_sql(path, types, columns, [count for _, count in conditions]),
            column=columns[0] if len(columns) == 1 else None,
            columns=[Column(column, type) for column, type in types.items()],
            schema=schema,
            times=[n for n, of in enumerate(schema.types) if pa.types.is_temporal(of)],
            versions={one.name: one.shown.version for one in tables},
        )

    def _rows(self, sql: str, parameters: list[str], running: Running) -> Rows | None:
        """Return the rows; None if there are many, which are better fetched as columns."""
        connection = self._connection()
        running.begin(connection.cursor)
        try:
            found = connection.execute(sql, parameters).fetchmany(_ROWS_MAX + 1)
        except (duckdb.CatalogException, duckdb.BinderException):
            return None  # The table was evicted or changed its columns just now.
        except duckdb.Error as error:
            raise of_duckdb(error) from error
        finally:
            running.end()
        return None if len(found) > _ROWS_MAX else found

    def _connection(self) -> "_Connection":
        found: _Connection | None = getattr(self._of_thread, "connection", None)
        if found is None:
            found = self._of_thread.connection = _Connection(self._database.cursor())
        return found


class _Connection:
    """The connection of a thread, which parses each statement once."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self.cursor = cursor
        self._statements: dict[str, duckdb.Statement] = {}

    def execute(self, sql: str, parameters: list[str]) -> duckdb.DuckDBPyConnection:
        statement = self._statements.get(sql)
        if statement is None:
            (statement,) = self.cursor.extract_statements(sql)
            if len(self._statements) >= _KEPT_MAX:
                self._statements.clear()
            self._statements[sql] = statement
        return self.cursor.execute(statement, parameters)


def _behind(unit: Unit, name: str) -> Sequence[ServedTable]:
    """Return the tables of a name: the table itself, or all layers of the view."""
    return [one for one in unit.tables if one.name == name] or unit.tables


def _flat_schema(
    unit: Unit, tables: Sequence[ServedTable], types: Mapping[str, str]
) -> pa.Schema | None:
    """Return the Arrow types of the rows, if all is loaded and Python keeps the values."""
    if not unit.is_warm or not all(one.shown.is_loaded for one in tables):
        return None
    schema = tables[-1].shown.schema  # The batch layer of a view.
    fields = [schema.field(column) for column in types]
    return None if any(pa.types.is_nested(one.type) for one in fields) else pa.schema(fields)
