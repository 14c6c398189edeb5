"""Rows out of quarantine, after what was wrong is mended: through the same flow and door again.

A row that says from which record it came is made anew from that record, since the flow may have
been mended; from the bytes in quarantine, if retention has taken the record. Another is judged
again as it is, and so is a row of a record of which other rows are in the table: a flow that makes
several would bring those twice. A row that passes goes to its table, and one that does not goes
back to quarantine with its new reason. A row whose record is there no more, and whose bytes were
not kept, stays where it is.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.commits import Token
from headrace.lake.quarantine import QUARANTINED_AT, UNREADABLE
from headrace.lake.tables import Table
from headrace.lake.upserting import Files
from headrace.pipelines.model import (
    ERROR,
    PAYLOAD,
    RESERVED,
    Flow,
    Pipeline,
    StreamingTable,
    takes_late_rows,
)
from headrace.pipelines.names import is_source, quarantine_of
from headrace.pipelines.problems import PipelineError, no_streaming_table
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running.kept_records import PLACE, KeptRecords, Place
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.reading import SnapshotReader
from headrace.pipelines.running.records_again import RecordsAgain
from headrace.pipelines.running.redrive_fates import (
    Fates,
    Moments,
    Plan,
    conditions,
    fates_of,
    moments_of,
    places_of,
    read_otherwise,
    rows_at,
)
from headrace.pipelines.running.state import read_json, write_file
from headrace.runtime import files
from headrace.spark.tables.frames import table_frame
from headrace.spark.tables.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FLOW_GONE = "their flow is no longer there"
UNFINISHED = "their batch is not finished; once the pipeline has run, redrive again"
_ANEW, _AS_THEY_WERE = 0, 1


@dataclass(frozen=True, slots=True)
class Redriven:
    """How many rows were taken out of quarantine, and how many of them came back."""

    taken: int
    refused: int
    left: int = 0
    """Rows with which nothing was done."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Why rows were left, and how many for each."""


@dataclass(slots=True)
class Note:
    """Which rows are redriven, under which name, and what was decided of each flow's.

    It is written before the rows are: after a crash the next call finishes the same rows, each
    once, also if records that were read then are gone by now. Rows are known by the moments of
    their batches and not by the version that had them, whose files may be vacuumed by then. All
    of them are there until their flow's rows are written, and those that are missing are done.
    """

    path: Path
    id: str
    moments: Moments
    plans: dict[str, Plan]

    @classmethod
    def found_or_made(cls, path: Path, rows: pa.Table) -> "Note":
        """What an earlier call has begun, or a new note of these rows."""
        noted = read_json(path)
        if not noted:
            note = cls(path, uuid4().hex, moments_of(rows), {})
            note.write()
            return note
        plans = {flow: Plan.from_json(plan) for flow, plan in noted.get("plans", {}).items()}
        moments = {flow: set(found) for flow, found in noted["moments"].items()}
        return cls(path, noted["id"], moments, plans)

    def write(self) -> None:
        plans = {flow: plan.to_json() for flow, plan in self.plans.items()}
        moments = {flow: sorted(found) for flow, found in self.moments.items()}
        noted = {"id": self.id, "moments": moments, "plans": plans}
        write_file(self.path, json.dumps(noted).encode())

    def token(self, flow: Flow, batch: int) -> Token:
        return Token(f"redrive/{self.id}/{flow.name}", batch)


def check_table(pipeline: Pipeline, table: str) -> None:
    """Refuse a table whose rows cannot be redriven; needs no Spark, so it is asked first."""
    target = pipeline.datasets.get(table)
    if not isinstance(target, StreamingTable):
        raise PipelineError(no_streaming_table(pipeline, table))
    if not all(takes_late_rows(target, flow) for flow in pipeline.flows if flow.target == table):
        raise PipelineError(
            f"{table} is kept by key, and a row from quarantine may be older than the one that is"
            " there; declare the column that orders the rows of a key (SEQUENCE BY column, in"
            " Python sequence_by=), or replay the pipeline instead"
        )


def redrive(run: PipelineRun, table: str) -> Redriven:
    """Give every row in a table's quarantine another try."""
    check_table(run.pipeline, table)
    flows = [flow for flow in run.pipeline.flows if flow.target == table]
    quarantine = run.quarantine_of(table)
    if quarantine is None:
        raise PipelineError(f"{table} refuses no rows: it has no quarantine to redrive")
    with run.state.held("redrive"):
        path = run.state.directory / f"redrive-{table}.json"
        standing = quarantine.table.rows()
        unfinished = {flow.name: _unfinished(run, flow, quarantine.table) for flow in flows}
        finished = rows_at(standing, unfinished, is_at=False)
        note = Note.found_or_made(path, finished)
        rows = rows_at(standing, note.moments)
        taken = refused = 0
        reasons: Counter[str] = Counter()
        for flow in flows:
            own = rows.filter(pc.equal(rows["flow"], flow.name))
            fates, again = _redrive_flow(run, flow, own, note)
            _remove(run, table, flow, own, fates)
            taken += fates.taken
            refused += again
            reasons.update(fates.reasons)
        files.unlink_if_there(str(path))
    if gone := rows.num_rows - taken - reasons.total():
        reasons[FLOW_GONE] = gone
    if early := standing.num_rows - finished.num_rows:
        reasons[UNFINISHED] = early
    return Redriven(taken, refused, reasons.total(), dict(reasons))


