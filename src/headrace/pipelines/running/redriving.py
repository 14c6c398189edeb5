"""Rows out of quarantine, after what was wrong is mended: through the same flow and door again.

A row that says from which record it came is made anew from that record, since the flow may have
been mended; from the bytes in quarantine, if retention has taken the record. Another is judged
again as it is, and so is a row of a record of which other rows are in the table: a flow that makes
several would bring those twice. A row that passes goes to its table, and one that does not goes
back to quarantine with its new reason. A row whose record is there no more, and whose bytes were
not kept, stays where it is.

Where it cannot be shown that a topic is still the one that the flow has read, no record is looked
for in it: at the same offset may be another. The bytes in quarantine are all that counts then.

Quarantine may have more than memory holds. So it is gone through in rounds, each of which is
noted, written to the table and removed from quarantine before the next one begins.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

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
from headrace.pipelines.names import quarantine_of
from headrace.pipelines.problems import PipelineError, no_streaming_table
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running.kept_records import PLACE, KeptRecords, Place, table_of
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.reading import SnapshotReader
from headrace.pipelines.running.record_files import frame_near
from headrace.pipelines.running.records_again import RecordsAgain
from headrace.pipelines.running.redrive_fates import (
    Fates,
    Plan,
    conditions,
    fates_of,
    made_anew,
    places_of,
    read_otherwise,
)
from headrace.pipelines.running.redrive_notes import Note
from headrace.pipelines.running.redrive_rounds import Limits, Round, rounds_of, without
from headrace.pipelines.running.redrive_rows import index_of, rows_of
from headrace.pipelines.running.remade_topics import mixed, notes_of, remade_for
from headrace.pipelines.running.state import PipelineState
from headrace.spark.tables.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FLOW_GONE = "their flow is no longer there"
UNFINISHED = "their batch is not finished; once the pipeline has run, redrive again"


@dataclass(frozen=True, slots=True)
class Redriven:
    """How many rows were taken out of quarantine, and how many of them came back."""

    taken: int
    refused: int
    left: int = 0
    """Rows with which nothing was done."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Why rows were left, and how many for each."""


def check_table(pipeline: Pipeline, table: str) -> None:
    """Refuse a table whose rows cannot be redriven; needs no Spark, so it is asked first."""
    target = pipeline.datasets.get(table)
    if not isinstance(target, StreamingTable):
        raise PipelineError(no_streaming_table(pipeline, table))
    if not all(takes_late_rows(target, flow) for flow in pipeline.flows_into(table)):
        raise PipelineError(
            f"{table} is kept by key, and a row from quarantine may be older than the one that is"
            " there; declare the column that orders the rows of a key (SEQUENCE BY column, in"
            " Python sequence_by=), or replay the pipeline instead"
        )


def redrive(run: PipelineRun, table: str, limits: Limits | None = None) -> Redriven:
    """Give every row in a table's quarantine another try, a round after the other.

    What an earlier call was cut off in is finished first, and alone: rows that came since then are
    neither tried nor counted, and are the next call's.
    """
    check_table(run.pipeline, table)
    flows = {flow.name: flow for flow in run.pipeline.flows_into(table)}
    place = run.quarantine_of(table)
    if place is None:
        raise PipelineError(f"{table} refuses no rows: it has no quarantine to redrive")
    quarantine = place.table
    taken = refused = 0
    with run.state.held("redrive"):
        note, reasons = _begun(run, table, flows, quarantine, limits or Limits())
        while note.rounds:
            part = note.rounds[0]
            if part.flow in flows:
                flow = flows[part.flow]
                rows = rows_of(quarantine, part)
                fates, again = _redrive_round(run, flow, part, rows, note)
                _remove(run, table, flow, rows, fates)
                taken += fates.taken
                refused += again
                reasons.update(fates.reasons)
            note.end_round()
    return Redriven(taken, refused, reasons.total(), dict(reasons))


def _begun(
    run: PipelineRun, table: str, flows: Mapping[str, Flow], quarantine: Table, limits: Limits
) -> tuple[Note, Counter[str]]:
    """What is to be done, or an earlier call has left to do; why other rows are left, how many."""
    standing = index_of(quarantine)
    unfinished = {name: _unfinished(run, flow, quarantine) for name, flow in flows.items()}
    index = without(standing, unfinished)
    path = run.state.directory / f"redrive-{table}.json"
    note = Note.found(path)
    if note is None:
        note = Note.begun(path, [part for flow in flows for part in rounds_of(index, flow, limits)])
    counts = index["flow"].value_counts().to_pylist()
    gone = sum(one["counts"] for one in counts if one["values"] not in flows)
    early = standing.num_rows - index.num_rows
    return note, +Counter({FLOW_GONE: gone, UNFINISHED: early})  # Without those of no row.


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


