"""Runs checked statements in a snapshot of the published tables, and bounds what comes back."""

from collections.abc import Sequence

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
from headrace.serving.lanes import Running
from headrace.serving.lookups import asked_columns, is_rounded, lookup, may_be_rounded
from headrace.serving.names import Names
from headrace.serving.questions import KeyedQuestion, Question
from headrace.serving.quick_lookups import QuickLookups
from headrace.serving.refreshing import Refresher
from headrace.serving.settings import ServingSettings
from headrace.serving.statements import StatementChecker, served_names

_ATTEMPTS = 3
_BATCH_ROWS = 2_048


class Queries:
    """Answers questions in the threads of a lane."""

    def __init__(self, database: Database, refresher: Refresher, settings: ServingSettings) -> None:
        self._database = database
        self._refresher = refresher
        self._settings = settings
        self._checker = StatementChecker(database.cursor)
        self.names = Names(database, refresher)
        self._quick = QuickLookups(database, refresher, self.names)

    def answer(self, question: Question, running: Running) -> Answer:
        found = self._checker.references(question.sql)
        names = served_names(found, self._refresher.spellings, self._refresher.closed_zones)
        return self._run(question, names, running)

    def look_up(self, question: KeyedQuestion, running: Running) -> Answer:
        """Rows by key; a value that is none of its column is named, not our SQL for it."""
        if any(map(may_be_rounded, question.parameters)):
            self._refuse_rounding(question)
        try:
            return self._looked_up(question, running)
        except InvalidQuery as error:
            raise self._unfit_value(question) or error from error

    def _refuse_rounding(self, question: KeyedQuestion) -> None:
        name, types, columns = self._asked(question)
        for column, values in zip(columns, question.conditions.values(), strict=True):
            for value in values:
                if is_rounded(value, types[column]):
                    raise UnfitValue(column, types[column], name, value)

    def _asked(self, question: KeyedQuestion) -> tuple[str, dict[str, str], list[str]]:
        """The table's own name, its columns with their types, and those that are asked for."""
        name = self.names.resolve(question.table)
        types = self.names.column_types(name)
        return name, types, asked_columns(name, types, list(question.conditions))

    def _unfit_value(self, question: KeyedQuestion) -> UnfitValue | None:
        name, types, columns = self._asked(question)
        with self._database.cursor() as cursor:
            for column, values in zip(columns, question.conditions.values(), strict=True):
                type = types[column]
                for value in values:
                    found = cursor.execute(f"SELECT TRY_CAST(? AS {type})", [value]).fetchone()
                    if found == (None,):
                        return UnfitValue(column, type, name, value)
        return None

    def _looked_up(self, question: KeyedQuestion, running: Running) -> Answer:
        """The quick way where all is loaded, else as any other query."""
        answer = self._quick.look_up(question, running) if question.conditions else None
        if answer is not None:
            return answer
        name, types, columns = self._asked(question)
        if len(columns) == 1:
            self._refresher.note_lookup(name, columns[0])
        counts = [len(values) for values in question.conditions.values()]
        sql = lookup(table_path(name), types, columns, counts)
        asked = Question(sql, question.parameters, question.rows_max)
        return self._run(asked, frozenset({name}), running)

    def _run(self, question: Question, names: frozenset[str], running: Running) -> Answer:
        """Have the tables ready, then ask; a table given up in between is made ready again."""
        needed = self._tables_behind(names)
        filters_texts = False
        for _ in range(_ATTEMPTS):
            self._refresher.warm(names, running.seconds_left)
            with self._database.snapshot(needed, filters_texts=filters_texts) as snapshot:
                if not all(_is_usable(snapshot, name) for name in needed):
                    continue
                try:
                    return self._ask(question, needed, snapshot, running)
                except UnfilteredTexts:
                    if filters_texts:
                        raise
                    filters_texts = True
        raise TableUnavailable("tables are given up as fast as they are loaded; ask again later")

    def _ask(
        self, question: Question, needed: Sequence[str], snapshot: Snapshot, running: Running
    ) -> Answer:
        running.begin(snapshot.cursor)
        try:
            relation = snapshot.cursor.sql(question.sql, params=question.parameters)
            columns = [
                Column(name, str(type))
                for name, type in zip(unique(relation.columns), relation.types, strict=True)
            ]
            rows, cut = bounded(
                relation.to_arrow_reader(_BATCH_ROWS),
                relation.columns,
                question.rows_max,
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
        """The tables that these names are, or are computed from."""
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
