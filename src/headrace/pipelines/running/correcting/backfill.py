"""Backfill: the records before a flow's first one, in a batch.

A flow's starts are its first offsets. A backfill reads the records before them, back to a time or
to the beginning of the log, runs them through the flow, and records its lowest offsets, so that no
record is added twice. Its plan is recorded too: after a crash, the next call completes it first.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from headrace.client.admin import Admin
from headrace.client.partitions import EARLIEST
from headrace.lake.commit_log import Token
from headrace.pipelines.declaring.names import is_source
from headrace.pipelines.model import Flow, Source, StreamingTable, takes_late_rows
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.queries.resolving import evaluate
from headrace.pipelines.queries.sources import (
    admitted,
    by_cluster,
    reads_topic,
    source_options,
    span_options,
    spans_of,
)
from headrace.pipelines.running.flows.inputs import SnapshotReader, TableReads
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.state.folders import FlowState, read_json, write_file
from headrace.pipelines.running.state.reports import Outcome
from headrace.spark.checkpoints import has_state
from headrace.spark.side_output import Spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Offsets = dict[str, dict[str, int]]


class Progress(msgspec.Struct):
    """The lowest offsets of a flow's backfills, and the one that may be under way."""

    reached: Offsets
    done: int = 0
    under_way: Offsets | None = None


def backfill(run: PipelineRun, flow: Flow, *, from_ms: int | None = None) -> Outcome:
    """Read the records before a flow's starts, except those of earlier backfills."""
    _check(run, flow)
    state = run.folders.of(flow)
    started = state.started_at()
    if not started:
        raise PipelineError(
            f"the flow {flow.name} has not run yet, or reads no topic: there is nothing before it"
        )
    path = _path(state)
    progress = msgspec.convert(read_json(path) or {"reached": started}, Progress)
    outcome = Outcome(is_idle=True)
    if progress.under_way is not None:
        outcome = _finish(run, flow, progress, path)
    lower = _lower(run, flow, progress.reached, from_ms)
    if any(_spans(lower, progress.reached).values()):
        progress.under_way = lower
        _save(path, progress)
        outcome = _finish(run, flow, progress, path)
    return outcome


def earliest_read(state: FlowState) -> Offsets:
    """Return the lowest offsets that backfills of a flow have read, or may have."""
    content = read_json(_path(state))
    if not content:
        return {}
    progress = msgspec.convert(content, Progress)
    # The one under way goes below the reached offsets.
    return progress.under_way or progress.reached


def _check(run: PipelineRun, flow: Flow) -> None:
    """Reject flows whose older rows would replace newer ones, or totals of all records."""
    if run.preparation.keeps_state(flow) or has_state(run.folders.of(flow).checkpoint):
        raise PipelineError(
            f"{flow.location}: the flow {flow.name} makes its rows from several records each (a"
            " total, a join of streams, deduplication). Rows of the older records alone would"
            " duplicate or replace those of the table, so it cannot be backfilled; replay the"
            " pipeline instead, which reads everything in order"
        )
    target = run.pipeline.datasets[flow.target]
    if isinstance(target, StreamingTable) and not takes_late_rows(target, flow):
        raise PipelineError(
            f"{target.name} is kept by key without an order, so older records would replace newer"
            " ones; declare the column that orders the rows of a key"
            " (SEQUENCE BY column, in Python sequence_by=), or replay the pipeline instead"
        )


def _finish(run: PipelineRun, flow: Flow, progress: Progress, path: Path) -> Outcome:
    """Write the planned records, unless it was done before a crash, and record the end."""
    assert progress.under_way is not None, "only called with something to do"
    spans = _spans(progress.under_way, progress.reached)
    target = run.targets.of(flow)
    token = Token(f"{run.folders.of(flow).writer()}/backfill", progress.done)
    outcome = Outcome(is_repeated=True)
    if not target.has(token):
        reads = run.reads_of(flow)
        given = {}
        for name in run.preparation.inputs[flow.target]:
            if is_source(name) and (source := reads.source(name)) is not None:
                given[name] = _read_between(reads, source, spans)
        rows = evaluate(flow.query, SnapshotReader(reads, given))
        outcome = target.write(rows, token, run.lineage(flow.name, offsets=spans))
    progress.reached, progress.under_way = progress.under_way, None
    progress.done += 1
    _save(path, progress)
    return outcome


def _read_between(reads: TableReads, source: Source, spans: Spans) -> "DataFrame":
    """Read a source's records in these spans, decoded and filtered as in a stream.

    The spans may include topics of the flow's other sources.
    """
    options = source_options(source, reads.pipeline.settings)
    own = spans_of(source, spans)
    if any(own.values()):
        rows = reads.loaded(reads.spark.read, source, span_options(options, own))
    else:  # No broker is asked: the topic may be gone.
        rows = reads.loaded(reads.spark.read, source, options).limit(0)
    return admitted(rows, source)


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
    """Return the first offsets of the backfill: at a time, or at the log's beginning."""
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
            f"{flow.location}: the flow {flow.name} reads {', '.join(unclear)} from several"
            " clusters, and its start is recorded by topic name only; replay the pipeline instead,"
            " or give each cluster a flow of its own"
        )
    return lower


def _known(offset: int | None, otherwise: int) -> int:
    return otherwise if offset is None or offset < 0 else offset


def _path(state: FlowState) -> Path:
    return state.directory / "backfilled.json"


def _save(path: Path, progress: Progress) -> None:
    write_file(path, json.dumps(msgspec.to_builtins(progress)).encode())
