"""Pipelines in a pytest: give rows, run flows, look at tables. No broker, no cluster.

    def test_an_order_counts_once(headrace_pipeline):
        headrace_pipeline.given("staging.orders", [{"id": 1}, {"id": 1}])
        headrace_pipeline.run("trusted.orders")
        assert headrace_pipeline.rows("trusted.orders") == [{"id": 1}]

The flows run as in production, as streams over real tables, with their expectations and their
state; only topics are replaced, by files with the given rows. A second `given` and `run` continue
after the first. The fixture `headrace_pipeline` comes with the package.
"""

import os
import warnings
from collections import UserDict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.pipelines import model
from headrace.pipelines.analysing.graph import missing_text
from headrace.pipelines.declaring.names import is_source, quarantine_of
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.project import load
from headrace.pipelines.queries.sources import metadata_prefix
from headrace.pipelines.testing.given_rows import (
    Payload,
    Row,
    decoded,
    listed,
    source_rows,
    table_rows,
    with_days,
)
from headrace.spark.session import LOCAL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headrace.pipelines.running.pipeline_run import PipelineRun

RUN_S_MAX = 300
"""The time limit of one flow over the rows of a test."""
_INFERENCE = "spark.sql.streaming.schemaInference"


class PipelineTest:
    """One pipeline with empty tables of its own, in a folder of the test."""

    def __init__(self, folder: Path | str, spark: "SparkSession", place: Path | str) -> None:
        self.spark = spark
        self._place = Path(place)
        self.pipeline = load(folder, Unsecret(os.environ), master=LOCAL)
        self._offsets: dict[str, int] = {}
        self._files = 0
        self._touched: set[str] = set()
        self._sent: dict[str, list[dict[str, Any]]] = {}
        self._schemas = {
            name: self._write_empty(source) for name, source in self.pipeline.sources.items()
        }
        with self._files_as_streams():
            self._run = self._prepared()

    def given(self, name: str, rows: Iterable[Row | Payload]) -> None:
        """Add rows to a source or a table.

        A source takes rows with the columns of its schema, or payloads as in the topic: texts or
        bytes, which are decoded as in production.
        """
        rows = listed(name, rows)
        short = name.removeprefix(f"{model.SOURCES}.")
        if is_source(name) and short in self.pipeline.sources:
            self._give_source(self.pipeline.sources[short], rows)
        elif isinstance(
            self.pipeline.datasets.get(name), model.StreamingTable | model.MaterializedView
        ):
            self._give_table(name, rows)
        elif name in self.pipeline.datasets:
            raise PipelineError(f"{name} keeps no rows of its own; give rows to what it reads")
        else:
            raise PipelineError(missing_text(self.pipeline, name, to="give rows to"))
        self._touched.add(name)

    def run(self, *names: str) -> None:
        """Run the flows and views that fill these datasets; without names, all, in order.

        Datasets that no given row can reach are skipped.
        """
        for name in names:
            check_runnable(self.pipeline, name)
        for name in names or self._all_with_news():
            if notice := empty_inputs(name, self._run.preparation.inputs[name], self._touched):
                warnings.warn(notice, stacklevel=2)
            self._run_one(name)
            self._touched.add(name)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a table or view, or the rows sent to a sink."""
        dataset = self.pipeline.datasets.get(name)
        if isinstance(dataset, model.Sink):
            return list(self._sent.get(name, ()))
        if isinstance(dataset, model.TemporaryView):
            raise PipelineError(f"{name} is not stored; look at a table that reads it")
        lake = self._run.lake
        if name in lake.views():
            return _listed(lake.merged_rows(name))
        return _listed(lake.table(name).rows())

    def quarantined(self, name: str) -> list[dict[str, Any]]:
        """Return the rejected rows of a table: `rule`, `reason`, and the row as JSON in `row`."""
        if name not in self.pipeline.datasets:
            raise PipelineError(missing_text(self.pipeline, name, to="look at"))
        quarantine = quarantine_of(name)
        return self.rows(quarantine) if self._run.lake.has(quarantine) else []

    def _prepared(self) -> "PipelineRun":
        from headrace.pipelines.running.pipeline_run import PipelineRun

        sources = {name: self._as_files(source) for name, source in self.pipeline.sources.items()}
        settings = replace(self.pipeline.settings, lake=str(self._place / "lake"))
        datasets = {name: _without_letters(one) for name, one in self.pipeline.datasets.items()}
        pipeline = replace(self.pipeline, settings=settings, sources=sources, datasets=datasets)
        run = PipelineRun(self.spark, pipeline)
        run.prepare()
        return run

    def _as_files(self, source: model.Source) -> model.Source:
        """Return the source as a stream of files, which Spark reads on its own."""
        options = {"path": str(self._folder(source)), "metadataPrefix": metadata_prefix(source)}
        return replace(source, connector="parquet", options=options)

    def _folder(self, source: model.Source) -> Path:
        return self._place / "sources" / source.name

    def _write_empty(self, source: model.Source) -> Any:
        """Write a first file, for the columns; return its schema."""
        from headrace.pipelines.analysing.stand_ins import source_schema
        from headrace.spark.tables.schemas import arrow_schema_of

        schema = arrow_schema_of(source_schema(source, self.pipeline.settings))
        self._write(source, schema.empty_table())
        return schema

    def _write(self, source: model.Source, rows: Any) -> None:
        """Write a file under its name at once: a stream must not see it half written."""
        import pyarrow.parquet as pq

        folder = self._folder(source)
        folder.mkdir(parents=True, exist_ok=True)
        self._files += 1
        hidden = folder / f".{self._files}"
        pq.write_table(rows, hidden)
        hidden.rename(folder / f"{self._files:06}.parquet")

    def _give_source(self, source: model.Source, rows: Sequence[Row | Payload]) -> None:
        if rows and not any(isinstance(row, Mapping) for row in rows):
            payloads = [row for row in rows if not isinstance(row, Mapping)]
            rows = decoded(source, self.pipeline.settings, payloads)
        first = self._offsets.get(source.name, 0)
        self._write(source, source_rows(source, rows, self._schemas[source.name], first))
        self._offsets[source.name] = first + len(rows)

    def _give_table(self, name: str, rows: Sequence[Row | Payload]) -> None:
        from headrace.lake.commit_log import Token
        from headrace.lake.lineage import Lineage

        named = [row for row in rows if isinstance(row, Mapping)]
        if len(named) < len(rows):
            raise PipelineError(f"{name} is a table; give its rows by column")
        table = self._run.lake.table(name)
        self._files += 1
        given = table_rows(name, named, table.schema)
        with table.writer() as writer:
            writer.write(with_days(given) if self._run.preparation.adds_day_to(name) else given)
            table.append(writer.close(), Token("given", self._files), Lineage(flow="given"))

    def _all_with_news(self) -> list[str]:
        """Return the datasets with new rows, in order: all readers of given or computed rows."""
        inputs = self._run.preparation.inputs
        reached = set(self._touched)
        found = []
        for name in (name for level in self._run.preparation.levels() for name in level):
            if not inputs[name] or inputs[name] & reached:
                reached.add(name)
                found.append(name)
        return found

    def _run_one(self, name: str) -> None:
        from headrace.pipelines.running.flows.query import FlowQuery
        from headrace.pipelines.running.views.computed import ComputedView

        dataset = self.pipeline.datasets[name]
        with self._files_as_streams():
            for flow in self._run.flows():
                if flow.target == name and isinstance(dataset, model.Sink):
                    _finish(self._start_sink(flow))
                elif flow.target == name:
                    _finish(FlowQuery(self._run, flow).start(is_once=True))
            if isinstance(dataset, model.MaterializedView) or name in self._run.lake.views():
                assert isinstance(dataset, model.MaterializedView | model.MergedView), (
                    "views are computed"
                )
                ComputedView(self._run, dataset).refresh(is_forced=True)

    def _start_sink(self, flow: model.Flow) -> "StreamingQuery":
        """Start a flow to a topic, whose rows are kept in memory instead."""
        from headrace.pipelines.queries.resolving import evaluate
        from headrace.pipelines.running.flows.inputs import LiveReader

        sink = self.pipeline.datasets[flow.target]
        assert isinstance(sink, model.Sink), "only flows to sinks come here"
        sent = self._sent.setdefault(sink.name, [])

        def keep(rows: "DataFrame", _: int) -> None:
            sent.extend(_listed(rows.toArrow()))

        run = self._run
        state = run.folders.of(flow)
        frame = evaluate(flow.query, LiveReader(run.reads_of(flow), state))
        writer = frame.writeStream.outputMode(model.output_mode(flow, sink))
        writer = writer.option("checkpointLocation", str(state.checkpoint))
        return writer.trigger(availableNow=True).foreachBatch(keep).start()

    @contextmanager
    def _files_as_streams(self) -> Iterator[None]:
        """Let streams of files take their columns from the files within the block."""
        before = self.spark.conf.get(_INFERENCE) or "false"
        self.spark.conf.set(_INFERENCE, "true")
        try:
            yield
        finally:
            self.spark.conf.set(_INFERENCE, before)


class Unsecret(UserDict[str, str]):
    """The environment, with a value for every missing variable: tests need no secrets."""

    def get(self, key: str, default: Any = None) -> Any:
        if key in self.data:
            return self.data[key]
        return "not-set-in-tests" if default is None else default


def check_runnable(pipeline: model.Pipeline, name: Any) -> None:
    """Reject names that no flow fills: the test would pass without any effect."""
    if not isinstance(name, str):
        raise PipelineError(f"give the names of datasets one by one, not as {name!r}")
    if name.removeprefix(f"{model.SOURCES}.") in pipeline.sources and is_source(name):
        raise PipelineError(f"{name} is a source; run a dataset that reads it")
    dataset = pipeline.datasets.get(name)
    if isinstance(dataset, model.TemporaryView):
        raise PipelineError(f"{name} is not stored; run a dataset that reads it")
    if dataset is None:
        raise PipelineError(missing_text(pipeline, name, to="run"))


def empty_inputs(name: str, inputs: Set[str], filled: Set[str]) -> str | None:
    """Return a notice if all inputs of a dataset are empty, which hides a forgotten `given`."""
    if not inputs or inputs & filled:
        return None
    return (
        f"{name} reads {', '.join(sorted(inputs))}, which has no rows in this test: call given() or"
        " run() for it first"
    )


def folder_of(test_file: Path) -> Path:
    """Return the pipeline of a test file: the nearest folder above with a pipeline.toml."""
    from headrace.pipelines.declaring.settings_file import FILE

    for folder in test_file.parents:
        if (folder / FILE).is_file():
            return folder
    raise PipelineError(f"no folder above {test_file} has a {FILE}")


def _without_letters(dataset: model.Dataset) -> model.Dataset:
    """Return the dataset without dead letters: a test has no cluster, and reads quarantine."""
    if isinstance(dataset, model.StreamingTable):
        return replace(dataset, dead_letter_topic=None)
    return dataset


def _finish(query: "StreamingQuery") -> None:
    """Wait for a query to end; its failure becomes one line."""
    from pyspark.errors import StreamingQueryException

    from headrace.pipelines.running.driving.restarts import failure_of
    from headrace.pipelines.running.errors import ExpectationFailed

    try:
        if not query.awaitTermination(RUN_S_MAX):
            query.stop()
            raise PipelineError(f"{query.name} took longer than {RUN_S_MAX} s")
    except StreamingQueryException as error:
        failure = failure_of(str(error))
        kind = ExpectationFailed if failure.kind == "ExpectationFailed" else PipelineError
        raise kind(failure.text) from error


def _listed(rows: Any) -> list[dict[str, Any]]:
    """Return rows as Python values; times beyond its calendar are texts."""
    from headrace.lake.arrow_times import python_rows

    return python_rows(rows)
