"""Checks of brokers before a pipeline runs: that they answer, and that topics exist.

A source may be on another cluster than the pipeline's own, so topics are looked up in their own
cluster. Sinks and dead letters are always on the pipeline's cluster.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from headrace.client.admin import Admin
from headrace.client.cluster import check_reachable
from headrace.client.java_security import InvalidLogin, translated
from headrace.client.security import NotSpoken
from headrace.errors import HeadraceError
from headrace.pipelines import model
from headrace.pipelines.analysing.graph import graph_of
from headrace.pipelines.problems import Problem, nearest
from headrace.pipelines.queries.sources import client_properties, grouped, source_properties

TIMEOUT_S = 5.0
_NAMED_MAX = 5
_JAVAS_LOGIN = (InvalidLogin, NotSpoken)
"""Login errors of this client that the stock connector does not have."""


@dataclass(frozen=True, slots=True)
class TopicReport:
    """Problems and notes about a pipeline's topics."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicsOfCluster:
    """A cluster's client properties, and the pipeline's reads and writes there."""

    properties: dict[str, str] = field(repr=False)
    """Includes the login."""
    sources: list[model.Source] = field(default_factory=list)
    written: list[tuple[model.Location, str]] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        return self.properties["bootstrap.servers"]

    @property
    def uses(self) -> str:
        """The reads from and writes to the cluster, in words."""
        names = [f"{model.SOURCES}.{source.name}" for source in self.sources]
        names += [f"the topic {topic}" for _, topic in self.written]
        more = [f"{len(names) - _NAMED_MAX} more"] if len(names) > _NAMED_MAX else []
        *first, last = [*names[:_NAMED_MAX], *more]
        return f"{', '.join(first)} and {last}" if first else last

    @property
    def is_login_of_java(self) -> bool:
        """Return whether only the stock connector, with its further logins, uses the cluster."""
        return not self.written and all(one.connector != "headrace" for one in self.sources)


def check_topics(
    pipeline: model.Pipeline,
    timeout_s: float = TIMEOUT_S,
    advised: Callable[[HeadraceError], str] = str,
) -> TopicReport:
    """Check the topics with the brokers; unreachable brokers are a problem, as for a run.

    `advised` adds advice to an error.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    for cluster in clusters_of(pipeline):
        try:
            present = _topics_at(cluster, timeout_s)
        except HeadraceError as error:
            if isinstance(error, _JAVAS_LOGIN) and cluster.is_login_of_java:
                notes.append(f"topics at {cluster.bootstrap} were not checked: {error}")
                continue
            found = f"topics were not checked: {advised(error)}; or check with --offline"
            problems.append(Problem(found))
        else:
            problems += _missing_topics(cluster, present)
            notes += _topics_created_later(cluster, present)
    return TopicReport(tuple(problems), tuple(notes))


def check_brokers(
    pipeline: model.Pipeline, targets: Collection[str] | None = None, timeout_s: float = TIMEOUT_S
) -> None:
    """Fail if brokers do not answer: Spark would retry for long, and blame a query.

    Only brokers that `targets`, tables and sinks, read from or write to are checked; None means
    all. The error names every unreachable one.
    """
    failures: list[tuple[TopicsOfCluster, HeadraceError]] = []
    for cluster in clusters_of(part_for(pipeline, targets)):
        if cluster.is_login_of_java:
            continue
        try:
            check_reachable(cluster.bootstrap, translated(cluster.properties), timeout_s)
        except HeadraceError as error:
            failures.append((cluster, error))
    if failures:
        raise _error_of_all(failures) from failures[0][1]


def part_for(pipeline: model.Pipeline, targets: Collection[str] | None) -> model.Pipeline:
    """Return the pipeline reduced to some datasets and the sources that they read.

    A source that a function reads under a computed name is left out and not checked.
    """
    datasets = pipeline.datasets
    graph = graph_of(pipeline)
    views = {name for name, one in datasets.items() if isinstance(one, model.TemporaryView)}
    kept = {name: one for name, one in datasets.items() if targets is None or name in targets}
    wanted = [name for name in kept if name not in views]
    read: set[str] = set()
    while wanted:
        inputs = {edge.source for edge in graph.inputs(wanted.pop())}
        wanted += (inputs - read) & views
        read |= inputs
    sources = pipeline.sources.items()
    return replace(
        pipeline,
        sources={name: one for name, one in sources if f"{model.SOURCES}.{name}" in read},
        datasets=kept,
    )


def clusters_of(pipeline: model.Pipeline) -> list[TopicsOfCluster]:
    """Return the clusters with topics of a pipeline."""
    settings = pipeline.settings
    read = ((source_properties(one, settings), one) for one in pipeline.sources.values())
    own, *others = grouped(read, first=client_properties(settings))
    found = [
        TopicsOfCluster(own.properties, own.read, list(_written_topics(pipeline))),
        *(TopicsOfCluster(other.properties, other.read) for other in others),
    ]
    return [one for one in found if one.sources or one.written]


def _error_of_all(failures: Sequence[tuple[TopicsOfCluster, HeadraceError]]) -> HeadraceError:
    """Return one error with all texts; a shared class is kept, as it decides the advice."""
    kinds = {type(error) for _, error in failures}
    kind = kinds.pop() if len(kinds) == 1 else HeadraceError
    return kind("; ".join(f"{error} (for {cluster.uses})" for cluster, error in failures))


def _topics_at(cluster: TopicsOfCluster, timeout_s: float) -> set[str]:
    with Admin(cluster.bootstrap, translated(cluster.properties), timeout_s) as admin:
        return {topic.name for topic in admin.topics.all()}


def _missing_topics(cluster: TopicsOfCluster, present: set[str]) -> Iterator[Problem]:
    for source in cluster.sources:
        for topic in (source.topic or "").split(","):
            if topic and topic not in present:
                yield Problem(
                    f"there is no topic {topic} at {cluster.bootstrap}; create it with:"
                    f" headrace topics create {topic} --bootstrap {cluster.bootstrap}"
                    f"{nearest(topic, present)}",
                    source.location,
                )


def _topics_created_later(cluster: TopicsOfCluster, present: set[str]) -> Iterator[str]:
    """Report missing topics that may be created while the pipeline runs."""
    for source in cluster.sources:
        pattern = source.topic_pattern
        if pattern and not any(re.fullmatch(pattern, topic) for topic in present):
            yield f"{source.location}: no topic matches {pattern} yet"
    for location, topic in cluster.written:
        if topic not in present:
            yield (
                f"{location}: there is no topic {topic} yet; brokers with automatic creation"
                " create it at the first write"
            )


def _written_topics(pipeline: model.Pipeline) -> Iterator[tuple[model.Location, str]]:
    """Yield the topics of sinks and dead letters, with the location of each."""
    for dataset in pipeline.datasets.values():
        topic = dataset.topic if isinstance(dataset, model.Sink) else None
        if isinstance(dataset, model.StreamingTable):
            topic = dataset.dead_letter_topic
        if topic:
            yield dataset.location, topic
