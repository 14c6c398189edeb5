"""What a flow did not see because it began later: the records before its first, in a batch.

A flow's starts say where it began. A backfill reads what lies before, down to some time or to the
beginning of the log, runs it through the flow and moves the starts, so no record comes twice.
"""

import json
from typing import TYPE_CHECKING

from headrace.client.admin import Admin
from headrace.client.partitions import EARLIEST
from headrace.lake.commits import Token
from headrace.lake.lineage import Lineage
from headrace.pipelines.model import Flow
from headrace.pipelines.names import is_source
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.reading import (
    SnapshotReader,
    admitted,
    client_properties,
    source_options,
)
from headrace.pipelines.running.reports import Outcome
from headrace.pipelines.running.state import read_json
from headrace.runtime import files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Offsets = dict[str, dict[str, int]]


def backfill(run: PipelineRun, flow: Flow, *, from_ms: int | None = None) -> Outcome:
    """Read what lies before a flow's starts; what was backfilled before is not read again."""
    state = run.flow_state(flow)
    started = state.started_at()
    if not started:
        raise PipelineError(
            f"the flow {flow.name} has not run yet, or reads no topic: there is nothing before it"
        )
    note = state.directory / "backfilled.json"
    known = read_json(note)
    upper: Offsets = known.get("from", started)
    number = int(known.get("backfills", 0))
    lower = _lower(run, upper, from_ms)
    ranges = {
        topic: {
            partition: (lower[topic][partition], int(to))
            for partition, to in partitions.items()
            if lower[topic][partition] < int(to)
        }
        for topic, partitions in upper.items()
    }
    if not any(ranges.values()):
        return Outcome()
    target = run.target_of(flow)
    token = Token(f"{state.writer()}/backfill", number)
    outcome = Outcome(is_repeated=True)
    if not target.has(token):
        lineage = Lineage(
            pipeline=run.name,
            pipeline_version=run.pipeline.settings.version,
            flow=flow.name,
            offsets=ranges,
        )
        outcome = target.write(_rows(run, flow, ranges), token, lineage)
    content = {"from": lower, "backfills": number + 1}
    files.replace_file(str(note), json.dumps(content).encode())
    return outcome


def _lower(run: PipelineRun, upper: Offsets, from_ms: int | None) -> Offsets:
    """Where the backfill begins: at a time, or at the first record that is still there."""
    lower: Offsets = {}
    with Admin(client_properties(run.pipeline.settings)) as admin:
        for topic, partitions in upper.items():
            at = EARLIEST if from_ms is None else from_ms
            found = {one.partition: one.offset for one in admin.partitions.offsets(topic, at)}
            lower[topic] = {
                partition: min(int(to), _known(found.get(int(partition)), int(to)))
                for partition, to in partitions.items()
            }
    return lower


def _known(offset: int | None, otherwise: int) -> int:
    return otherwise if offset is None or offset < 0 else offset


def _rows(
    run: PipelineRun, flow: Flow, ranges: dict[str, dict[str, tuple[int, int]]]
) -> "DataFrame":
    reads = run.reads()
    names = [n for n in run.preparation.inputs[flow.target] if is_source(n)]
    starts = {t: {p: span[0] for p, span in ps.items()} for t, ps in ranges.items() if ps}
    ends = {t: {p: span[1] for p, span in ps.items()} for t, ps in ranges.items() if ps}
    given = {}
    for name in names:
        source = reads.source(name)
        assert source is not None, "its name is in the namespace of sources"
        options = source_options(source, run.pipeline.settings)
        options.pop("subscribe", None)
        options.pop("subscribePattern", None)
        options["assign"] = json.dumps({t: [int(p) for p in ps] for t, ps in starts.items()})
        options["startingOffsets"] = json.dumps(starts)
        options["endingOffsets"] = json.dumps(ends)
        rows = run.spark.read.format(source.connector).options(**options).load()
        given[name] = admitted(rows, source)
    return evaluate(flow.query, SnapshotReader(reads, given))