def _redrive_round(
    run: PipelineRun, flow: Flow, part: Round, rows: pa.Table, note: Note
) -> tuple[Fates, int]:
    """Send a round's rows through their flow again; what became of them, how many came back."""
    target = run.target_of(flow, is_redriven=True)
    anew, as_they_were = note.tokens(part)
    is_judged = target.has(as_they_were)
    is_planned = is_judged or target.has(anew)  # What is written was decided; it stays so.
    refused = 0
    if any(place is not None for place in places_of(rows)) and not is_planned:
        note.plans[flow.name] = plan = _plan(run, flow, rows)
        note.write()
        is_wanted = made_anew(rows, plan)
        if any(is_wanted):
            kept = KeptRecords.of(rows.filter(pa.array(is_wanted, pa.bool_())), plan.remade)
            refused += _anew(run, flow, kept, note, anew)
    fates = fates_of(rows, note.plans.get(flow.name, Plan()))
    judged = rows.filter(pa.array(fates.as_they_were, pa.bool_()))
    if judged.num_rows and not is_judged:
        again = _as_they_were(run, flow, judged)
        refused += target.write(again, as_they_were, run.lineage(flow.name)).quarantined
    return fates, refused


def _anew(run: PipelineRun, flow: Flow, kept: KeptRecords, note: Note, token: Token) -> int:
    """Send records through their flow again; how many rows were refused once more."""
    with RecordsAgain(run.reads_of(flow, is_redriven=True), kept) as reader:
        again = evaluate(flow.query, reader)
        found = reader.found if reader.is_exact else None
        plan = note.plans[flow.name]
        # Behind the read, which is of the topics of now only if these were there before and after.
        if found and _remade(run, flow, {place[0] for place in found} - plan.remade):
            raise PipelineError(
                f"a topic of {flow.name} was deleted or made again while its records were read;"
                " no row is lost or comes twice: redrive again"
            )
        note.plans[flow.name] = plan.after(reader.wanted, found)
        note.write()
        if not found:
            return 0
        target = run.target_of(flow, is_redriven=True)
        return target.write(again, token, run.lineage(flow.name)).quarantined


def _plan(run: PipelineRun, flow: Flow, rows: pa.Table) -> Plan:
    """What is known of a flow's rows before their records are looked for."""
    places = {place for place in places_of(rows) if place is not None}
    stored = frozenset(_stored(run, flow, places))
    sources = {source.name for source in run.sources_of(flow)}
    return Plan(
        stored=stored,
        read_otherwise=stored & read_otherwise(rows, sources),
        remade=_remade(run, flow, {place[0] for place in places}),
        untold=frozenset() if sources else _mixed(run),
    )


def _remade(run: PipelineRun, flow: Flow, topics: Set[str]) -> frozenset[str]:
    """Topics that may not be those any more that the flow has read.

    One that reads several is not asked: its rows are judged as they were, whatever they came from.
    """
    sources = run.sources_of(flow)
    if len(sources) != 1:
        return frozenset()
    return remade_for(run.flow_state(flow), sources[0], run.pipeline.settings, topics)


def _mixed(run: PipelineRun) -> frozenset[str]:
    """Topics of which a table may have records of two of one name.

    All that ever wrote to the lake is asked, since flows and pipelines end and their rows stay.
    """
    states = PipelineState.all_of(run.lake.root)
    return mixed(notes_of(state for pipeline in states for state in pipeline.flows()))


def _stored(run: PipelineRun, flow: Flow, places: Set[Place]) -> set[Place]:
    """The records of refused rows of which the table has rows too.

    Rows that find their place by key or sequence may come again: they take their own place.
    Where a topic was made again, a row in the table may be of the record that has the place now
    and not of the refused one: a table does not tell. It is taken for one of the refused, which
    is then judged as it was, and so comes once, if not as a mended flow would make it. To take
    it for one of another record could bring rows of one record twice.
    """
    target = run.pipeline.datasets[flow.target]
    table = run.lake.table(flow.target, run.generation_of(flow.target))
    is_kept_by_key = flow.changes is not None or (
        isinstance(target, StreamingTable) and bool(target.keys)
    )
    if is_kept_by_key or not set(PLACE) <= set(table.schema.names):
        return set()
    wanted = run.spark.createDataFrame(table_of(places))
    there = frame_near(run.spark, table, table.version, places).select(*PLACE)
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
