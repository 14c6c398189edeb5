"""Lookups by key without a transaction of their own: a third of the time of the usual way.

One statement sees one moment by itself; what it costs to learn *which* moment is saved. The
database counts publications: if the count was even before and is the same after, nothing was
published in between, and what Python knows of the tables is what the statement saw. Else, and
whenever anything is out of the ordinary, the usual way is taken.

What Python knows is worked out once per shape of question and publication, and tables are read
under their names in the store, since DuckDB plans each statement anew, the views in it too. That
is most of a lookup, so those by one value of one column share statements (`gathering`).
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from headrace.lake.reading import table_path
from headrace.serving.answers import Answer, Column, FewRows
from headrace.serving.database import STORE, Database
from headrace.serving.errors import of_duckdb
from headrace.serving.gathering import Gathering
from headrace.serving.lanes import Running
from headrace.serving.lookups import asked_columns, lookup, lookups_at_once
from headrace.serving.names import Names
from headrace.serving.questions import KeyedQuestion, Shape
from headrace.serving.refreshing import Refresher
from headrace.serving.units import ServedTable, Unit

Rows = list[tuple[Any, ...]]

_ROWS_MAX = 1_000
_KEPT_MAX = 256
"""So many statements are remembered by each thread, and so many plans by all."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """How questions of one shape are answered while nothing is published."""

    changes: int
    spellings: Mapping[str, str]
    unit: Unit
    name: str
    path: str
    types: Mapping[str, str]
    sql: str
    column: str | None
    """Set if rows are looked up by one column alone."""
    columns: Sequence[Column]
    schema: pa.Schema
    times: Sequence[int]
    """Which columns have times or dates."""
    versions: Mapping[str, int]
    gathering: Gathering[str, Rows | None] = field(default_factory=Gathering)


class QuickLookups:
    """Connections of the lookup lane's threads, with the statements they have parsed."""

    def __init__(self, database: Database, refresher: Refresher, names: Names) -> None:
        self._database = database
        self._refresher = refresher
        self._names = names
        self._plans: dict[Shape, _Plan] = {}
        self._of_thread = threading.local()

    def look_up(self, question: KeyedQuestion, running: Running) -> Answer | None:
        """The answer, or None where it has to be found the usual way."""
        before = self._database.changes
        plan = self._plan(question, before)
        if plan is None:
            return None
        self._refresher.touch(plan.unit)
        rows = self._rows(plan, question.parameters, running)
        if rows is None or self._database.changes != before:
            return None
        if any(isinstance(row[number], str) for number in plan.times for row in rows):
            return None  # DuckDB tells years beyond Python's calendar in words of its own.
        if plan.column is not None:
            self._refresher.note_lookup(plan.name, plan.column)
        return Answer(
            columns=plan.columns,
            rows=FewRows(plan.schema, rows[: question.rows_max]),
            cut="rows" if len(rows) > question.rows_max else None,
            versions=plan.versions,
            scanned=(),
        )

    def _plan(self, question: KeyedQuestion, changes: int) -> _Plan | None:
        """The plan of a question of this shape, unless something is being published."""
        if changes % 2:
            return None
        shape = question.shape
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
        name = self._names.resolve(written)
        unit = self._refresher.unit(name)
        if unit is None:
            return None
        types = self._names.column_types(name)
        tables = _behind(unit, name)
        schema = _flat_schema(unit, tables, types)
        if schema is None:
            return None
        columns = asked_columns(name, types, [column for column, _ in conditions])
        is_table = tables[0].name == name
        path = f"{STORE}.{tables[0].shown.stored_as}" if is_table else table_path(name)
        return _Plan(
            changes,
            spellings,
            unit,
            name,
            path,
            types,
            sql=lookup(path, types, columns, [count for _, count in conditions]),
            column=columns[0] if len(columns) == 1 else None,
            columns=[Column(column, type) for column, type in types.items()],
            schema=schema,
            times=[n for n, of in enumerate(schema.types) if pa.types.is_temporal(of)],
            versions={one.name: one.shown.version for one in tables},
        )

    def _rows(self, plan: _Plan, parameters: list[str], running: Running) -> Rows | None:
        """Nothing if there are many: those are better fetched as columns."""
        if plan.column is None or len(parameters) != 1:
            return self._rows_alone(plan.sql, parameters, running)
        return plan.gathering.ask(
            parameters[0],
            alone=lambda: self._rows_alone(plan.sql, parameters, running),
            together=lambda values: self._rows_together(plan, values, running),
            seconds=running.seconds_left,
        )

    def _rows_alone(self, sql: str, parameters: list[str], running: Running) -> Rows | None:
        try:
            found = self._executed(sql, parameters, running)
        except (duckdb.CatalogException, duckdb.BinderException):
            return None  # The table was given up or changed its columns at this very moment.
        except duckdb.Error as error:
            raise of_duckdb(error) from error
        return None if len(found) > _ROWS_MAX else found

    def _rows_together(
        self, plan: _Plan, values: Sequence[str], running: Running
    ) -> list[Rows | None] | None:
        """The rows of each value; none at all where the statement fails, whosever fault it is."""
        assert plan.column is not None
        sql = lookups_at_once(plan.path, plan.types, plan.column, len(values))
        try:
            found = self._executed(sql, list(values), running)
        except duckdb.Error:
            return None  # Each asks alone, and is told what is wrong with its own.
        if len(found) > _ROWS_MAX:
            return None
        width = len(plan.columns)
        return [
            [row[:width] for row in found if row[width + number]] for number in range(len(values))
        ]

    def _executed(self, sql: str, parameters: list[str], running: Running) -> Rows:
        connection = self._connection()
        running.begin(connection.cursor)
        try:
            return connection.execute(sql, parameters).fetchmany(_ROWS_MAX + 1)
        finally:
            running.end()

    def _connection(self) -> "_Connection":
        found: _Connection | None = getattr(self._of_thread, "connection", None)
        if found is None:
            found = self._of_thread.connection = _Connection(self._database.cursor())
        return found


class _Connection:
    """One thread's connection; statements are parsed once."""

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
    """The tables of the unit that a name reads: itself, or all layers of the view."""
    return [one for one in unit.tables if one.name == name] or unit.tables


def _flat_schema(
    unit: Unit, tables: Sequence[ServedTable], types: Mapping[str, str]
) -> pa.Schema | None:
    """The Arrow types of the rows, if all is loaded and values come back as they went in."""
    if not unit.is_warm or not all(one.shown.is_loaded for one in tables):
        return None
    schema = tables[-1].shown.schema  # Of a view that is the batch layer.
    fields = [schema.field(column) for column in types]
    return None if any(pa.types.is_nested(one.type) for one in fields) else pa.schema(fields)
