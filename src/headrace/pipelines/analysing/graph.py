"""The datasets of a pipeline as a graph: who reads whom, in which order, and where it is a circle.

Its nodes are sources, tables, views and sinks. An edge leads from what is read to what is made of
it, and knows whether rows are taken as they come or whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.pipelines.analysing.reads import Read, reads_of
from headrace.pipelines.intervals import is_cron
from headrace.pipelines.model import (
    QUARANTINE,
    SOURCES,
    Architecture,
    Dataset,
    MaterializedView,
    MergedView,
    Pipeline,
    Place,
    Query,
    Sink,
    Source,
    StreamingTable,
    TemporaryView,
    kind_of,
)
from headrace.pipelines.names import is_source, quarantine_of, source_name
from headrace.pipelines.problems import Problem, nearest


@dataclass(frozen=True, slots=True)
class Consumer:
    """A query of a pipeline and the dataset that it fills: a flow, or a view by itself."""

    name: str
    target: str
    query: Query
    place: Place


@dataclass(frozen=True, slots=True)
class Edge:
    """One dataset is read by the query of another."""

    source: str
    target: str
    is_stream: bool
    consumer: str
    place: Place


@dataclass(frozen=True, slots=True)
class Graph:
    """What reads what; names in `edges` need not exist, `problems` says so."""

    pipeline: Pipeline
    edges: tuple[Edge, ...]
    names: tuple[str, ...] = field(default=())
    """Sources first, as `sources.x`, then datasets, in the order of the files."""

    def inputs(self, name: str) -> list[Edge]:
        return [edge for edge in self.edges if edge.target == name]

    def outputs(self, name: str) -> list[Edge]:
        return [edge for edge in self.edges if edge.source == name]

    def kind(self, name: str) -> str:
        """`source`, `streaming table` and so on, for people."""
        if is_source(name):
            return "source"
        dataset = self.pipeline.datasets.get(name)
        return kind_of(dataset) if dataset else "quarantine"

    def order(self) -> list[str]:
        """All names, each after what it reads; in a circle the order of the files breaks it."""
        known = set(self.names)
        waits_for: dict[str, set[str]] = {name: set() for name in self.names}
        readers: dict[str, list[str]] = {name: [] for name in self.names}
        for edge in self.edges:
            if edge.source in known and edge.source != edge.target:
                waits_for[edge.target].add(edge.source)
                readers[edge.source].append(edge.target)
        ordered: dict[str, None] = {}
        for first in (name for name in self.names if not waits_for[name]):
            self._follow(first, ordered, waits_for, readers)
        for stuck in self.names:
            self._follow(stuck, ordered, waits_for, readers)
        return list(ordered)

    def _follow(
        self,
        first: str,
        ordered: dict[str, None],
        waits_for: Mapping[str, set[str]],
        readers: Mapping[str, list[str]],
    ) -> None:
        """Put a name into the order, and then all that has waited for nothing else."""
        ready = [first] if first not in ordered else []
        while ready:
            name = ready.pop(0)
            ordered[name] = None
            for reader in readers[name]:
                waits_for[reader].discard(name)
                if not waits_for[reader] and reader not in ordered and reader not in ready:
                    ready.append(reader)


def consumers(pipeline: Pipeline) -> Iterator[Consumer]:
    """All queries of a pipeline."""
    for dataset in pipeline.datasets.values():
        if isinstance(dataset, MaterializedView | TemporaryView | MergedView):
            yield Consumer(dataset.name, dataset.name, dataset.query, dataset.place)
    for flow in pipeline.flows:
        yield Consumer(flow.name, flow.target, flow.query, flow.place)


def graph_of(pipeline: Pipeline, known: Mapping[str, Sequence[Read]] | None = None) -> Graph:
    """The graph by what queries say; `known` has what Spark has seen of some, by consumer.

    A quarantine is a node only where something reads it.
    """
    seen = known or {}
    edges = [
        Edge(read.name, one.target, read.is_stream, one.name, one.place)
        for one in consumers(pipeline)
        for read in (seen[one.name] if one.name in seen else reads_of(one.query))
    ]
    names = [f"{SOURCES}.{name}" for name in pipeline.sources]
    names += pipeline.datasets
    wanted = {edge.source for edge in edges}
    refused = [one for one in pipeline.datasets.values() if quarantine_of(one.name) in wanted]
    for dataset in refused:
        quarantine = quarantine_of(dataset.name)
        names.append(quarantine)
        edges.append(Edge(dataset.name, quarantine, True, dataset.name, dataset.place))
    return Graph(pipeline, tuple(dict.fromkeys(edges)), tuple(names))


def problems(graph: Graph) -> list[Problem]:
    """Names that are not there, ways of reading that cannot be, and circles."""
    found = [Problem(text, edge.place) for edge in graph.edges if (text := complaint(graph, edge))]
    for circle in circles(graph):
        dataset = graph.pipeline.datasets[circle[0]]
        found.append(
            Problem(
                f"the datasets read each other in a circle: {' -> '.join((*circle, circle[0]))}",
                dataset.place,
            )
        )
    return found


def complaint(graph: Graph, edge: Edge) -> str | None:
    """What is wrong with one read, or None."""
    if edge.target.startswith(f"{QUARANTINE}."):
        return None
    if edge.source not in graph.names:
        return missing_text(graph.pipeline, edge.source)
    dataset = graph.pipeline.datasets.get(edge.source)
    if isinstance(dataset, Sink):
        return f"{edge.source} is a sink, which is only written to; read its topic by a source"
    if not edge.is_stream and is_source(edge.source) and is_flow(graph, edge):
        return (
            f"{edge.source} is a topic, which a flow reads as rows come: STREAM({edge.source}) in"
            f' SQL, read_stream("{edge.source}") in Python'
        )
    if edge.is_stream and dataset is not None and (why := why_rewritten(graph.pipeline, dataset)):
        return (
            f"{edge.source} {why}, so it has no stream of new rows; read it whole, with read in"
            " Python or without STREAM in SQL"
        )
    return None


def is_flow(graph: Graph, edge: Edge) -> bool:
    """Whether the reader writes as rows come, and does not compute a view whole."""
    return isinstance(graph.pipeline.datasets.get(edge.target), StreamingTable | Sink)


def missing_text(pipeline: Pipeline, name: str, *, to: str = "read") -> str:
    """That there is no such dataset to do that with, and which one may have been meant."""
    sources = [f"{SOURCES}.{source}" for source in pipeline.sources]
    known = [*sources, *pipeline.datasets, *map(quarantine_of, pipeline.datasets)]
    zone, _, rest = name.partition(".")
    if zone == SOURCES:
        near = nearest(rest, pipeline.sources, f"{SOURCES}.")
        advice = near or f"; declare [{SOURCES}.{rest}] in pipeline.toml"
    elif zone == QUARANTINE:
        advice = nearest(name, known)
    else:
        advice = nearest(name, known) or f"; declare it, or {to} one of: " + ", ".join(known[:8])
    return f"there is no {name} to {to}{advice}"


def why_rewritten(pipeline: Pipeline, dataset: Dataset) -> str | None:
    """Why the rows of a dataset change after they were written, or None if they are appended."""
    match dataset:
        case MaterializedView():
            return "is a materialized view, which is computed anew each time"
        case MergedView():
            return "is a merged view, whose rows change"
        case StreamingTable(keys=keys) if keys:
            return f"keeps one row per {', '.join(keys)}, so its rows change"
        case StreamingTable(name=name) if any(flow.changes for flow in pipeline.flows_into(name)):
            return "is kept by a flow of changes, so its rows change"
        case _:
            return None


def circles(graph: Graph) -> list[tuple[str, ...]]:
    """Datasets that read each other, each circle once, from its first name on."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    done: set[str] = set()
    below: dict[str, list[str]] = {name: [] for name in graph.names}
    for edge in graph.edges:
        below.get(edge.source, []).append(edge.target)
    for start in graph.names:
        path: list[str] = []
        stack = [(start, 0)]
        while stack:  # Without recursion: a chain of tables may be longer than Python's stack.
            name, step = stack.pop()
            if step == 0:
                if name in path:
                    circle = path[path.index(name) :]
                    found.setdefault(frozenset(circle), _from_first(circle, graph.names))
                    continue
                if name in done:
                    continue
                path.append(name)
            if step < len(below[name]):
                stack.append((name, step + 1))
                stack.append((below[name][step], 0))
            else:
                path.pop()
                done.add(name)
    return list(found.values())


