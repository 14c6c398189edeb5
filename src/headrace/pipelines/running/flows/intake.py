"""The intake of a table: checks expectations, and puts rejected rows into quarantine.

Rejected rows go to the quarantine table and, if there is one, to a dead-letter topic before the
table's own commit: its token comes last, so a batch whose token exists is complete everywhere.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.lake.commit_log import Token
from headrace.lake.data_files import DataFile
from headrace.lake.lineage import Lineage
from headrace.pipelines.declaring.names import zone_of
from headrace.pipelines.model import Expectation, Gate, UniqueKey
from headrace.pipelines.running.errors import ExpectationFailed, PromotionRefused
from headrace.pipelines.running.flows.batch_files import FileTask, Written, discard, write_files
from headrace.pipelines.running.flows.expectations import (
    Judged,
    RowChecks,
    check_table_rules,
    with_flags,
)
from headrace.pipelines.running.flows.known_keys import known_keys
from headrace.pipelines.running.flows.partition_rule import Deletes, partition_rules
from headrace.pipelines.running.flows.unreadable_records import SideOutputs
from headrace.pipelines.running.tables.places import TablePlace
from headrace.runtime.clock import Clock, SystemClock
from headrace.spark.tables.distributed_merges import Staged, staged_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LETTER_HEADERS = ("table", "flow", "rule", "reason", "topic", "partition", "offset")


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A topic that gets the rows of quarantine, with the reason in headers."""

    topic: str
    properties: Mapping[str, str] = field(repr=False)

    def write(self, paths: list[str], rows: "DataFrame", token: Token) -> None:
        """Send rejected rows from their files; the token prevents duplicates."""
        from pyspark.sql import functions as F  # noqa: N812

        headers = F.array(
            *(
                F.struct(
                    F.lit(f"headrace.{name}").alias("key"),
                    F.encode(F.col(name).cast("string"), "UTF-8").alias("value"),
                )
                for name in _LETTER_HEADERS
            )
        )
        letters = rows.sparkSession.read.parquet(*paths).select(
            F.encode(F.concat_ws("-", "topic", "partition", "offset"), "UTF-8").alias("key"),
            F.coalesce(F.col("payload"), F.encode("row", "UTF-8")).alias("value"),
            headers.alias("headers"),
        )
        options = {
            "kafka.allow.auto.create.topics": "true",  # One task: no other creates it at once.
            **{f"kafka.{name}": text for name, text in self.properties.items()},
            "topic": self.topic,
            "guarantee": "exactly-once",
            "singleTransaction": "true",
            "token.writer": f"{token.writer}/dead-letters",
            "token.batch": str(token.batch),
        }
        letters.coalesce(1).write.format("headrace").mode("append").options(**options).save()


