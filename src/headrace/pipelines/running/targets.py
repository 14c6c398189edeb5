"""Where a flow's batches go: a table that grows or is kept by key, change events, a topic.

Each target writes a batch at most once, known by its token, and answers what became of the rows.
Targets are plain values, so that they can travel to wherever the batch function runs.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from headrace.lake.change_events import SEQUENCE
from headrace.lake.changes import ChangeRules, TooManyRows, apply_changes, is_applied
from headrace.lake.commits import Token
from headrace.lake.lineage import Lineage
from headrace.lake.tables import Table
from headrace.lake.upserting import upsert
from headrace.lake.upserts import Upsert
from headrace.pipelines.model import DRIVER_ROWS_MAX, RESERVED, Changes
from headrace.pipelines.running.batches import Written
from headrace.pipelines.running.expectations import Judged
from headrace.pipelines.running.intake import Intake
from headrace.pipelines.running.partition_rule import Deletes
from headrace.pipelines.running.places import TablePlace
from headrace.pipelines.running.reports import Outcome
from headrace.pipelines.running.setting_aside import SettingAside
from headrace.pipelines.sequences import sequence_column, sequenced
from headrace.spark.tables.merging import Staged, apply_changes_by_tasks, upsert_by_tasks
from headrace.spark.tables.schemas import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DRIVER_BYTES_MAX = 32 << 20
"""A batch that takes more memory is merged by tasks, however few rows it has."""
_DELETED = "_deleted"


class Target(Protocol):
    """What a flow writes to."""

    def has(self, token: Token) -> bool:
        """Whether the batch was written already."""

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        """Write a batch, whole or not at all."""


@dataclass(frozen=True, slots=True)
class AppendTarget:
    """A table that grows: tasks write the files, the driver commits them."""

    intake: Intake

    def has(self, token: Token) -> bool:
        return self.intake.place.table.has(token)

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        """Several flows write at once and commit one by one, unless their keys must not meet."""
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
    """A table kept by key: a row takes the place of the one with its key, or is merged into it."""

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
                version = upsert(table, staged.table(), self.how, token, lineage)
            else:
                version = upsert_by_tasks(spark, table, staged, self.how, token, lineage)
        return outcome_of(written, written.rows_out, judged, version)


@dataclass(frozen=True, slots=True)
class ChangesTarget:
    """A table that change events are applied to, with what must be remembered of them beside it."""

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
            # Few events may meet many rows of their keys: those are for the tasks too.
            with suppress(TooManyRows):
                return apply_changes(table, history, staged.table(), rules, token, lineage)
        return apply_changes_by_tasks(spark, table, history, staged, rules, token, lineage)

    def _staged_schema(self, events: "DataFrame") -> pa.Schema:
        """The columns of the events, in the types of the tables where these have them.

        So a key has the same hash on its way as it has in a table.
        """
        known = {field.name: field.type for field in self.intake.place.table.schema}
        known[sequence_column(self.changes, events.columns)] = self.history.table.schema.field(
            SEQUENCE
        ).type
        fields = (f for f in arrow_schema_of(events.schema) if f.name not in RESERVED)
        return pa.schema([pa.field(f.name, known.get(f.name, f.type)) for f in fields])


def is_small(staged: Staged, rows_max: int) -> bool:
    """Whether the driver merges a batch itself, which is quicker than to set tasks on it."""
    return staged.rows <= rows_max and staged.size_bytes <= DRIVER_BYTES_MAX


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """A topic that a flow writes to; the sink's own token keeps a repeated batch from doubling."""

    topic: str
    format: str
    guarantee: str
    properties: Mapping[str, str] = field(repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    aside: SettingAside | None = None
    quarantine: TablePlace | None = None
    """Where those records of the flow's topics go that cannot be read."""

    def has(self, token: Token) -> bool:
        return False

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812

        sent = Observation()
        shaped = shaped_for_topic(rows, self.format).observe(sent, F.count(F.lit(1)).alias("rows"))
        options = {
            "kafka.allow.auto.create.topics": "true",  # There is one task, so none is refused.
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
        if self.aside is not None:
            self.aside.begin()
        # One task, one transaction: readers see a batch whole.
        shaped.coalesce(1).write.format("headrace").mode("append").options(**options).save()
        count = int(sent.get["rows"])
        unreadable = self._put_away(rows.sparkSession, token, lineage)
        return Outcome(rows_in=count + unreadable, rows_out=count, quarantined=unreadable)

    def _put_away(self, spark: "SparkSession", token: Token, lineage: Lineage) -> int:
        """Commit what could not be read; a repeated batch does so in the place of its last try."""
        if self.aside is None or self.quarantine is None:
            return 0
        files = self.aside.end(spark, lineage.offsets)
        if files or self.quarantine.table.has(token):
            with self.quarantine.held() as table:
                table.amend(files, token, lineage)
        return sum(file.rows for file in files)


def shaped_for_topic(rows: "DataFrame", value_format: str) -> "DataFrame":
    """Records as the sink takes them: as they are, or all columns but the key as one JSON value."""
    if value_format == "kafka":
        return rows
    from pyspark.sql import functions as F  # noqa: N812

    kept = [name for name in ("key", "headers") if name in rows.columns]
    packed = [name for name in rows.columns if name not in kept]
    value = F.to_json(F.struct(*packed), {"ignoreNullFields": "false"}).alias("value")
    return rows.select(*kept, value)


def outcome_of(written: Written, rows_out: int, judged: Judged, version: int) -> Outcome:
    """What became of a batch, told by what the tasks have counted."""
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
