"""Where a flow's batches go: a table that grows or is kept by key, change events, a topic.

Each target writes a batch at most once, known by its token, and answers what became of the rows.
Targets are plain values, so that they can travel to wherever the batch function runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from headrace.lake.commits import Token
from headrace.lake.lineage import Lineage
from headrace.lake.tables import Table
from headrace.pipelines.model import Changes
from headrace.pipelines.running.batches import Written, fitted_table
from headrace.pipelines.running.intake import Intake
from headrace.pipelines.running.places import TablePlace
from headrace.pipelines.running.reports import Outcome
from headrace.pipelines.sequences import sequence_column, sequenced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
                written, warnings = self.intake.files(rows, token)
                version = self._commit(table, written, token, lineage)
        else:
            written, warnings = self.intake.files(rows, token)
            with self.intake.place.held() as table:
                version = self._commit(table, written, token, lineage)
        return outcome_of(written, written.rows_out, warnings, version)

    def _commit(self, table: Table, written: Written, token: Token, lineage: Lineage) -> int:
        commit = table.replace if self.intake.is_replaced else table.append
        return commit(written.files, token, lineage)


@dataclass(frozen=True, slots=True)
class KeyedTarget:
    """A table kept by key: a row takes the place of the one with its key, or is merged into it."""

    intake: Intake
    keys: tuple[str, ...]
    merge: Mapping[str, str] | None = None

    def has(self, token: Token) -> bool:
        return self.intake.place.table.has(token)

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        with self.intake.place.held() as table:
            found, written, warnings = self.intake.rows(rows, token)
            kept = fitted_table(found, table.schema)
            version = table.upsert(kept, self.keys, token, lineage, merge=self.merge)
        return outcome_of(written, kept.num_rows, warnings, version)


@dataclass(frozen=True, slots=True)
class ChangesTarget:
    """A table that change events are applied to, with what must be remembered of them beside it."""

    intake: Intake
    history: TablePlace
    changes: Changes

    def has(self, token: Token) -> bool:
        # The history is committed last, see `lake.changes`.
        return self.history.table.has(token)

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        from pyspark.sql import functions as F  # noqa: N812

        from headrace.lake.changes import apply_changes

        deleted = F.expr(self.changes.apply_as_deletes or "false")
        marked = rows.withColumn(_DELETED, F.coalesce(deleted, F.lit(False)))
        events, written, warnings = self.intake.rows(sequenced(marked, self.changes), token)
        with self.intake.place.held() as table:
            version = apply_changes(
                table,
                self.history.table,
                events,
                keys=self.changes.keys,
                sequence_by=sequence_column(self.changes, rows.columns),
                deletes=_DELETED,
                scd_type=self.changes.scd_type,
                token=token,
                lineage=lineage,
            )
        return outcome_of(written, events.num_rows, warnings, version)


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """A topic that a flow writes to; the sink's own token keeps a repeated batch from doubling."""

    topic: str
    format: str
    guarantee: str
    properties: Mapping[str, str] = field(repr=False)
    options: Mapping[str, str] = field(default_factory=dict)

    def has(self, token: Token) -> bool:
        return False

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812

        sent = Observation()
        shaped = shaped_for_topic(rows, self.format).observe(sent, F.count(F.lit(1)).alias("rows"))
        options = {
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
        # One task, one transaction: readers see a batch whole.
        shaped.coalesce(1).write.format("headrace").mode("append").options(**options).save()
        count = int(sent.get["rows"])
        return Outcome(rows_in=count, rows_out=count)


def shaped_for_topic(rows: "DataFrame", value_format: str) -> "DataFrame":
    """Records as the sink takes them: as they are, or all columns but the key as one JSON value."""
    if value_format == "kafka":
        return rows
    from pyspark.sql import functions as F  # noqa: N812

    kept = [name for name in ("key", "headers") if name in rows.columns]
    packed = [name for name in rows.columns if name not in kept]
    value = F.to_json(F.struct(*packed), {"ignoreNullFields": "false"}).alias("value")
    return rows.select(*kept, value)


def outcome_of(written: Written, rows_out: int, warnings: list[str], version: int) -> Outcome:
    """What became of a batch, told by what the tasks have counted."""
    return Outcome(
        rows_in=written.rows_in,
        rows_out=rows_out,
        quarantined=written.rows_quarantined,
        dropped=written.dropped,
        broken=written.broken,
        warnings=warnings,
        version=version,
    )
