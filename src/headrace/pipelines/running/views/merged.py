"""Merged views: the same aggregate kept by one stream (kappa) or by two layers (lambda).

The stream computes the aggregate of each micro-batch alone. Kappa merges these parts into the one
row of their key. Lambda's speed layer keeps them separate, marked with the input's version at the
end of their batch, until the batch layer has covered that version; see `layers`.

Repeated records are dropped by Spark's state of known keys before anything is computed, so that
both layers count the first one. Within a micro-batch that is the first in the order of the table's
files, in which tasks get their rows; only after a shuffle Spark guarantees no order.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.lake.merged_views import COMMIT_VERSION
from headrace.lake.upsert_decisions import Upsert
from headrace.pipelines.model import Architecture, Flow, MergedView
from headrace.pipelines.queries.resolving import evaluate
from headrace.pipelines.running.flows.batches import FlowBatches
from headrace.pipelines.running.flows.inputs import LiveReader, SnapshotReader, TableReads
from headrace.pipelines.running.flows.intake import Intake
from headrace.pipelines.running.flows.targets import AppendTarget, KeyedTarget, Target
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.state.reports import Outcome
from headrace.pipelines.running.tables.layers import batch_name, speed_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class MergedParts:
    """The input, keys and tables of a merged view's stream."""

    run: PipelineRun
    view: MergedView
    input: str
    keys: tuple[str, ...]
    is_lambda: bool

    @classmethod
    def of(cls, run: PipelineRun, view: MergedView) -> "MergedParts":
        (source,) = run.preparation.inputs[view.name]
        is_lambda = run.pipeline.settings.architecture is Architecture.LAMBDA
        stored = batch_name(view.name) if is_lambda else view.name
        columns = run.generations.table(stored).schema.names
        keys = tuple(name for name in columns if name not in view.merge)
        return cls(run, view, source, keys, is_lambda)

    @property
    def table_name(self) -> str:
        """The table that the stream writes to."""
        return speed_name(self.view.name) if self.is_lambda else self.view.name

    def stream(self, reader: LiveReader) -> "DataFrame":
        """Return the input's rows, each once."""
        rows = reader.read_stream(self.input)
        if self.view.deduplicate_by:
            rows = rows.dropDuplicates(list(self.view.deduplicate_by))
        return rows

    def target(self, flow: Flow) -> Target:
        place = self.run.generations.place(self.table_name)
        intake = Intake(place, None, flow.name)
        if not self.is_lambda:
            rows_max = self.run.pipeline.settings.driver_rows_max
            return KeyedTarget(intake, Upsert(self.keys, merge=self.view.merge), rows_max)
        return SpeedTarget(AppendTarget(intake), self.input)

    def fed(self, batches: FlowBatches) -> FlowBatches:
        """Aggregate each batch by the view's query before it is written."""
        return replace(batches, transform=self.aggregated)

    def aggregated(self, rows: "DataFrame") -> "DataFrame":
        run = self.run
        reads = TableReads(rows.sparkSession, run.pipeline, run.lake, run.generations.chosen)
        return evaluate(self.view.query, SnapshotReader(reads, given={self.input: rows}))


@dataclass(frozen=True, slots=True)
class SpeedTarget:
    """The speed layer's table: parts with the version of the input that they reach.

    A part that the batch layer covers already is written too. Readers skip it and the next batch
    layer removes it. Without its rows Spark might skip the batch, and forget the known keys.
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