def _from_first(circle: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    start = min(range(len(circle)), key=lambda at: names.index(circle[at]))
    return (*circle[start:], *circle[:start])


def describe(graph: Graph, name: str) -> str:
    """What a node is, in a few words."""
    if is_source(name):
        return _describe_source(graph.pipeline.sources[source_name(name)])
    dataset = graph.pipeline.datasets.get(name)
    match dataset:
        case StreamingTable(expectations=expectations, keys=keys):
            words = ["streaming table"]
            words += [f"by {', '.join(keys)}"] if keys else []
            words += [f"{len(expectations)} expectations"] if len(expectations) > 1 else []
            words += ["1 expectation"] if len(expectations) == 1 else []
            return ", ".join(words)
        case MaterializedView(refresh=refresh):
            return f"materialized view, {_schedule(refresh, graph.pipeline)}"
        case MergedView(refresh=refresh):
            is_kappa = graph.pipeline.settings.architecture is Architecture.KAPPA
            batch = f", batch layer {_schedule(refresh, graph.pipeline)}"
            return "merged view" + ("" if is_kappa else batch)
        case Sink(topic=topic):
            return f"sink, topic {topic}"
        case _:
            return graph.kind(name)


def _schedule(refresh: str | None, pipeline: Pipeline) -> str:
    schedule = refresh or pipeline.settings.refresh
    return f"by cron {schedule}" if is_cron(schedule) else f"every {schedule}"


def _describe_source(source: Source) -> str:
    if source.topic_pattern:
        return f"topics like {source.topic_pattern}, {source.format}"
    return f"topic {source.topic}, {source.format}"
