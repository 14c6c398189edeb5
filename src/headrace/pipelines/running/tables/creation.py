"""The creation of one table, or the update of an existing one to its declaration."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from headrace.lake.catalog import PROPERTIES, Generation, Lake
from headrace.lake.errors import IncompatibleSchema, TableLost
from headrace.lake.metadata import APPEND_ONLY, is_append_only
from headrace.lake.rewriting import evolve
from headrace.lake.tables import Table
from headrace.pipelines.analysing import existing_tables
from headrace.pipelines.analysing.existing_tables import is_for_new_tables
from headrace.pipelines.declaring.names import zone_of
from headrace.pipelines.model import RAW, Location
from headrace.pipelines.problems import PipelineError, Problem, raise_if_any


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """The properties to set on and remove from an existing table."""

    put: Mapping[str, str]
    dropped: frozenset[str]
    ours: Mapping[str, str]
    """The pipeline's own properties after the change."""


def wanted_properties(name: str, declared: Mapping[str, str]) -> dict[str, str]:
    """Return the declared properties, and those of the table's zone."""
    unknown = [key for key in declared if not key.startswith("delta.")]
    if unknown:
        raise PipelineError(
            f"{name}: {', '.join(unknown)} is not a property of a Delta table; they begin with"
            " `delta.`, as delta.logRetentionDuration does"
        )
    only_grows = zone_of(name) == RAW or is_append_only(declared)
    return {**declared, **(APPEND_ONLY if only_grows else {})}


def property_change(
    existing: Mapping[str, str], wanted: Mapping[str, str], ours: Mapping[str, str]
) -> PropertyChange:
    """Return the change from a table's properties to the wanted ones; `ours` were set before.

    A removed property falls back to the default of new tables, if there is one.
    """
    gone = {
        key
        for key, value in ours.items()
        if key not in wanted and existing.get(key) == value and not is_for_new_tables(key)
    }
    usual = {key: PROPERTIES[key] for key in gone if key in PROPERTIES}
    return PropertyChange(
        put={**usual, **wanted},
        dropped=frozenset(gone - usual.keys()),
        ours={
            key: value
            for key, value in wanted.items()
            if existing.get(key) != value or ours.get(key) == value
        },
    )


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WantedTable:
    """The declaration of a table."""

    name: str
    columns: pa.Schema
    partition_by: tuple[str, ...] = ()
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    location: Location | None = None
    """The place of the declaration; None for tables next to a declared one."""
    is_made_again: bool = False
    """True if a table that was removed by hand can be created again without loss."""


@dataclass(frozen=True, slots=True)
class TableMaking:
    """Creates the tables of one pipeline in a lake."""

    lake: Lake
    pipeline: str

    def make(self, wanted: WantedTable, generation: int, *, is_seen: bool) -> None:
        """Create a table, or add new columns and properties to the existing one.

        A table that is not `is_seen` does not become the current generation.
        """
        name, properties = wanted.name, wanted_properties(wanted.name, wanted.properties)
        entry = self.lake.catalog().tables.get(name)
        made = None if entry is None else entry.generations.get(generation)
        if entry is None or made is None:
            self._create(wanted, generation, properties)
            return
        self.check_own(name, made)
        try:
            self._update_table(wanted, generation, properties, made.properties)
        except TableLost:
            if not wanted.is_made_again:
                raise
            _log.warning("removed table created again", extra={"table": name})
            self._create(wanted, generation, properties)
        if entry.current is None and is_seen:
            self.lake.switch({name: generation})

    def check_own(self, name: str, made: Generation) -> None:
        """Reject a table that another pipeline writes."""
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

    def _update_table(
        self,
        wanted: WantedTable,
        generation: int,
        properties: Mapping[str, str],
        ours: Mapping[str, str],
    ) -> None:
        """Update the existing table as far as possible; `ours` are the pipeline's properties."""
        table = self.lake.table(wanted.name, generation)
        wrong = existing_tables.complaints(table, wanted.partition_by, properties)
        raise_if_any(Problem(text, wanted.location) for text in wrong)
        try:
            evolve(table, wanted.columns)
        except IncompatibleSchema as error:
            text = f"{wanted.name} does not fit its table: {error}"
            raise PipelineError(Problem(text, wanted.location)) from error
        self._set_properties(table, properties, ours)

    def _set_properties(
        self, table: Table, properties: Mapping[str, str], ours: Mapping[str, str]
    ) -> None:
        """Update a table's properties, and note which of them the pipeline has set.

        Additions are noted before the change and removals after it, so that the next run finds both
        after a crash. One value can remain: it was being changed at the crash, and the next run no
        longer declares it.
        """
        change = property_change(table.properties, properties, ours)
        noted = {**ours, **change.ours}
        if noted != ours:
            self.lake.record_properties(table.name, table.generation, noted)
        table.set_properties(change.put, change.dropped)
        if change.ours != noted:
            self.lake.record_properties(table.name, table.generation, change.ours)
