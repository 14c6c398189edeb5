"""The columns of its topics that a query uses, so that the source builds and sends no others.

Spark does not pass the used columns to a source written in Python. So the query is planned once
over empty relations with the topics' columns, and Spark's optimizer removes the unused ones. In
doubt a column counts as used.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.pipelines.analysing.analysis import Analysis
from headrace.pipelines.analysing.stand_ins import source_schema
from headrace.pipelines.model import Query, Source, TemporaryView
from headrace.pipelines.queries.resolving import evaluate
from headrace.pipelines.queries.sources import admitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_log = logging.getLogger(__name__)

OPTION = "columns"
_RELATION = "LogicalRDD"
_CHOOSING = ("Project", "Aggregate")
"""Nodes of a plan that need only the columns that they name."""
_PASSING = "Filter"
"""A node that needs the columns that it names, and those of its parents."""


def used_columns(analysis: Analysis, query: Query) -> dict[str, tuple[str, ...]]:
    """Return the used columns for each source that a query reads, if these are not all."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not _is_classic(analysis.spark):
        return {}
    reader = _Relations(analysis)
    try:
        frame = evaluate(query, reader)
        if not reader.sources:
            return {}
        needed = _needed(frame._jdf.queryExecution().optimizedPlan(), reader)
    except (PySparkException, Py4JError) as error:
        # A query that is valid only as a stream is not planned as a batch; it gets all columns.
        _log.debug("used columns of a query not found", extra={"error": str(error)})
        return {}
    return {
        name: columns
        for name, found in needed.items()
        if len(columns := _chosen(reader.columns[name], found)) < len(reader.columns[name])
    }


def _chosen(columns: tuple[str, ...], needed: set[str]) -> tuple[str, ...]:
    """Return the needed columns in order; if rows are only counted, one cheap column."""
    chosen = tuple(name for name in columns if name in needed)
    if any("," in name or name != name.strip() for name in chosen):
        return columns  # The option is a list with commas.
    if chosen:
        return chosen
    return next(((name,) for name in columns if name.endswith("offset")), columns)


@dataclass
class _Relations:
    """Provides a query with empty relations for its topics, and finds them in its plan."""

    analysis: Analysis
    sources: dict[int, str] = field(default_factory=dict)
    """The name of the source behind each relation, by the number of its RDD."""
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def spark(self) -> "SparkSession":
        return self.analysis.spark

    def read(self, name: str) -> "DataFrame":
        zone, _, short = name.partition(".")
        source = self.analysis.pipeline.sources.get(short) if zone == "sources" else None
        if source is not None and is_pruned(source):
            return admitted(self._relation(source), source)
        dataset = self.analysis.pipeline.datasets.get(name)
        if isinstance(dataset, TemporaryView):
            return evaluate(dataset.query, self)
        return self.analysis.stand_ins.table(self.analysis.columns_of(name))

    def read_stream(self, name: str) -> "DataFrame":
        """Return a batch: it has the same columns, and can be planned without a running query."""
        return self.read(name)

    def _relation(self, source: Source) -> "DataFrame":
        schema = source_schema(source, self.analysis.pipeline.settings)
        frame = self._empty(schema)
        relation = frame._jdf.queryExecution().analyzed()
        self.sources[relation.rdd().id()] = source.name
        self.columns[source.name] = tuple(schema.names)
        return frame

    def _empty(self, schema: "StructType") -> "DataFrame":
        """Return a frame of an RDD, which the optimizer does not inspect, without Python."""
        from pyspark.sql.classic.dataframe import DataFrame

        session = self.spark._jsparkSession
        nothing = self.spark.sparkContext._jsc.emptyRDD()
        columns = session.parseDataType(schema.json())
        return DataFrame(session.createDataFrame(nothing, columns), self.spark)


def is_pruned(source: Source) -> bool:
    """Return whether the columns of a source can be chosen."""
    given = {name.lower() for name in source.options}
    return source.connector == "headrace" and OPTION not in given


def _needed(plan: Any, reader: _Relations) -> dict[str, set[str]]:
    """Return the needed columns of each source; all of them if a relation is missing."""
    needed: dict[str, set[str]] = {}
    met: set[int] = set()
    for relation, wanted in _relations(plan, None):
        number = relation.rdd().id()
        if number not in reader.sources:
            continue
        met.add(number)
        attributes = _items(relation.output())
        names = {one.name() for one in attributes if wanted is None or _id(one) in wanted}
        needed.setdefault(reader.sources[number], set()).update(names)
    for number in reader.sources.keys() - met:
        name = reader.sources[number]
        needed[name] = set(reader.columns[name])
    return needed


def _relations(node: Any, wanted: set[int] | None) -> Iterator[tuple[Any, set[int] | None]]:
    """Yield the relations below a node, each with its needed columns; None means all."""
    kind = node.getClass().getSimpleName()
    if kind == _RELATION:
        yield node, wanted
        return
    if kind in _CHOOSING:
        wanted = _references(node)
    elif kind == _PASSING:
        wanted = None if wanted is None else wanted | _references(node)
    else:
        wanted = None
    for child in _items(node.children()):
        yield from _relations(child, wanted)


def _references(node: Any) -> set[int]:
    return {_id(one) for one in _items(node.references().toSeq())}


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _is_classic(session: "SparkSession") -> bool:
    """Return whether plans are available, which Spark Connect does not show."""
    return "connect" not in type(session).__module__