def _unfinished(run: PipelineRun, flow: Flow, quarantine: Table) -> set[int]:
    """The moments of a batch that is in quarantine and not in the table, under way or cut off.

    It may come again and put its refused rows in the place of these, or find none to refuse.
    """
    state = run.flow_state(flow)
    batch = quarantine.last_batch(state.writer()) if state.is_known else None
    if batch is None:
        return set()
    token = Token(state.writer(), batch)
    return set() if run.target_of(flow).has(token) else set(_moments_added(quarantine, token))


def _moments_added(quarantine: Table, token: Token) -> Iterator[int]:
    files = Files.of(quarantine, quarantine.version)
    added = {file.path for file in quarantine.added_by(token)}
    for number, file in enumerate(files.files):
        if file.path in added:
            for rows in files.batches(number, [QUARANTINED_AT]):
                yield from rows.column(0).cast(pa.int64()).unique().to_pylist()


def _redrive_flow(run: PipelineRun, flow: Flow, rows: pa.Table, note: Note) -> tuple[Fates, int]:
    """Send a flow's refused rows through again; what became of them, how many came back."""
    target = run.target_of(flow, is_redriven=True)
    tokens = [note.token(flow, batch) for batch in (_ANEW, _AS_THEY_WERE)]
    done = [target.has(token) for token in tokens]
    lineage = run.lineage(flow.name)
    refused = 0
    if any(place is not None for place in places_of(rows)) and not any(done):
        note.plans[flow.name] = plan = _plan(run, flow, rows)
        note.write()
        pairs = zip(places_of(rows), rows["rule"].to_pylist(), strict=True)
        is_wanted = pa.array([plan.is_made_anew(*pair) for pair in pairs], pa.bool_())
        kept = KeptRecords.of(rows.filter(is_wanted))
        if kept.records:
            refused += _anew(run, flow, kept, note, tokens[_ANEW])
    fates = fates_of(rows, note.plans.get(flow.name, Plan()))
    as_they_were = rows.filter(pa.array(fates.as_they_were, pa.bool_()))
    if as_they_were.num_rows and not done[_AS_THEY_WERE]:
        again = _as_they_were(run, flow, as_they_were)
        refused += target.write(again, tokens[_AS_THEY_WERE], lineage).quarantined
    return fates, refused


def _anew(run: PipelineRun, flow: Flow, kept: KeptRecords, note: Note, token: Token) -> int:
    """Send records through their flow again; how many rows were refused once more."""
    with RecordsAgain(run.reads_of(flow, is_redriven=True), kept) as reader:
        again = evaluate(flow.query, reader)
        found = reader.found if reader.is_exact else None
        note.plans[flow.name] = note.plans[flow.name].after(reader.wanted, found)
        note.write()
        if not found:
            return 0
        target = run.target_of(flow, is_redriven=True)
        return target.write(again, token, run.lineage(flow.name)).quarantined


def _plan(run: PipelineRun, flow: Flow, rows: pa.Table) -> Plan:
    """What is known of a flow's rows before their records are looked for."""
    stored = frozenset(_stored(run, flow, rows))
    inputs = run.preparation.reads[flow.name]
    sources = {name.partition(".")[2] for name in inputs if is_source(name)}
    return Plan(stored=stored, read_otherwise=stored & read_otherwise(rows, sources))


def _stored(run: PipelineRun, flow: Flow, rows: pa.Table) -> set[Place]:
    """The records of refused rows of which the table has rows too.

    Rows that find their place by key or sequence may come again: they take their own place.
    """
    target = run.pipeline.datasets[flow.target]
    table = run.lake.table(flow.target, run.generation_of(flow.target))
    is_kept_by_key = flow.changes is not None or (
        isinstance(target, StreamingTable) and bool(target.keys)
    )
    if is_kept_by_key or not set(PLACE) <= set(table.schema.names):
        return set()
    wanted = run.spark.createDataFrame(rows.select(list(PLACE)).drop_null()).distinct()
    there = table_frame(run.spark, table, table.version).select(*PLACE)
    found = there.join(wanted, list(PLACE), "left_semi").distinct().collect()
    return {(row[0], row[1], row[2]) for row in found}


def _as_they_were(run: PipelineRun, flow: Flow, rows: pa.Table) -> "DataFrame":
    """The refused rows as the flow had made them; events have columns that the table has not.

    What could not be read still cannot: without its place its record is not found again.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if flow.changes is None:
        table = run.lake.table(flow.target, run.generation_of(flow.target))
        schema = schema_of(table.schema)
    else:
        schema = evaluate(flow.query, SnapshotReader(run.reads())).drop(*RESERVED).schema
    given = run.spark.createDataFrame(rows.select(["row", "rule", "reason", "payload"]))
    error = F.when(F.col("rule") == UNREADABLE, F.col("reason"))
    return given.select(
        F.from_json("row", schema).alias("r"), error.alias(ERROR), F.col("payload").alias(PAYLOAD)
    ).select("r.*", ERROR, PAYLOAD)


def _remove(run: PipelineRun, table: str, flow: Flow, rows: pa.Table, fates: Fates) -> None:
    """Take those rows out of quarantine with which something was done."""
    if not fates.taken:
        return
    with run.place(quarantine_of(table)).held() as quarantine:
        for condition in conditions(flow.name, rows, fates.is_taken):
            quarantine.delete(condition)
