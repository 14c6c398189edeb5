"""The targets of a flow's batches: an appended or keyed table, change events, a topic.

Each target writes a batch at most once, identified by its token, and returns the outcome of the
rows. Targets are plain values, so that they can be pickled for the batch function.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from headrace.lake.applied_changes import ChangeRules, TooManyRows, apply_changes, is_applied
from headrace.lake.change_events import SEQUENCE
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.lake.tables import Table
from headrace.lake.upsert_decisions import Upsert
from headrace.pipelines.model import DRIVER_ROWS_MAX, RESERVED, Changes
from headrace.pipelines.queries.sequences import sequence_column, sequenced
from headrace.pipelines.running.flows.batch_files import Written
from headrace.pipelines.running.flows.expectations import Judged
from headrace.pipelines.running.flows.intake import Intake
from headrace.pipelines.running.flows.partition_rule import Deletes
from headrace.pipelines.running.flows.unreadable_records import SideOutputs
from headrace.pipelines.running.state.reports import Outcome
from headrace.pipelines.running.tables.places import TablePlace
from headrace.spark.tables.distributed_merges import Staged, apply_changes_by_tasks, upsert_by_tasks
from headrace.spark.tables.schemas import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DRIVER_BYTES_MAX = 32 << 20
"""Larger batches are merged by tasks, whatever their number of rows."""
_DELETED = "_deleted"


class Target(Protocol):
    """The target of a flow's batches."""

    def has(self, token: Token) -> bool:
        """Return whether the batch was written already."""

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        """Write a batch, whole or not at all."""


@dataclass(frozen=True, slots=True)
class AppendTarget:
    """A table that grows: tasks write the files, the driver commits them."""

    intake: Intake

    def has(self, token: Token) -> bool:
        return self.intake.place.table.has(token)

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        """Write a batch; several flows write at once and commit in turn, unless keys are unique."""
        if self.intake.has_unique_key:
            with self.intake.place.held() as table:
                written, judged = self.intake.files(rows, token, lineage)
                version = self._commit(table, written, token, lineage)
        else:
            written, judged = self.intake.files(rows, token, lineage)
            with self.intake.place.held() as table:
                version = self._commit(table, written, token, lineage)
        return outcome_of(written, written.rows_out, judged, version)

    def _commit(self, table: Table, written: Written, token: Token, lineage: Lineage) -> int:
        commit = table.replace if self.intake.is_replaced else table.append
        return commit(written.files, token, lineage)


@dataclass(frozen=True, slots=True)
class KeyedTarget:
    """A table kept by key: a row replaces the one with its key, or is merged into it."""

    intake: Intake
    how: Upsert
    driver_rows_max: int = DRIVER_ROWS_MAX

    def has(self, token: Token) -> bool:
        return self.intake.place.table.has(token)

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        place, spark = self.intake.place, rows.sparkSession
        with place.held() as table, place.scratch(token, "merging") as scratch:
            staged, written, judged = self.intake.staged(
                rows, token, lineage, table.schema, scratch
            )
            if is_small(staged, self.driver_rows_max):
                version = table.merge_rows(staged.table(), self.how, token, lineage)
            else:
                version = upsert_by_tasks(spark, table, staged, self.how, token, lineage)
        return outcome_of(written, written.rows_out, judged, version)


