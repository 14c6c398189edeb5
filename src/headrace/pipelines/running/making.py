"""One table of a pipeline: made as it is wanted, or the one that is there brought up to that."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from headrace.lake.catalog import Generation, Lake
from headrace.lake.errors import IncompatibleSchema, TableLost
from headrace.lake.tables import Table
from headrace.pipelines.analysing import standing_tables
from headrace.pipelines.model import Place
from headrace.pipelines.problems import PipelineError, Problem, raise_if_any
from headrace.pipelines.running.table_properties import property_change, wanted_properties

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WantedTable:
    """A table as a pipeline wants it."""

    name: str
    columns: pa.Schema
    partition_by: tuple[str, ...] = ()
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    place: Place | None = None
    """Where it is declared; None of what stands beside a declared one."""
    is_made_again: bool = False
    """Whether no rows are lost if it was removed by hand and is made again."""


@dataclass(frozen=True, slots=True)
class TableMaking:
    """Makes the tables of one pipeline in a lake."""

    lake: Lake
    pipeline: str

    def make(self, wanted: WantedTable, generation: int, *, is_seen: bool) -> None:
        """Make a table, or give the one that is there the columns and properties that are new.

        One that readers are not to see yet is not what counts after this.
        """
        name, properties = wanted.name, wanted_properties(wanted.name, wanted.properties)
        entry = self.lake.catalog().tables.get(name)
        made = None if entry is None else entry.generations.get(generation)
        if entry is None or made is None:
            self._create(wanted, generation, properties)
            return
        self.check_own(name, made)
        try:
            self._bring_up(wanted, generation, properties, made.properties)
        except TableLost:
            if not wanted.is_made_again:
                raise
            _log.warning("%s was removed; it is made again", name)
            self._create(wanted, generation, properties)
        if entry.current is None and is_seen:
            self.lake.switch({name: generation})

    def check_own(self, name: str, made: Generation) -> None:
        """Refuse a table that another pipeline writes."""
        if made.pipeline not in ("", self.pipeline):
            raise PipelineError(
                f"{name} belongs to the pipeline {made.pipeline}; a table has one pipeline that"
                " writes it. Give yours another name"
            )

    def _create(self, wanted: WantedTable, generation: int, properties: Mapping[str, str]) -> None:
        self.lake.create(
            wanted.name,
            wanted.columns,
            partition_by=wanted.partition_by,
            pipeline=self.pipeline,
            comment=wanted.comment,
            generation=generation,
            properties=properties,
        )

    def _bring_up(
        self,
        wanted: WantedTable,
        generation: int,
        properties: Mapping[str, str],
        ours: Mapping[str, str],
    ) -> None:
        """Change what is there as far as that can be done; `ours` was put there by us."""
        table = self.lake.table(wanted.name, generation)
        wrong = standing_tables.complaints(table, wanted.partition_by, properties)
        raise_if_any(Problem(text, wanted.place) for text in wrong)
        try:
            table.evolve(wanted.columns)
        except IncompatibleSchema as error:
            text = f"{wanted.name} does not fit its table: {error}"
            raise PipelineError(Problem(text, wanted.place)) from error
        self._set_properties(table, properties, ours)

    def _set_properties(
        self, table: Table, properties: Mapping[str, str], ours: Mapping[str, str]
    ) -> None:
        """Bring a table's properties to what is wanted, and note which of them are ours.

        What comes is noted before and what goes after, so that after a crash between the next run
        knows of both. Only a value that was being changed, and is not declared by then, stays.
        """
        change = property_change(table.properties, properties, ours)
        noted = {**ours, **change.ours}
        if noted != ours:
            self.lake.note_properties(table.name, table.generation, noted)
        table.set_properties(change.put, change.dropped)
        if change.ours != noted:
            self.lake.note_properties(table.name, table.generation, change.ours)
