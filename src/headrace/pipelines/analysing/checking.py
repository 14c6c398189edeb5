"""The dry run: finds the problems of a pipeline in seconds, before it runs.

Files, names, circles and ways of reading need nothing; topics need a broker; columns need Spark,
but no data. Each step goes as far as it can, so that one run reports everything. Spark starts
slowly, so the command first shows the results without it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError
from headrace.pipelines.analysing import graph as graphs
from headrace.pipelines.analysing import promotion, raw_days
from headrace.pipelines.analysing.graph import Graph
from headrace.pipelines.analysing.topic_checks import TopicReport
from headrace.pipelines.model import SOURCES, MergedView, Pipeline
from headrace.pipelines.problems import Problem, in_order
from headrace.pipelines.queries.sources import source_options
from headrace.spark.connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.pipelines.analysing.analysis import Analysis

NO_SPARK = "columns were not checked, which needs Spark; inputs of functions are as written"
NO_PLANS = (
    "merged views were not checked: a Spark Connect server shows no plans; check with"
    " --master 'local[1]'"
)
Columns = tuple[tuple[str, str], ...]
"""Names and types."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a dry run."""

    graph: Graph
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    """Checks that were skipped, and possible problems."""
    columns: Mapping[str, Columns] = field(default_factory=dict)
    """For each source and dataset that Spark could analyse."""

    @property
    def pipeline(self) -> Pipeline:
        return self.graph.pipeline

    def with_problems(self, more: Iterable[Problem]) -> "Report":
        return replace(self, problems=tuple(in_order((*self.problems, *more))))


def check(
    pipeline: Pipeline,
    *,
    topics: Callable[[Pipeline], TopicReport] | None = None,
    spark: "SparkSession | None" = None,
) -> Report:
    """Run all checks that the arguments allow, such as those of topics and those by Spark."""
    report = _with_spark(pipeline, spark) if spark is not None else _without_spark(pipeline)
    if topics is not None:
        found = topics(pipeline)
        report = replace(
            report,
            problems=(*report.problems, *found.problems),
            notes=(*report.notes, *found.notes),
        )
    return replace(report, problems=tuple(in_order(report.problems)))


def analysed(report: Report, spark: "SparkSession") -> Report:
    """Extend a report made without Spark by Spark's findings."""
    found = _with_spark(report.pipeline, spark)
    notes = dict.fromkeys((*found.notes, *(note for note in report.notes if note != NO_SPARK)))
    problems = in_order((*report.problems, *found.problems))
    return replace(found, problems=tuple(problems), notes=tuple(notes))


def _wrong_sources(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield the options and schemas that no reader accepts; no request is sent to a registry."""
    from headrace.spark.decoding.formats import decoder_of
    from headrace.spark.source.options import parse

    for source in pipeline.sources.values():
        if source.connector != "headrace":
            continue
        options = source_options(source, pipeline.settings)
        try:
            parse(options, is_streaming=True)
            if not any(name.lower() == "schema.registry.url" for name in options):
                decoder_of(options)
        except HeadraceError as error:
            yield Problem(f"{SOURCES}.{source.name}: {error}", source.location)


def _without_spark(pipeline: Pipeline) -> Report:
    graph = graphs.graph_of(pipeline)
    found = (*graphs.problems(graph), *promotion.problems(graph), *_wrong_sources(pipeline))
    return Report(graph, found, (NO_SPARK, *promotion.unpartitioned(pipeline)))


def _with_spark(pipeline: Pipeline, spark: "SparkSession") -> Report:
    from headrace.lake.catalog import Lake
    from headrace.pipelines.analysing.analysis import Analysis
    from headrace.pipelines.analysing.existing_tables import existing
    from headrace.pipelines.analysing.schema_checks import check_declared, check_lake
    from headrace.pipelines.analysing.spark_errors import quiet

    analysis = Analysis(spark, pipeline, partial(existing, Lake(pipeline.settings.lake)))
    with quiet():
        analysis.run()
        check_declared(analysis)
    check_lake(analysis)
    graph = analysis.graph()
    columns = {
        name: tuple((one.name, one.dataType.simpleString()) for one in schema.fields)
        for name, schema in analysis.columns.items()
    }
    found = (*graphs.problems(graph), *promotion.problems(graph), *analysis.problems)
    left_out = analysis.undated()
    notes = tuple(promotion.unpartitioned(pipeline, left_out))
    if raw_days.MADE_WHOLE in left_out.values():
        notes += tuple(_before_a_replay(analysis))
    if is_connect(spark) and any(isinstance(d, MergedView) for d in pipeline.datasets.values()):
        notes = (NO_PLANS, *notes)
    return Report(graph, found, notes, columns)


def _before_a_replay(analysis: "Analysis") -> Iterator[str]:
    """Yield the problems of a replay that a run does not have.

    Rebuilt raw tables get a day column, which queries may not expect.
    """
    from headrace.pipelines.analysing.analysis import Analysis
    from headrace.pipelines.analysing.schema_checks import check_declared
    from headrace.pipelines.analysing.spark_errors import quiet

    rebuilt = Analysis(analysis.spark, analysis.pipeline)
    with quiet():
        rebuilt.run()
        check_declared(rebuilt)
    for problem in in_order(set(rebuilt.problems) - set(analysis.problems)):
        yield f"change this before the next replay: {problem}"