@dataclass(frozen=True, slots=True)
class ChangesTarget:
    """A table that change events are applied to, with the history that this needs."""

    intake: Intake
    history: TablePlace
    changes: Changes
    driver_rows_max: int = DRIVER_ROWS_MAX

    def has(self, token: Token) -> bool:
        return is_applied(self.intake.place.table, self.history.table, token)

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        from pyspark.sql import functions as F  # noqa: N812

        deleted = F.expr(self.changes.apply_as_deletes or "false")
        marked = rows.withColumn(_DELETED, F.coalesce(deleted, F.lit(False)))
        place = self.intake.place
        intake = replace(self.intake, deletes=Deletes(_DELETED, self.changes.keys))
        with place.scratch(token, "merging") as scratch:
            events = sequenced(marked, self.changes)
            schema = self._staged_schema(events)
            staged, written, judged = intake.staged(events, token, lineage, schema, scratch)
            with place.held():
                version = self._apply(staged, rows.sparkSession, token, lineage)
        return outcome_of(written, written.rows_out, judged, version)

    def _apply(self, staged: Staged, spark: "SparkSession", token: Token, lineage: Lineage) -> int:
        changes = self.changes
        sequence = sequence_column(changes, staged.files.schema.names)
        rules = ChangeRules(changes.keys, sequence, _DELETED, changes.scd_type)
        table, history = self.intake.place.table, self.history.table
        if is_small(staged, self.driver_rows_max):
            # Few events may meet many rows of their keys, which are merged by tasks.
            with suppress(TooManyRows):
                return apply_changes(table, history, staged.table(), rules, token, lineage)
        return apply_changes_by_tasks(spark, table, history, staged, rules, token, lineage)

    def _staged_schema(self, events: "DataFrame") -> pa.Schema:
        """Return the columns of the events, in the types of the tables where these have them.

        So a key has the same hash in a batch and in a table.
        """
        known = {field.name: field.type for field in self.intake.place.table.schema}
        known[sequence_column(self.changes, events.columns)] = self.history.table.schema.field(
            SEQUENCE
        ).type
        fields = (f for f in arrow_schema_of(events.schema) if f.name not in RESERVED)
        return pa.schema([pa.field(f.name, known.get(f.name, f.type)) for f in fields])


def is_small(staged: Staged, rows_max: int) -> bool:
    """Return whether the driver merges a batch itself, which is faster than tasks."""
    return staged.rows <= rows_max and staged.size_bytes <= DRIVER_BYTES_MAX


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """A topic that a flow writes to; the sink's own token prevents duplicates."""

    topic: str
    format: str
    guarantee: str
    properties: Mapping[str, str] = field(repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    side_outputs: SideOutputs | None = None
    quarantine: TablePlace | None = None
    """The quarantine for unreadable records of the flow's topics."""

    def has(self, token: Token) -> bool:
        return False

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812

        sent = Observation()
        shaped = shaped_for_topic(rows, self.format).observe(sent, F.count(F.lit(1)).alias("rows"))
        options = {
            "kafka.allow.auto.create.topics": "true",  # One task: no other creates it at once.
            **{f"kafka.{name}": text for name, text in self.properties.items()},
            "topic": self.topic,
            "guarantee": self.guarantee,
        }
        if self.guarantee == "exactly-once":
            options |= {
                "singleTransaction": "true",
                "token.writer": token.writer,
                "token.batch": str(token.batch),
            }
        options |= self.options
        if self.side_outputs is not None:
            self.side_outputs.begin()
        # One task, one transaction: readers see a batch whole.
        shaped.coalesce(1).write.format("headrace").mode("append").options(**options).save()
        count = int(sent.get["rows"])
        unreadable = self._quarantine_unreadable(rows.sparkSession, token, lineage)
        return Outcome(rows_in=count + unreadable, rows_out=count, quarantined=unreadable)

    def _quarantine_unreadable(self, spark: "SparkSession", token: Token, lineage: Lineage) -> int:
        """Commit unreadable records, in place of those of an earlier try of the batch."""
        if self.side_outputs is None or self.quarantine is None:
            return 0
        files = self.side_outputs.end(spark, lineage.offsets)
        if files or self.quarantine.table.has(token):
            with self.quarantine.held() as table:
                table.amend(files, token, lineage)
        return sum(file.rows for file in files)


def shaped_for_topic(rows: "DataFrame", value_format: str) -> "DataFrame":
    """Return records for the sink: unchanged, or all columns but the key as one JSON value."""
    if value_format == "kafka":
        return rows
    from pyspark.sql import functions as F  # noqa: N812

    kept = [name for name in ("key", "headers") if name in rows.columns]
    packed = [name for name in rows.columns if name not in kept]
    value = F.to_json(F.struct(*packed), {"ignoreNullFields": "false"}).alias("value")
    return rows.select(*kept, value)


def outcome_of(written: Written, rows_out: int, judged: Judged, version: int) -> Outcome:
    """Return the outcome of a batch from the counts of its tasks."""
    return Outcome(
        rows_in=written.rows_in,
        rows_out=rows_out,
        quarantined=written.rows_quarantined,
        dropped=written.dropped,
        broken=written.broken,
        warnings=judged.warnings,
        newest_ms=judged.newest_ms,
        version=version,
    )
