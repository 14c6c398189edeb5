"""Run checked statements in a snapshot of the published tables, with bounded results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from headrace.lake.reading import table_path
from headrace.serving.answers import Answer, Column, bounded, unique
from headrace.serving.database import Database, Snapshot
from headrace.serving.errors import (
    InvalidQuery,
    TableUnavailable,
    UnfilteredTexts,
    UnfitValue,
    of_arrow,
    of_duckdb,
)
from headrace.serving.lookups import Lookup, is_rounded, lookup_columns, lookup_sql, may_be_rounded
from headrace.serving.quick_lookups import QuickLookups
from headrace.serving.refreshing import Refresher
from headrace.serving.settings import ServingSettings
from headrace.serving.statements import StatementChecker, served_names
from headrace.serving.workers import Running

_ATTEMPTS = 3
_BATCH_ROWS = 2_048


@dataclass(frozen=True, slots=True)
class Query:
    """SQL with its parameters, and the maximum of rows."""

    sql: str
    parameters: Sequence[Any] | Mapping[str, Any] | None
    rows_max: int


class Queries:
    """Answers queries and lookups in the threads of a pool."""

    def __init__(self, database: Database, refresher: Refresher, settings: ServingSettings) -> None:
        self._database = database
        self._refresher = refresher
        self._settings = settings
        self._checker = StatementChecker(database.cursor)
        self._quick = QuickLookups(database, refresher)

    def answer(self, query: Query, running: Running) -> Answer:
        found = self._checker.references(query.sql)
        names = served_names(found, self._refresher.spellings, self._refresher.closed_zones)
        return self._run(query, names, running)

    def look_up(self, lookup: Lookup, running: Running) -> Answer:
        """Look up rows; the error of an invalid value names the value, not the generated SQL."""
        if any(map(may_be_rounded, lookup.parameters)):
            self._refuse_rounding(lookup)
        try:
            return self._looked_up(lookup, running)
        except InvalidQuery as error:
            raise self._unfit_value(lookup) or error from error

    def _refuse_rounding(self, lookup: Lookup) -> None:
        name, types, columns = self._resolved(lookup)
        for column, values in zip(columns, lookup.conditions.values(), strict=True):
            for value in values:
                if is_rounded(value, types[column]):
                    raise UnfitValue(column, types[column], name, value)

    def _resolved(self, lookup: Lookup) -> tuple[str, dict[str, str], list[str]]:
        """Return the table's own name, its columns with types, and the columns of the lookup."""
        name = self._refresher.resolve(lookup.table)
        types = self._refresher.column_types(name)
        return name, types, lookup_columns(name, types, list(lookup.conditions))

    def _unfit_value(self, lookup: Lookup) -> UnfitValue | None:
        name, types, columns = self._resolved(lookup)
        with self._database.cursor() as cursor:
            for column, values in zip(columns, lookup.conditions.values(), strict=True):
                type = types[column]
                for value in values:
                    found = cursor.execute(f"SELECT TRY_CAST(? AS {type})", [value]).fetchone()
                    if found == (None,):
                        return UnfitValue(column, type, name, value)
        return None

    def _looked_up(self, lookup: Lookup, running: Running) -> Answer:
        """Use the quick path if all tables are loaded, otherwise a usual query."""
        answer = self._quick.look_up(lookup, running) if lookup.conditions else None
        if answer is not None:
            return answer
        name, types, columns = self._resolved(lookup)
        if len(columns) == 1:
            self._refresher.note_lookup(name, columns[0])
        counts = [len(values) for values in lookup.conditions.values()]
        sql = lookup_sql(table_path(name), types, columns, counts)
        query = Query(sql, lookup.parameters, lookup.rows_max)
        return self._run(query, frozenset({name}), running)

    def _run(self, query: Query, names: frozenset[str], running: Running) -> Answer:
        """Load the tables, then run; retry if a table is evicted in between."""
        needed = self._tables_behind(names)
        filters_texts = False
        for _ in range(_ATTEMPTS):
            self._refresher.warm(names, running.seconds_left)
            with self._database.snapshot(needed, filters_texts=filters_texts) as snapshot:
                if not all(_is_usable(snapshot, name) for name in needed):
                    continue
                try:
                    return self._ask(query, needed, snapshot, running)
                except UnfilteredTexts:
                    if filters_texts:
                        raise
                    filters_texts = True
        raise TableUnavailable("tables are evicted as fast as they are loaded; retry later")

    def _ask(
        self, query: Query, needed: Sequence[str], snapshot: Snapshot, running: Running
    ) -> Answer:
        running.begin(snapshot.cursor)
        try:
            relation = snapshot.cursor.sql(query.sql, params=query.parameters)
            columns = [
                Column(name, str(type))
                for name, type in zip(unique(relation.columns), relation.types, strict=True)
            ]
            rows, cut = bounded(
                relation.to_arrow_reader(_BATCH_ROWS),
                relation.columns,
                query.rows_max,
                self._settings.answer_bytes_max,
            )
        except duckdb.Error as error:
            raise of_duckdb(error) from error
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise of_arrow(error) from error
        finally:
            running.end()
        seen = snapshot.publications
        return Answer(
            columns=columns,
            rows=rows,
            cut=cut,
            versions={name: seen[name].version for name in needed},
            scanned=[name for name in needed if not seen[name].is_loaded],
        )

    def _tables_behind(self, names: frozenset[str]) -> list[str]:
        """Return the tables of these names, and those below views."""
        tables: set[str] = set()
        for name in names:
            unit = self._refresher.unit(name)
            if unit is None:
                continue
            members = [one.name for one in unit.tables]
            tables.update([name] if name in members else members)
        return sorted(tables)


def _is_usable(snapshot: Snapshot, name: str) -> bool:
    found = snapshot.publications.get(name)
    return found is not None and (found.is_loaded or found.dataset is not None)
