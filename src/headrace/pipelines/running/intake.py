"""The door of a table: expectations are checked here, and what they refuse is put away.

What is refused goes to the quarantine table and, if there is one, to a dead-letter topic, before
the table's own commit: its token comes last, so a batch whose token is there is done everywhere.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.lake.commits import Token
from headrace.lake.data_files import DataFile, FileWriter
from headrace.lake.lineage import Lineage
from headrace.pipelines.model import Expectation, Gate, UniqueKey
from headrace.pipelines.quarantine import QUARANTINE_SCHEMA
from headrace.pipelines.running.batches import FileTask, Written, add_counts, discard, write_files
from headrace.pipelines.running.errors import ExpectationFailed, PromotionRefused
from headrace.pipelines.running.expectations import (
    RowChecks,
    check_table_rules,
    with_flags,
)
from headrace.pipelines.running.places import TablePlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LETTER_HEADERS = ("table", "flow", "rule", "reason", "topic", "partition", "offset")


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A topic that gets what quarantine gets, with the reason in headers."""

    topic: str
    properties: Mapping[str, str] = field(repr=False)

    def write(self, paths: list[str], rows: "DataFrame", token: Token) -> None:
        """Send refused rows from their files; the token keeps a repeated batch from doubling."""
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
    """What a table asks of the rows of a flow, and where those go that it does not take."""

    place: TablePlace
    quarantine: TablePlace | None
    """None where no row can be refused: then there is no need for a table of such rows."""
    flow: str
    expectations: tuple[Expectation, ...] = ()
    dead_letters: DeadLetters | None = None
    is_replaced: bool = False
    """Whether a batch takes the place of all that was there, as in a materialized view."""
    gate: Gate | None = None

    @property
    def has_unique_key(self) -> bool:
        """Whether rows are compared with those of the table, which must then not change."""
        return any(isinstance(e.rule, UniqueKey) for e in self.expectations)

    @property
    def checks(self) -> RowChecks:
        return RowChecks.of(self.expectations, self.place.name, self.flow)

    def files(self, rows: "DataFrame", token: Token) -> tuple[Written, list[str]]:
        """Have tasks write the rows into files of the table; the caller commits them."""
        now = dt.datetime.now(dt.UTC)
        warnings = check_table_rules(rows, self.expectations, self.place.name, now)
        table = self.place.table
        refuge = None if self.quarantine is None else self.quarantine.table.place
        task = FileTask(
            place=str(table.place),
            schema=table.schema,
            partition_by=tuple(table.partition_by),
            quarantine_place=None if refuge is None else str(refuge),
            checks=self.checks,
            now=now,
        )
        written = write_files(self._flagged(rows), task)
        try:
            self._judge(written, written.rows_quarantined)
        except (ExpectationFailed, PromotionRefused):
            discard(written, table.place, refuge)
            raise
        self._put_away(written.quarantined, rows, token)
        return written, warnings

    def rows(self, rows: "DataFrame", token: Token) -> tuple[pa.Table, Written, list[str]]:
        """Bring the rows that the table takes to the driver, where a merge has to be made."""
        now = dt.datetime.now(dt.UTC)
        warnings = check_table_rules(rows, self.expectations, self.place.name, now)
        written = Written()
        kept: list[pa.RecordBatch] = []
        refused: list[pa.RecordBatch] = []
        found = self._flagged(rows).toArrow()
        # Even of no rows, one batch shows which columns there are.
        for batch in found.to_batches() or [pa.RecordBatch.from_pylist([], found.schema)]:
            split = self.checks.split(batch, now)
            kept.append(split.kept)
            refused.append(split.refused)
            written.rows_in += batch.num_rows
            written.dropped += split.dropped
            add_counts(written.broken, split.broken)
        self._judge(written, sum(batch.num_rows for batch in refused))
        written.quarantined = self._refused_files(refused)
        self._put_away(written.quarantined, rows, token)
        return pa.Table.from_batches(kept), written, warnings

    def _judge(self, written: Written, quarantined: int) -> None:
        """Refuse a batch as a whole, before anything of it counts anywhere.

        Its refused rows are not put away either: the batch comes again when it is mended, and
        rows that were redriven meanwhile would come twice.
        """
        self.checks.check_counts(written.broken)
        if self.gate is None or not self.gate.is_shut(written.rows_in, quarantined):
            return
        counts = ", ".join(f"{rule} {count:,}" for rule, count in written.broken.items())
        zone = self.place.name.partition(".")[0]
        raise PromotionRefused(
            f"{quarantined:,} of {written.rows_in:,} rows for {self.place.name} would go to"
            f" quarantine ({counts}), and {zone} lets a batch pass with"
            f" {100 * self.gate.quarantined_max:g}% at most: nothing of this batch was promoted."
            f" Mend the flow or its input, or raise quarantined_max in [zones.{zone}] of"
            " pipeline.toml, and run again"
        )

    def _flagged(self, rows: "DataFrame") -> "DataFrame":
        known = None
        if self.has_unique_key and not self.is_replaced and self.place.table.files():
            from headrace.spark.tables.frames import table_frame

            known = table_frame(rows.sparkSession, self.place.table)
        return with_flags(rows, self.checks, known)

    def _put_away(self, files: list[DataFile], rows: "DataFrame", token: Token) -> None:
        """Commit what was refused, in the place of what a repeated batch had refused before."""
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
                table.replace(files, token, Lineage(flow=self.flow))
            else:
                table.amend(files, token, Lineage(flow=self.flow))

    def _refused_files(self, refused: list[pa.RecordBatch]) -> list[DataFile]:
        if self.quarantine is None:
            assert not any(batch.num_rows for batch in refused), "nothing here refuses rows"
            return []
        writer = FileWriter(self.quarantine.table.place, QUARANTINE_SCHEMA, ())
        for batch in refused:
            if batch.num_rows:
                writer.write(batch)
        return writer.close()
