"""Evaluation of queries to DataFrames, with names resolved by the caller.

The same query is evaluated over topics and tables by the runner, over empty frames by the dry run
and over given rows by a test. Each sets its `Resolver`; `read` and `read_stream` in functions and
the names in SQL use it.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from headrace.pipelines.model import Query
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.queries.sql_references import Reference, references, replaced
from headrace.serdes.sql_tokens import SqlSyntaxError
from headrace.spark.connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Resolver(Protocol):
    """Resolves names of datasets and sources to frames."""

    @property
    def spark(self) -> "SparkSession": ...

    def read(self, name: str) -> "DataFrame":
        """Return all current rows."""

    def read_stream(self, name: str) -> "DataFrame":
        """Return a stream of the rows."""


_current: ContextVar[Resolver | None] = ContextVar("headrace_resolver", default=None)
_serials = itertools.count(1)


def read(name: str) -> "DataFrame":
    """Return all current rows of a table, view or source."""
    return _resolver("read").read(_dataset_name(name))


def read_stream(name: str) -> "DataFrame":
    """Return a stream of the rows of a table, view or source."""
    return _resolver("read_stream").read_stream(_dataset_name(name))


def evaluate(query: Query, resolver: Resolver) -> "DataFrame":
    """Return the frame of a query with names resolved by the resolver."""
    with resolving_by(resolver):
        if isinstance(query, str):
            return evaluate_sql(query, resolver)
        made: Any = query()
    if not hasattr(made, "isStreaming"):
        raise PipelineError(
            f"{query.__name__} returned {type(made).__name__}; it must return a DataFrame"
        )
    frame: DataFrame = made
    return frame


def then(query: Query, change: "Callable[[DataFrame], DataFrame]") -> Query:
    """Return a query that changes the result of another, with any resolver."""

    def changed() -> "DataFrame":
        return change(evaluate(query, _resolver("a query")))

    return changed


def evaluate_sql(sql: str, resolver: Resolver) -> "DataFrame":
    """Analyse a query over temporary views that are dropped afterwards."""
    try:
        found = references(sql)
    except SqlSyntaxError as error:
        raise PipelineError(f"line {error.line} of the query: {error}") from error
    views = {(one.name, one.is_stream): _view_name(one) for one in found}
    made: list[str] = []
    at_rest: set[str] = set()
    try:
        for (name, is_stream), view in views.items():
            frame = resolver.read_stream(name) if is_stream else resolver.read(name)
            frame.createOrReplaceTempView(view)
            made.append(view)
            if not frame.isStreaming:
                at_rest.add(name)
        text = replaced(
            sql,
            found,
            lambda one: views[one.name, one.is_stream],
            lambda one: one.name in at_rest,
        )
        return resolver.spark.sql(text)
    finally:
        # Spark Connect analyses a query on use, and needs its views until then.
        if not is_connect(resolver.spark):
            for view in made:
                resolver.spark.catalog.dropTempView(view)


@contextmanager
def resolving_by(resolver: Resolver) -> Iterator[None]:
    """Set the resolver of `read`, `read_stream` and `spark` within the block."""
    token = _current.set(resolver)
    try:
        yield
    finally:
        _current.reset(token)


class PipelineSpark:
    """`spark` in pipeline files: the session, with the pipeline's tables.

    `spark.readStream.table("raw.orders")`, `spark.read.table`, `spark.table` and `spark.sql` read
    the pipeline's datasets; everything else is the session's own.
    """

    @property
    def read(self) -> "PipelineReader":
        return PipelineReader(_resolver("spark.read").spark.read, is_stream=False)

    @property
    def readStream(self) -> "PipelineReader":  # noqa: N802, the name is Spark's.
        return PipelineReader(_resolver("spark.readStream").spark.readStream, is_stream=True)

    def table(self, name: str) -> "DataFrame":
        return read(name)

    def sql(self, query: str) -> "DataFrame":
        return evaluate_sql(query, _resolver("spark.sql"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_resolver(f"spark.{name}").spark, name)


class PipelineReader:
    """Spark's reader with the pipeline's tables."""

    def __init__(self, reader: Any, *, is_stream: bool) -> None:
        self._reader = reader
        self._is_stream = is_stream

    def table(self, name: str) -> "DataFrame":
        return read_stream(name) if self._is_stream else read(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


spark = PipelineSpark()


def _resolver(word: str) -> Resolver:
    resolver = _current.get()
    if resolver is None:
        raise PipelineError(
            f"{word} is used outside of a query; use it inside the function of a table, a view or"
            " a flow, which is called when the pipeline runs"
        )
    return resolver


def _dataset_name(name: str) -> str:
    if not isinstance(name, str):
        raise PipelineError(f"a dataset's name is a text, and {name!r} is not")
    return name.replace("`", "").lower()


def _view_name(reference: Reference) -> str:
    """Return a unique name, across threads, that is readable in Spark's messages."""
    return f"__headrace_{next(_serials)}_{reference.name.replace('.', '_')}"
