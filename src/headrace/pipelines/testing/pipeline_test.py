"""Pipelines in a pytest: give rows, run flows, look at tables. No broker, no cluster.

    def test_an_order_counts_once(headrace_pipeline):
        headrace_pipeline.given("staging.orders", [{"id": 1}, {"id": 1}])
        headrace_pipeline.run("trusted.orders")
        assert headrace_pipeline.rows("trusted.orders") == [{"id": 1}]

The flows run as they do in earnest, as streams over real tables, with their expectations and
their state; only topics are replaced, by files with the given rows. A second `given` and `run` go
on where the first have ended. The fixture `headrace_pipeline` comes with the package.
"""

import os
from collections import UserDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.pipelines.analysing.graph import missing_text
from headrace.pipelines.model import (
    SOURCES,
    Dataset,
    Flow,
    MaterializedView,
    MergedView,
    Pipeline,
    Sink,
    Source,
    StreamingTable,
    TemporaryView,
    output_mode,
)
from headrace.pipelines.names import is_source, quarantine_of
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.project import load
from headrace.pipelines.sources import metadata_prefix
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
"""How long one flow may take over the rows of a test."""
_INFERENCE = "spark.sql.streaming.schemaInference"


class PipelineTest:
    """One pipeline with empty tables of its own, in a folder that the test owns."""

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
        """Let a source or a table have these rows, besides what it has.

        A source takes rows with columns as its schema has them, or payloads as they would be in
        the topic: texts or bytes, which are decoded as in earnest.
        """
        rows = listed(name, rows)
        short = name.removeprefix(f"{SOURCES}.")
        if is_source(name) and short in self.pipeline.sources:
            self._give_source(self.pipeline.sources[short], rows)
        elif isinstance(self.pipeline.datasets.get(name), StreamingTable | MaterializedView):
            self._give_table(name, rows)
        elif name in self.pipeline.datasets:
            raise PipelineError(f"{name} keeps no rows of its own; give rows to what it reads")
        else:
            raise PipelineError(missing_text(self.pipeline, name, to="give rows to"))
        self._touched.add(name)

    def run(self, *names: str) -> None:
        """Run the flows and views that fill these datasets; without names, all, in order.

        What nothing was given to, directly or by another, has nothing to do and is passed over.
        """
        for name in names:
            check_runnable(self.pipeline, name)
        for name in names or self._all_with_news():
            self._run_one(name)
            self._touched.add(name)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table or view, or what a sink was sent."""
        dataset = self.pipeline.datasets.get(name)
        if isinstance(dataset, Sink):
            return list(self._sent.get(name, ()))
        if isinstance(dataset, TemporaryView):
            raise PipelineError(f"{name} is not stored; look at what reads it")
        lake = self._run.lake
        if name in lake.views():
            return _listed(lake.merged_rows(name))
        return _listed(lake.table(name).rows())

    def quarantined(self, name: str) -> list[dict[str, Any]]:
        """What a table has refused: `rule`, `reason`, the row as JSON in `row`."""
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

    def _as_files(self, source: Source) -> Source:
        """The source as a stream of files, which Spark reads by itself."""
        options = {"path": str(self._folder(source)), "metadataPrefix": metadata_prefix(source)}
        return replace(source, connector="parquet", options=options)

    def _folder(self, source: Source) -> Path:
        return self._place / "sources" / source.name

    def _write_empty(self, source: Source) -> Any:
        """A first file, which says what columns there are; the answer is its schema."""
        from headrace.pipelines.analysing.stand_ins import source_schema
        from headrace.spark.tables.schemas import arrow_schema_of

        schema = arrow_schema_of(source_schema(source, self.pipeline.settings))
        self._write(source, schema.empty_table())
        return schema

    def _write(self, source: Source, rows: Any) -> None:
        """A file under its name at once: a stream must not see it half written."""
        import pyarrow.parquet as pq

        folder = self._folder(source)
        folder.mkdir(parents=True, exist_ok=True)
        self._files += 1
        hidden = folder / f".{self._files}"
        pq.write_table(rows, hidden)
        hidden.rename(folder / f"{self._files:06}.parquet")

    def _give_source(self, source: Source, rows: Sequence[Row | Payload]) -> None:
        if rows and not any(isinstance(row, Mapping) for row in rows):
            payloads = [row for row in rows if not isinstance(row, Mapping)]
            rows = decoded(source, self.pipeline.settings, payloads)
        first = self._offsets.get(source.name, 0)
        self._write(source, source_rows(source, rows, self._schemas[source.name], first))
        self._offsets[source.name] = first + len(rows)

    def _give_table(self, name: str, rows: Sequence[Row | Payload]) -> None:
        from headrace.lake.commits import Token
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
        """What has something to do, in order: all that reads what was given or has been run."""
        inputs = self._run.preparation.inputs
        reached = set(self._touched)
        found = []
        for name in (name for level in self._run.preparation.levels() for name in level):
            if not inputs[name] or inputs[name] & reached:
                reached.add(name)
                found.append(name)
        return found

    def _run_one(self, name: str) -> None:
        from headrace.pipelines.running.views import ComputedView

        dataset = self.pipeline.datasets[name]
        with self._files_as_streams():
            for flow in self._run.flows():
                if flow.target == name and isinstance(dataset, Sink):
                    _finish(self._start_sink(flow))
                elif flow.target == name:
                    _finish(self._run.start(flow, is_once=True))
            if isinstance(dataset, MaterializedView) or name in self._run.lake.views():
                assert isinstance(dataset, MaterializedView | MergedView), "views are computed"
                ComputedView(self._run, dataset).refresh(is_forced=True)

    def _start_sink(self, flow: Flow) -> "StreamingQuery":
        """A flow to a topic, whose rows are kept in memory instead."""
        from headrace.pipelines.resolving import evaluate
        from headrace.pipelines.running.reading import LiveReader

        sink = self.pipeline.datasets[flow.target]
        assert isinstance(sink, Sink), "only flows to sinks come here"
        sent = self._sent.setdefault(sink.name, [])

        def keep(rows: "DataFrame", _: int) -> None:
            sent.extend(_listed(rows.toArrow()))

        run = self._run
        state = run.flow_state(flow)
        frame = evaluate(flow.query, LiveReader(run.reads_of(flow), state))
        writer = frame.writeStream.outputMode(output_mode(flow, sink))
        writer = writer.option("checkpointLocation", str(state.checkpoint))
        return writer.trigger(availableNow=True).foreachBatch(keep).start()

    @contextmanager
    def _files_as_streams(self) -> Iterator[None]:
        """Let streams of files take their columns from the files, as long as this runs."""
        before = self.spark.conf.get(_INFERENCE) or "false"
        self.spark.conf.set(_INFERENCE, "true")
        try:
            yield
        finally:
            self.spark.conf.set(_INFERENCE, before)


class Unsecret(UserDict[str, str]):
    """The environment, with something for what is not set: tests need no secrets."""

    def get(self, key: str, default: Any = None) -> Any:
        if key in self.data:
            return self.data[key]
        return "not-set-in-tests" if default is None else default


def check_runnable(pipeline: Pipeline, name: Any) -> None:
    """Refuse what no flow fills: nothing would happen, and the test would not know."""
    if not isinstance(name, str):
        raise PipelineError(f"give the names of datasets one by one, and not as {name!r}")
    if name.removeprefix(f"{SOURCES}.") in pipeline.sources and is_source(name):
        raise PipelineError(f"{name} is a source; run what reads it")
    dataset = pipeline.datasets.get(name)
    if isinstance(dataset, TemporaryView):
        raise PipelineError(f"{name} is not stored; run what reads it")
    if dataset is None:
        raise PipelineError(missing_text(pipeline, name, to="run"))


def folder_of(test_file: Path) -> Path:
    """The pipeline that a test file belongs to: the nearest folder above with a pipeline.toml."""
    from headrace.pipelines.declaring.settings_file import FILE

    for folder in test_file.parents:
        if (folder / FILE).is_file():
            return folder
    raise PipelineError(f"no folder above {test_file} has a {FILE}")


def _without_letters(dataset: Dataset) -> Dataset:
    """The dataset without its dead letters: a test has no cluster, and looks into quarantine."""
    if isinstance(dataset, StreamingTable):
        return replace(dataset, dead_letter_topic=None)
    return dataset


def _finish(query: "StreamingQuery") -> None:
    """Wait for a query to end, and tell in one line why it failed."""
    from pyspark.errors import StreamingQueryException

    from headrace.pipelines.running.errors import ExpectationFailed
    from headrace.pipelines.running.restarts import failure_of

    try:
        if not query.awaitTermination(RUN_S_MAX):
            query.stop()
            raise PipelineError(f"{query.name} took longer than {RUN_S_MAX} s")
    except StreamingQueryException as error:
        failure = failure_of(str(error))
        kind = ExpectationFailed if failure.kind == "ExpectationFailed" else PipelineError
        raise kind(failure.text) from error


def _listed(rows: Any) -> list[dict[str, Any]]:
    """Rows as Python has them; times beyond its calendar are texts."""
    from headrace.lake.far_times import python_rows

    return python_rows(rows)