@dataclass(frozen=True, slots=True)
class Intake:
    """The checks of a flow's rows for a table, and the places of rejected rows."""

    place: TablePlace
    quarantine: TablePlace | None
    """None if no row can be rejected: then no table for such rows is needed."""
    flow: str
    expectations: tuple[Expectation, ...] = ()
    dead_letters: DeadLetters | None = None
    is_replaced: bool = False
    """True if a batch replaces all earlier rows, as in a materialized view."""
    gate: Gate | None = None
    side_outputs: SideOutputs | None = None
    """The side output of the flow's topics for unreadable records; None if the query gets them."""
    deletes: Deletes | None = None
    """The mark of rows that delete the row of their key, if any."""
    clock: Clock = field(default_factory=SystemClock)

    @property
    def has_unique_key(self) -> bool:
        """Return whether rows are compared with those of the table, which must then not change."""
        return any(isinstance(e.rule, UniqueKey) for e in self.expectations)

    def checks(self, columns: Collection[str]) -> RowChecks:
        """Return the checks of each row, as far as they apply to these columns."""
        rules = self.expectations
        if self.quarantine is not None:
            table = self.place.table
            by = table.partition_by
            rules = (*rules, *partition_rules(table.schema, by, columns, self.deletes))
        return RowChecks.of(rules, self.place.name, self.flow)

    def files(self, rows: "DataFrame", token: Token, lineage: Lineage) -> tuple[Written, Judged]:
        """Write the rows into files of the table with tasks; the caller commits them.

        `lineage` has the batch's offsets in the topics.
        """
        table = self.place.table
        by = tuple(table.partition_by)
        return self._written(rows, token, lineage, table.place, table.schema, by)

    def staged(
        self, rows: "DataFrame", token: Token, lineage: Lineage, schema: pa.Schema, scratch: Path
    ) -> tuple[Staged, Written, Judged]:
        """Write the rows next to the table with tasks, for a later merge."""
        written, judged = self._written(rows, token, lineage, scratch, schema, ())
        files = staged_files(str(scratch), schema, written.files)
        return Staged(files, written.size_bytes), written, judged

    def _written(
        self,
        rows: "DataFrame",
        token: Token,
        lineage: Lineage,
        place: Path,
        schema: pa.Schema,
        partition_by: tuple[str, ...],
    ) -> tuple[Written, Judged]:
        now = dt.datetime.fromtimestamp(self.clock.now_ms() / 1000, dt.UTC)
        if self.side_outputs is not None:
            self.side_outputs.begin()
        judged = check_table_rules(rows, self.expectations, self.place.name, now)
        rejected_place = None if self.quarantine is None else self.quarantine.table.place
        checks = self.checks(rows.columns)
        task = FileTask(
            place=str(place),
            schema=schema,
            partition_by=partition_by,
            quarantine_place=None if rejected_place is None else str(rejected_place),
            checks=checks,
            now=now,
        )
        with self._flagged(rows, token, checks) as flagged:
            written = write_files(flagged, task)
        if self.side_outputs is not None:
            written.add_unreadable(self.side_outputs.end(rows.sparkSession, lineage.offsets))
        try:
            self._judge(written, checks)
        except (ExpectationFailed, PromotionRefused):
            discard(written, place, rejected_place)
            raise
        self._quarantine_unreadable(written.quarantined, rows, token, lineage)
        return written, judged

    def _judge(self, written: Written, checks: RowChecks) -> None:
        """Reject a batch as a whole, before any row counts.

        Its rejected rows are not stored either: the batch comes again after a fix, and rows that
        were redriven meanwhile would be duplicated.
        """
        checks.check_counts(written.broken)
        quarantined = written.rows_quarantined
        if self.gate is None or not self.gate.is_shut(written.rows_in, quarantined):
            return
        counts = ", ".join(f"{rule} {count:,}" for rule, count in written.broken.items())
        zone = zone_of(self.place.name)
        raise PromotionRefused(
            f"{quarantined:,} of {written.rows_in:,} rows for {self.place.name} would go to"
            f" quarantine ({counts}), and {zone} lets a batch pass with"
            f" {100 * self.gate.quarantined_max:g}% at most: nothing of this batch was promoted."
            f" Fix the flow or its input, or raise quarantined_max in [zones.{zone}] of"
            " pipeline.toml, and run again"
        )

    @contextmanager
    def _flagged(self, rows: "DataFrame", token: Token, checks: RowChecks) -> "Iterator[DataFrame]":
        """Yield the rows with their flags."""
        if not self.has_unique_key or self.is_replaced or not self.place.table.files():
            yield with_flags(rows, checks)
            return
        kept = rows.persist()  # They are read twice: first their keys, then the rows.
        try:
            with self.place.scratch(token, "keys") as scratch:
                yield with_flags(kept, checks, self._known(kept, scratch))
        finally:
            kept.unpersist()

    def _known(self, rows: "DataFrame", scratch: Path) -> "dict[tuple[str, ...], DataFrame]":
        """Return the keys of the batch that the table has, for each unique key with any."""
        rules = (e.rule for e in self.expectations if isinstance(e.rule, UniqueKey))
        found = {}
        for columns in dict.fromkeys(rule.columns for rule in rules):
            if (known := known_keys(rows, self.place.table, columns, scratch)) is not None:
                found[columns] = known
        return found

    def _quarantine_unreadable(
        self, files: list[DataFile], rows: "DataFrame", token: Token, lineage: Lineage
    ) -> None:
        """Commit rejected rows, in place of those of an earlier try of the batch."""
        if self.quarantine is None:
            return
        is_clear = not self.quarantine.table.has(token) and not self.is_replaced
        if not files and is_clear:
            return
        with self.quarantine.held() as table:
            if self.dead_letters is not None and files:
                paths = [str(table.place / file.path) for file in files]
                self.dead_letters.write(paths, rows, token)
            if self.is_replaced:
                table.replace(files, token, lineage)
            else:
                table.amend(files, token, lineage)
