"""What a flow did not see because it began later: the records before its first, in a batch.

A flow's starts say where it began. A backfill reads what lies before, down to some time or to the
beginning of the log, runs it through the flow, and notes how far down it came, so no record comes
twice. What it is about to read is noted too: after a crash the next call finishes just that first.
"""

import json
from pathlib import Path

import msgspec

from headrace.client.admin import Admin
from headrace.client.partitions import EARLIEST
from headrace.lake.commits import Token
from headrace.pipelines.model import Flow, StreamingTable, takes_late_rows
from headrace.pipelines.names import is_source
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running.exact_records import read_between
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.reading import SnapshotReader
from headrace.pipelines.running.reports import Outcome
from headrace.pipelines.running.state import FlowState, read_json, write_file
from headrace.pipelines.sources import by_cluster, reads_topic
from headrace.spark.checkpoints import has_state
from headrace.spark.refuge import Spans

Offsets = dict[str, dict[str, int]]


class Note(msgspec.Struct):
    """How far down the backfills of a flow have come, and the one that may be under way."""

    reached: Offsets
    done: int = 0
    under_way: Offsets | None = None


def backfill(run: PipelineRun, flow: Flow, *, from_ms: int | None = None) -> Outcome:
    """Read what lies before a flow's starts; what was backfilled before is not read again."""
    _check(run, flow)
    state = run.flow_state(flow)
    started = state.started_at()
    if not started:
        raise PipelineError(
            f"the flow {flow.name} has not run yet, or reads no topic: there is nothing before it"
        )
    path = _path(state)
    note = msgspec.convert(read_json(path) or {"reached": started}, Note)
    outcome = Outcome(is_idle=True)
    if note.under_way is not None:
        outcome = _finish(run, flow, note, path)
    lower = _lower(run, flow, note.reached, from_ms)
    if any(_spans(lower, note.reached).values()):
        note.under_way = lower
        _save(path, note)
        outcome = _finish(run, flow, note, path)
    return outcome


def came_down_to(state: FlowState) -> Offsets:
    """The lowest offsets that backfills of a flow have read, or may have, if one was cut off."""
    content = read_json(_path(state))
    if not content:
        return {}
    note = msgspec.convert(content, Note)
    return note.under_way or note.reached  # The one under way goes down from what was reached.


def _check(run: PipelineRun, flow: Flow) -> None:
    """Older rows must not take the place of newer ones, nor totals of some records that of all."""
    if run.preparation.gathers(flow) or has_state(run.flow_state(flow).checkpoint):
        raise PipelineError(
            f"{flow.place}: the flow {flow.name} makes its rows of several records each (a total,"
            " a join of streams, a record once). The older records alone would come to rows that"
            " double those of the table or take their place, so it cannot be backfilled; replay"
            " the pipeline instead, which reads everything in order"
        )
    target = run.pipeline.datasets[flow.target]
    if isinstance(target, StreamingTable) and not takes_late_rows(target, flow):
        raise PipelineError(
            f"{target.name} is kept by key, and older records would take the place of newer ones,"
            " since nothing says which is which; declare the column that orders the rows of a key"
            " (SEQUENCE BY column, in Python sequence_by=), or replay the pipeline instead"
        )


def _finish(run: PipelineRun, flow: Flow, note: Note, path: Path) -> Outcome:
    """Write what was noted, unless it was written before a crash, and note that it is done."""
    assert note.under_way is not None, "only called with something to do"
    spans = _spans(note.under_way, note.reached)
    target = run.target_of(flow)
    token = Token(f"{run.flow_state(flow).writer()}/backfill", note.done)
    outcome = Outcome(is_repeated=True)
    if not target.has(token):
        reads = run.reads_of(flow)
        given = {}
        for name in run.preparation.inputs[flow.target]:
            if is_source(name) and (source := reads.source(name)) is not None:
                given[name] = read_between(reads, source, spans)
        rows = evaluate(flow.query, SnapshotReader(reads, given))
        outcome = target.write(rows, token, run.lineage(flow.name, offsets=spans))
    note.reached, note.under_way = note.under_way, None
    note.done += 1
    _save(path, note)
    return outcome


def _spans(lower: Offsets, upper: Offsets) -> Spans:
    return {
        topic: {
            partition: (lower[topic][partition], to)
            for partition, to in partitions.items()
            if lower[topic][partition] < to
        }
        for topic, partitions in upper.items()
    }


def _lower(run: PipelineRun, flow: Flow, upper: Offsets, from_ms: int | None) -> Offsets:
    """Where the backfill begins: at a time, or at the first record that is still there."""
    sources = run.sources_of(flow)
    read = [topic for topic in upper if any(reads_topic(source, topic) for source in sources)]
    lower = {topic: dict(upper[topic]) for topic in upper if topic not in read}
    at = EARLIEST if from_ms is None else from_ms
    for properties, topics in by_cluster(read, sources, run.pipeline.settings):
        with Admin(properties) as admin:
            for topic in topics:
                found = {one.partition: one.offset for one in admin.partitions.offsets(topic, at)}
                lower[topic] = {
                    partition: min(to, _known(found.get(int(partition)), to))
                    for partition, to in upper[topic].items()
                }
    if unclear := sorted(upper.keys() - lower.keys()):
        raise PipelineError(
            f"{flow.place}: the flow {flow.name} reads {', '.join(unclear)} from several clusters,"
            " and where it began is noted by the name alone; replay the pipeline instead, or give"
            " each cluster a flow of its own"
        )
    return lower


def _known(offset: int | None, otherwise: int) -> int:
    return otherwise if offset is None or offset < 0 else offset


def _path(state: FlowState) -> Path:
    return state.directory / "backfilled.json"


def _save(path: Path, note: Note) -> None:
    write_file(path, json.dumps(msgspec.to_builtins(note)).encode())
