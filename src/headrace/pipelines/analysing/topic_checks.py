"""What brokers say of a pipeline before it runs: whether they answer, and which topics there are.

A source may be read from another cluster than the pipeline's own, so each cluster is asked for what
is read from it. Sinks and dead letters are always with the pipeline's own.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from headrace.client.admin import Admin
from headrace.client.cluster import check_reachable
from headrace.client.java_security import InvalidLogin, translated
from headrace.client.security import NotSpoken
from headrace.errors import HeadraceError
from headrace.pipelines.analysing.graph import graph_of
from headrace.pipelines.model import (
    SOURCES,
    Pipeline,
    Place,
    Sink,
    Source,
    StreamingTable,
    TemporaryView,
)
from headrace.pipelines.problems import Problem, nearest
from headrace.pipelines.sources import client_properties, grouped, source_properties

TIMEOUT_S = 5.0
_NAMED_MAX = 5
_JAVAS_LOGIN = (InvalidLogin, NotSpoken)
"""What is wrong with a login that the stock connector can do and this client cannot."""


@dataclass(frozen=True, slots=True)
class TopicReport:
    """What is to be said of a pipeline's topics."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicsOfCluster:
    """A cluster as a client reaches it, and what a pipeline reads and writes there."""

    properties: dict[str, str] = field(repr=False)
    """With the login."""
    sources: list[Source] = field(default_factory=list)
    written: list[tuple[Place, str]] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        return self.properties["bootstrap.servers"]

    @property
    def uses(self) -> str:
        """What is read from and written to it, for people."""
        names = [f"{SOURCES}.{source.name}" for source in self.sources]
        names += [f"the topic {topic}" for _, topic in self.written]
        more = [f"{len(names) - _NAMED_MAX} more"] if len(names) > _NAMED_MAX else []
        *first, last = [*names[:_NAMED_MAX], *more]
        return f"{', '.join(first)} and {last}" if first else last

    @property
    def is_left_to_java(self) -> bool:
        """Whether only the stock connector goes there, which knows logins that we do not."""
        return not self.written and all(one.connector != "headrace" for one in self.sources)


def check_topics(
    pipeline: Pipeline,
    timeout_s: float = TIMEOUT_S,
    advised: Callable[[HeadraceError], str] = str,
) -> TopicReport:
    """Ask the brokers which topics there are; that they cannot be asked is a problem.

    A run would meet it too. `advised` says what to do about it, besides to ask nobody.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    for cluster in clusters_of(pipeline):
        try:
            present = _topics_at(cluster, timeout_s)
        except HeadraceError as error:
            if isinstance(error, _JAVAS_LOGIN) and cluster.is_left_to_java:
                notes.append(f"topics at {cluster.bootstrap} were not checked: {error}")
                continue
            found = f"topics were not checked: {advised(error)}; or check with --offline"
            problems.append(Problem(found))
        else:
            problems += _missing_topics(cluster, present)
            notes += _topics_to_come(cluster, present)
    return TopicReport(tuple(problems), tuple(notes))


def check_brokers(
    pipeline: Pipeline, targets: Collection[str] | None = None, timeout_s: float = TIMEOUT_S
) -> None:
    """Fail clearly where brokers do not answer: Spark would try again and again, and blame a query.

    Only those are asked that are read from or written to for `targets`, the tables and sinks that
    are to be brought up to date; None is all of them. The error names every one that is away.
    """
    failures: list[tuple[TopicsOfCluster, HeadraceError]] = []
    for cluster in clusters_of(part_for(pipeline, targets)):
        if cluster.is_left_to_java:
            continue
        try:
            check_reachable(cluster.bootstrap, translated(cluster.properties), timeout_s)
        except HeadraceError as error:
            failures.append((cluster, error))
    if failures:
        raise _error_of_all(failures) from failures[0][1]


def part_for(pipeline: Pipeline, targets: Collection[str] | None) -> Pipeline:
    """The pipeline without the sources that these do not read, and without the other datasets.

    A source that is read under a name which only Spark finds out is left out too, so its brokers
    are not asked.
    """
    datasets = pipeline.datasets
    graph = graph_of(pipeline)
    views = {name for name, one in datasets.items() if isinstance(one, TemporaryView)}
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
        sources={name: one for name, one in sources if f"{SOURCES}.{name}" in read},
        datasets=kept,
    )


def clusters_of(pipeline: Pipeline) -> list[TopicsOfCluster]:
    """The clusters where a pipeline has topics; none if it has no topics."""
    settings = pipeline.settings
    read = ((source_properties(one, settings), one) for one in pipeline.sources.values())
    own, *others = grouped(read, first=client_properties(settings))
    found = [
        TopicsOfCluster(own.properties, own.read, list(_written_topics(pipeline))),
        *(TopicsOfCluster(other.properties, other.read) for other in others),
    ]
    return [one for one in found if one.sources or one.written]


def _error_of_all(failures: Sequence[tuple[TopicsOfCluster, HeadraceError]]) -> HeadraceError:
    """One error with the words of all; of their class if they share it: that says what to do."""
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
                    source.place,
                )


def _topics_to_come(cluster: TopicsOfCluster, present: set[str]) -> Iterator[str]:
    """Topics that are missing and may come to be while the pipeline runs."""
    for source in cluster.sources:
        pattern = source.topic_pattern
        if pattern and not any(re.fullmatch(pattern, topic) for topic in present):
            yield f"{source.place}: no topic is like {pattern} yet"
    for place, topic in cluster.written:
        if topic not in present:
            yield (
                f"{place}: there is no topic {topic} yet; brokers that may create topics"
                " do so when it is first written to"
            )


def _written_topics(pipeline: Pipeline) -> Iterator[tuple[Place, str]]:
    """The topics of sinks and dead letters, and where each is named."""
    for dataset in pipeline.datasets.values():
        topic = dataset.topic if isinstance(dataset, Sink) else None
        if isinstance(dataset, StreamingTable):
            topic = dataset.dead_letter_topic
        if topic:
            yield dataset.place, topic
