"""The graph of a pipeline's datasets: edges, order and circles.

Its nodes are sources, tables, views and sinks. An edge leads from an input to its reader, and is
either a stream of new rows or a read of the whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.pipelines import model
from headrace.pipelines.analysing.reads import Read, reads_of
from headrace.pipelines.declaring.intervals import is_cron
from headrace.pipelines.declaring.names import is_source, quarantine_of, source_name
from headrace.pipelines.problems import Problem, nearest


@dataclass(frozen=True, slots=True)
class Consumer:
    """A query of a pipeline and the dataset that it fills: a flow or a view."""

    name: str
    target: str
    query: model.Query
    location: model.Location


@dataclass(frozen=True, slots=True)
class Edge:
    """A read of one dataset by the query of another."""

    source: str
    target: str
    is_stream: bool
    consumer: str
    location: model.Location


@dataclass(frozen=True, slots=True)
class Graph:
    """The reads of a pipeline; names in `edges` may be missing, which `problems` reports."""

    pipeline: model.Pipeline
    edges: tuple[Edge, ...]
    names: tuple[str, ...] = field(default=())
    """Sources first, as `sources.x`, then datasets, in the order of the files."""

    def inputs(self, name: str) -> list[Edge]:
        return [edge for edge in self.edges if edge.target == name]

    def outputs(self, name: str) -> list[Edge]:
        return [edge for edge in self.edges if edge.source == name]

    def stored_inputs(self, flow: model.Flow) -> set[str]:
        """Return the tables and sources that a flow reads, through temporary views."""
        found: set[str] = set()
        names = [one.source for one in self.edges if one.consumer == flow.name]
        seen = set(names)
        while names:
            name = names.pop()
            if not isinstance(self.pipeline.datasets.get(name), model.TemporaryView):
                found.add(name)
                continue
            more = {edge.source for edge in self.inputs(name)} - seen
            seen |= more
            names += more
        return found

    def kind(self, name: str) -> str:
        """Return the kind in words: `source`, `streaming table` and so on."""
        if is_source(name):
            return "source"
        dataset = self.pipeline.datasets.get(name)
        return model.kind_of(dataset) if dataset else "quarantine"

    def order(self) -> list[str]:
        """Return all names, each after its inputs; the order of the files breaks a circle."""
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
        """Add a name to the order, then all names whose inputs are complete."""
        ready = [first] if first not in ordered else []
        while ready:
            name = ready.pop(0)
            ordered[name] = None
            for reader in readers[name]:
                waits_for[reader].discard(name)
                if not waits_for[reader] and reader not in ordered and reader not in ready:
                    ready.append(reader)


def consumers(pipeline: model.Pipeline) -> Iterator[Consumer]:
    """All queries of a pipeline."""
    for dataset in pipeline.datasets.values():
        if isinstance(dataset, model.MaterializedView | model.TemporaryView | model.MergedView):
            yield Consumer(dataset.name, dataset.name, dataset.query, dataset.location)
    for flow in pipeline.flows:
        yield Consumer(flow.name, flow.target, flow.query, flow.location)


def graph_of(pipeline: model.Pipeline, known: Mapping[str, Sequence[Read]] | None = None) -> Graph:
    """Build the graph from the queries' text; `known` replaces it by Spark's findings, by consumer.

    A quarantine is a node only if something reads it.
    """
    seen = known or {}
    edges = [
        Edge(read.name, one.target, read.is_stream, one.name, one.location)
        for one in consumers(pipeline)
        for read in (seen[one.name] if one.name in seen else reads_of(one.query))
    ]
    names = [f"{model.SOURCES}.{name}" for name in pipeline.sources]
    names += pipeline.datasets
    wanted = {edge.source for edge in edges}
    refused = [one for one in pipeline.datasets.values() if quarantine_of(one.name) in wanted]
    for dataset in refused:
        quarantine = quarantine_of(dataset.name)
        names.append(quarantine)
        edges.append(Edge(dataset.name, quarantine, True, dataset.name, dataset.location))
    return Graph(pipeline, tuple(dict.fromkeys(edges)), tuple(names))


def problems(graph: Graph) -> list[Problem]:
    """Return missing names, invalid ways of reading, and circles."""
    found = [
        Problem(text, edge.location) for edge in graph.edges if (text := complaint(graph, edge))
    ]
    for circle in circles(graph):
        dataset = graph.pipeline.datasets[circle[0]]
        found.append(
            Problem(
                f"the datasets read each other in a circle: {' -> '.join((*circle, circle[0]))}",
                dataset.location,
            )
        )
    return found


def complaint(graph: Graph, edge: Edge) -> str | None:
    """Return the problem of one read, or None."""
    if edge.target.startswith(f"{model.QUARANTINE}."):
        return None
    if edge.source not in graph.names:
        return missing_text(graph.pipeline, edge.source)
    dataset = graph.pipeline.datasets.get(edge.source)
    if isinstance(dataset, model.Sink):
        return f"{edge.source} is a sink, which is only written to; read its topic by a source"
    if not edge.is_stream and is_source(edge.source) and is_flow(graph, edge):
        return (
            f"{edge.source} is a topic, which a flow reads as a stream: STREAM({edge.source}) in"
            f' SQL, read_stream("{edge.source}") in Python'
        )
    if edge.is_stream and dataset is not None and (why := why_rewritten(graph.pipeline, dataset)):
        return (
            f"{edge.source} {why}, so it has no stream of new rows; read it whole, with read in"
            " Python or without STREAM in SQL"
        )
    return None


def is_flow(graph: Graph, edge: Edge) -> bool:
    """Return whether the reader writes rows as they come, instead of computing a view whole."""
    return isinstance(graph.pipeline.datasets.get(edge.target), model.StreamingTable | model.Sink)


def missing_text(pipeline: model.Pipeline, name: str, *, to: str = "read") -> str:
    """Return the message for a missing dataset, with similar names."""
    sources = [f"{model.SOURCES}.{source}" for source in pipeline.sources]
    known = [*sources, *pipeline.datasets, *map(quarantine_of, pipeline.datasets)]
    zone, _, rest = name.partition(".")
    if zone == model.SOURCES:
        near = nearest(rest, pipeline.sources, f"{model.SOURCES}.")
        advice = near or f"; declare [{model.SOURCES}.{rest}] in pipeline.toml"
    elif zone == model.QUARANTINE:
        advice = nearest(name, known)
    else:
        advice = nearest(name, known) or f"; declare it, or {to} one of: " + ", ".join(known[:8])
    return f"there is no {name} to {to}{advice}"


def why_rewritten(pipeline: model.Pipeline, dataset: model.Dataset) -> str | None:
    """Return why written rows of a dataset change, or None if rows are only appended."""
    match dataset:
        case model.MaterializedView():
            return "is a materialized view, which is recomputed each time"
        case model.MergedView():
            return "is a merged view, whose rows change"
        case model.StreamingTable(keys=keys) if keys:
            return f"keeps one row per {', '.join(keys)}, so its rows change"
        case model.StreamingTable(name=name) if any(
            flow.changes for flow in pipeline.flows_into(name)
        ):
            return "is kept by a flow of changes, so its rows change"
        case _:
            return None


def circles(graph: Graph) -> list[tuple[str, ...]]:
    """Return the datasets that read each other, each circle once, from its first name on."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    done: set[str] = set()
    below: dict[str, list[str]] = {name: [] for name in graph.names}
    for edge in graph.edges:
        below.get(edge.source, []).append(edge.target)
    for start in graph.names:
        path: list[str] = []
        stack = [(start, 0)]
        while stack:  # No recursion: a chain of tables may be longer than Python's stack.
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
    """Describe a node in a few words."""
    if is_source(name):
        return _describe_source(graph.pipeline.sources[source_name(name)])
    dataset = graph.pipeline.datasets.get(name)
    match dataset:
        case model.StreamingTable(expectations=expectations, keys=keys):
            words = ["streaming table"]
            words += [f"by {', '.join(keys)}"] if keys else []
            words += [f"{len(expectations)} expectations"] if len(expectations) > 1 else []
            words += ["1 expectation"] if len(expectations) == 1 else []
            return ", ".join(words)
        case model.MaterializedView(refresh=refresh):
            return f"materialized view, {_schedule(refresh, graph.pipeline)}"
        case model.MergedView(refresh=refresh):
            is_kappa = graph.pipeline.settings.architecture is model.Architecture.KAPPA
            batch = f", batch layer {_schedule(refresh, graph.pipeline)}"
            return "merged view" + ("" if is_kappa else batch)
        case model.Sink(topic=topic):
            return f"sink, topic {topic}"
        case _:
            return graph.kind(name)


def _schedule(refresh: str | None, pipeline: model.Pipeline) -> str:
    schedule = refresh or pipeline.settings.refresh
    return f"by cron {schedule}" if is_cron(schedule) else f"every {schedule}"


def _describe_source(source: model.Source) -> str:
    if source.topic_pattern:
        return f"topics like {source.topic_pattern}, {source.format}"
    return f"topic {source.topic}, {source.format}"
