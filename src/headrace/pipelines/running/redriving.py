"""Rows out of quarantine, after what was wrong is mended: through the same flow and door again.

A row that says from which record it came is made anew from that record, since the flow may have
been mended. Another is judged again as it is. A row that passes goes to its table, and one that
does not goes back to quarantine with its new reason.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.commits import Token
from headrace.pipelines.model import (
    ERROR,
    PAYLOAD,
    RESERVED,
    Flow,
    StreamingTable,
    takes_late_rows,
)
from headrace.pipelines.names import quarantine_of
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.quarantine import UNREADABLE
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running.exact_records import read_between
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.reading import SnapshotReader, TableReads
from headrace.pipelines.running.state import read_json
from headrace.runtime import files
from headrace.spark.tables.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = ("topic", "partition", "offset")
_MOMENTS_PER_DELETE = 500
_MOMENT = 'Timestamp(Microsecond, Some("UTC"))'


@dataclass(frozen=True, slots=True)
class Redriven:
    """How many rows were taken out of quarantine, and how many of them came back."""

    taken: int
    refused: int
    left: int = 0
    """Rows of flows that the pipeline no longer has: nothing was done with them."""


def redrive(run: PipelineRun, table: str) -> Redriven:
    """Give every row in a table's quarantine another try.

    Which rows those are is written down first, with the name under which they are committed: after
    a crash the next call finds the note and finishes the same rows, each once.
    """
    flows = _flows(run, table)
    quarantine = run.quarantine_of(table)
    if quarantine is None:
        raise PipelineError(f"{table} refuses no rows: it has no quarantine to redrive")
    with run.state.held("redrive"):
        note = run.state.directory / f"redrive-{table}.json"
        noted = read_json(note)
        if not noted:
            noted = {"version": quarantine.table.version, "id": uuid4().hex}
            files.replace_file(str(note), json.dumps(noted).encode())
        rows = quarantine.table.rows(version=int(noted["version"]))
        known = rows.filter(pc.is_in(rows["flow"], pa.array([flow.name for flow in flows])))
        refused = sum(
            _redrive_flow(run, flow, known.filter(pc.equal(known["flow"], flow.name)), noted["id"])
            for flow in flows
        )
        _remove(run, table, known)
        files.unlink_if_there(str(note))
    return Redriven(known.num_rows, refused, rows.num_rows - known.num_rows)


def _flows(run: PipelineRun, table: str) -> list[Flow]:
    """The flows into a table whose rows may come late without harm."""
    target = run.pipeline.datasets.get(table)
    if not isinstance(target, StreamingTable):
        raise PipelineError(f"{table} is no streaming table of {run.name}; only these are redriven")
    flows = [flow for flow in run.pipeline.flows if flow.target == table]
    if not all(takes_late_rows(target, flow) for flow in flows):
        raise PipelineError(
            f"{table} is kept by key, and a row from quarantine may be older than the one that is"
            " there; declare the column that orders the rows of a key (SEQUENCE BY column, in"
            " Python sequence_by=), or replay the pipeline instead"
        )
    return flows


def _redrive_flow(run: PipelineRun, flow: Flow, rows: pa.Table, name: str) -> int:
    """Send a flow's refused rows through again; how many were refused once more."""
    has_place = pc.is_valid(rows["offset"])
    parts = (rows.filter(has_place), rows.filter(pc.invert(has_place)))
    # All of these were refused before, so a gate would shut out those that pass now.
    target = run.target_of(flow, is_gated=False)
    refused = 0
    for batch, part in enumerate(parts):
        token = Token(f"redrive/{name}/{flow.name}", batch)
        if not part.num_rows or target.has(token):
            continue
        again = _made_anew(run, flow, part) if batch == 0 else _as_they_were(run, flow, part)
        refused += target.write(again, token, run.lineage(flow.name)).quarantined
    return refused


def _made_anew(run: PipelineRun, flow: Flow, rows: pa.Table) -> "DataFrame":
    """The flow over the very records that its refused rows came from."""
    wanted = run.spark.createDataFrame(rows.select(list(_PLACE))).distinct()
    reads = run.reads(keeps_payloads=flow.keeps_payloads)
    given = {name: _only(reads, name, wanted) for name in run.preparation.inputs[flow.target]}
    return evaluate(flow.query, SnapshotReader(reads, given))


def _only(reads: TableReads, name: str, wanted: "DataFrame") -> "DataFrame":
    """Those rows of an input that came from the wanted records, if it says from which."""
    source = reads.source(name)
    if source is not None:
        rows = read_between(reads, source, _spans(wanted))
    else:
        rows = SnapshotReader(reads).read(name)
    if not set(_PLACE) <= set(rows.columns):
        return rows
    return rows.join(wanted, list(_PLACE), "left_semi")


def _spans(wanted: "DataFrame") -> dict[str, dict[str, tuple[int, int]]]:
    """The offsets of topics to read for these records: from the first to the last."""
    from pyspark.sql import functions as F  # noqa: N812

    ends = wanted.groupBy("topic", "partition").agg(
        F.min("offset").alias("first"), F.max("offset").alias("last")
    )
    spans: dict[str, dict[str, tuple[int, int]]] = {}
    for row in ends.collect():
        partitions = spans.setdefault(row["topic"], {})
        partitions[str(row["partition"])] = (row["first"], row["last"] + 1)
    return spans


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


def _remove(run: PipelineRun, table: str, rows: pa.Table) -> None:
    """Take the rows out of quarantine; a batch is known by its flow and its moment."""
    moments: dict[str, set[int]] = {}
    at = rows["quarantined_at"].cast(pa.int64()).to_pylist()
    for flow, moment in zip(rows["flow"].to_pylist(), at, strict=True):
        moments.setdefault(flow, set()).add(moment)
    with run.place(quarantine_of(table)).held() as quarantine:
        for flow, found in moments.items():
            ordered = sorted(found)
            for first in range(0, len(ordered), _MOMENTS_PER_DELETE):
                some = ordered[first : first + _MOMENTS_PER_DELETE]
                times = ", ".join(f"arrow_cast({moment}, '{_MOMENT}')" for moment in some)
                name = flow.replace("'", "''")
                quarantine.delete(f"flow = '{name}' AND quarantined_at IN ({times})")
