"""Rows out of quarantine, after what was wrong is mended: through the same flow and door again.

What could not be read is run through its flow again, from the record it came from. What broke an
expectation is judged again as it is. Either way a row that passes goes to its table, and one that
does not goes back to quarantine with its new reason.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.commits import Token
from headrace.lake.lineage import Lineage
from headrace.pipelines.model import Flow, StreamingTable
from headrace.pipelines.names import quarantine_of
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running.expectations import UNREADABLE
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.reading import SnapshotReader, TableReads, admitted, source_options
from headrace.pipelines.running.reports import Outcome
from headrace.pipelines.running.state import read_json
from headrace.runtime import files
from headrace.spark.tables.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = ("topic", "partition", "offset")
_MOMENTS_PER_DELETE = 500


@dataclass(frozen=True, slots=True)
class Redriven:
    """How many rows were taken out of quarantine, and how many of them came back."""

    taken: int
    refused: int


def redrive(run: PipelineRun, table: str) -> Redriven:
    """Give every row in a table's quarantine another try.

    Which rows those are is written down first, with the name under which they are committed: after
    a crash the next call finds the note and finishes the same rows, each once.
    """
    target = run.pipeline.datasets.get(table)
    if not isinstance(target, StreamingTable):
        raise PipelineError(f"{table} is no streaming table of {run.name}; only these are redriven")
    with run.state.held("redrive"):
        note = run.state.directory / f"redrive-{table}.json"
        quarantine = run.quarantine_of(table)
        if quarantine is None:
            raise PipelineError(f"{table} refuses no rows: it has no quarantine to redrive")
        noted = read_json(note)
        if not noted:
            noted = {"version": quarantine.table.version, "id": uuid4().hex}
            files.replace_file(str(note), json.dumps(noted).encode())
        rows = quarantine.table.rows(version=int(noted["version"]))
        outcomes = [
            _redrive_flow(run, flow, rows.filter(pc.equal(rows["flow"], flow.name)), noted["id"])
            for flow in run.pipeline.flows
            if flow.target == table
        ]
        _remove(run, table, rows)
        files.unlink_if_there(str(note))
    refused = sum(outcome.quarantined for outcome in outcomes)
    return Redriven(rows.num_rows, refused)


def _redrive_flow(run: PipelineRun, flow: Flow, rows: pa.Table, name: str) -> Outcome:
    total = Outcome()
    is_unreadable = pc.equal(rows["rule"], UNREADABLE)
    parts = ((0, rows.filter(is_unreadable)), (1, rows.filter(pc.invert(is_unreadable))))
    target = run.target_of(flow)
    for batch, part in parts:
        token = Token(f"redrive/{name}/{flow.name}", batch)
        if not part.num_rows or target.has(token):
            continue
        again = _read_again(run, flow, part) if batch == 0 else _as_they_were(run, flow, part)
        lineage = Lineage(
            pipeline=run.name, pipeline_version=run.pipeline.settings.version, flow=flow.name
        )
        total.quarantined += target.write(again, token, lineage).quarantined
    return total


def _read_again(run: PipelineRun, flow: Flow, rows: pa.Table) -> "DataFrame":
    """The flow over the very records that it could not read before."""
    if rows["offset"].null_count:
        raise PipelineError(
            f"{flow.place}: rows of {flow.name} were set aside without the columns topic, partition"
            " and offset, so their records cannot be found again; select these in the flow"
        )
    spark = run.spark
    wanted = spark.createDataFrame(rows.select(list(_PLACE))).distinct()
    reads = run.reads()
    given = {name: _only(run, reads, name, wanted) for name in run.preparation.inputs[flow.target]}
    return evaluate(flow.query, SnapshotReader(reads, given))


def _only(run: PipelineRun, reads: TableReads, name: str, wanted: "DataFrame") -> "DataFrame":
    """Those rows of an input that came from the wanted records, if it says from which."""
    source = reads.source(name)
    if source is not None:
        options = source_options(source, run.pipeline.settings) | _span(wanted)
        options.pop("subscribe", None)
        options.pop("subscribePattern", None)
        rows = run.spark.read.format(source.connector).options(**options).load()
        return admitted(rows, source).join(wanted, list(_PLACE), "left_semi")
    rows = SnapshotReader(reads).read(name)
    if not set(_PLACE) <= set(rows.columns):
        return rows
    return rows.join(wanted, list(_PLACE), "left_semi")


def _span(wanted: "DataFrame") -> dict[str, str]:
    """The offsets of a topic to read for these records: from the first to the last."""
    from pyspark.sql import functions as F  # noqa: N812

    spans = wanted.groupBy("topic", "partition").agg(
        F.min("offset").alias("first"), F.max("offset").alias("last")
    )
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for row in spans.collect():
        starts.setdefault(row["topic"], {})[str(row["partition"])] = row["first"]
        ends.setdefault(row["topic"], {})[str(row["partition"])] = row["last"] + 1
    assigned = {topic: [int(p) for p in partitions] for topic, partitions in starts.items()}
    return {
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
    }


def _as_they_were(run: PipelineRun, flow: Flow, rows: pa.Table) -> "DataFrame":
    """The refused rows as the flow had made them."""
    from pyspark.sql import functions as F  # noqa: N812

    table = run.lake.table(flow.target, run.generation_of(flow.target))
    schema = schema_of(table.schema)
    texts = run.spark.createDataFrame(rows.select(["row"]))
    return texts.select(F.from_json("row", schema).alias("r")).select("r.*")


def _remove(run: PipelineRun, table: str, rows: pa.Table) -> None:
    """Take the rows out of quarantine; each batch that was put there has a moment of its own."""
    moments = sorted(pc.unique(rows["quarantined_at"]).cast(pa.int64()).to_pylist())
    with run.place(quarantine_of(table)).held() as quarantine:
        for first in range(0, len(moments), _MOMENTS_PER_DELETE):
            some = ", ".join(
                f"to_timestamp_micros({moment})"
                for moment in moments[first : first + _MOMENTS_PER_DELETE]
            )
            quarantine.delete(f"quarantined_at IN ({some})")
