"""Merged views: the same aggregate kept by one stream (kappa) or by two layers (lambda).

The stream computes the aggregate of each micro-batch alone. Kappa merges these parts into the one
row of their key. Lambda's speed layer keeps them apart, marked with the input's version at the end
of their batch, until the batch layer has covered that version; see `layers`.

What may come twice is passed over by Spark's state of the keys seen so far, before anything is
computed, so that both layers count a record where it came first. Within a micro-batch that is the
first in the order of the table's files, in which tasks have their rows; only where executors fetch
rows from each other, Spark does not say whose come first.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.lake.commits import Token
from headrace.lake.lineage import Lineage
from headrace.lake.merging import COMMIT_VERSION
from headrace.lake.upserts import Upsert
from headrace.pipelines.model import Architecture, Flow, MergedView
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running.flow_batches import FlowBatches
from headrace.pipelines.running.intake import Intake
from headrace.pipelines.running.layers import batch_name, speed_name
from headrace.pipelines.running.reading import LiveReader, SnapshotReader, TableReads
from headrace.pipelines.running.reports import Outcome
from headrace.pipelines.running.targets import AppendTarget, KeyedTarget, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headrace.pipelines.running.pipeline_run import PipelineRun


@dataclass(frozen=True, slots=True)
class MergedParts:
    """How a merged view is fed: from which table, into which."""

    run: "PipelineRun"
    view: MergedView
    input: str
    keys: tuple[str, ...]
    is_lambda: bool

    @classmethod
    def of(cls, run: "PipelineRun", view: MergedView) -> "MergedParts":
        (source,) = run.preparation.inputs[view.name]
        is_lambda = run.pipeline.settings.architecture is Architecture.LAMBDA
        stored = batch_name(view.name) if is_lambda else view.name
        columns = run.lake.table(stored, run.generation_of(stored)).schema.names
        keys = tuple(name for name in columns if name not in view.merge)
        return cls(run, view, source, keys, is_lambda)

    @property
    def table_name(self) -> str:
        """The table that the stream writes to."""
        return speed_name(self.view.name) if self.is_lambda else self.view.name

    def stream(self, reader: LiveReader) -> "DataFrame":
        """The input's rows, each once."""
        rows = reader.read_stream(self.input)
        if self.view.deduplicate_by:
            rows = rows.dropDuplicates(list(self.view.deduplicate_by))
        return rows

    def target(self, flow: Flow) -> Target:
        place = self.run.place(self.table_name)
        intake = Intake(place, None, flow.name)
        if not self.is_lambda:
            rows_max = self.run.pipeline.settings.driver_rows_max
            return KeyedTarget(intake, Upsert(self.keys, merge=self.view.merge), rows_max)
        return SpeedTarget(AppendTarget(intake), self.input)

    def fed(self, batches: FlowBatches) -> FlowBatches:
        """Have each batch aggregated by the view's own query before it is written."""
        return replace(batches, transform=self.aggregated)

    def aggregated(self, rows: "DataFrame") -> "DataFrame":
        run = self.run
        reads = TableReads(rows.sparkSession, run.pipeline, run.lake, run.generations)
        return evaluate(self.view.query, SnapshotReader(reads, given={self.input: rows}))


@dataclass(frozen=True, slots=True)
class SpeedTarget:
    """The speed layer's table: parts that say up to which version of the input they reach.

    A part that the batch layer has covered already is written like any other. Readers pass over it
    and the next computation of the batch layer removes it. To leave its rows out here would let
    Spark find that nothing needs to be run, and the keys seen so far would not be remembered.
    """

    target: AppendTarget
    input: str

    def has(self, token: Token) -> bool:
        return self.target.has(token)

    def write(self, rows: "DataFrame", token: Token, lineage: Lineage) -> Outcome:
        from pyspark.sql import functions as F  # noqa: N812

        reaches = lineage.inputs[self.input][1]
        parts = rows.withColumn(COMMIT_VERSION, F.lit(reaches).cast("long"))
        return self.target.write(parts, token, lineage)
