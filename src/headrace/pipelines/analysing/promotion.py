"""The rules by which data is promoted from zone to zone, held against what a pipeline declares.

The usual way leads forward: topics, then raw, staging, trusted, refined. A table may read its own
zone and those before it. Zones of a pipeline's own stand beside that way. pipeline.toml can be
stricter, or allow more: which zones a zone reads, and what each table in it must have. That tables
of raw only grow is no matter of declaring: all the others can be built anew because they do.
"""

from collections.abc import Iterator, Mapping, Sequence

from headrace.lake.metadata import APPEND_ONLY, is_append_only
from headrace.pipelines.analysing.graph import Edge, Graph, why_rewritten
from headrace.pipelines.model import (
    QUARANTINE,
    RAW,
    SOURCES,
    ZONES,
    Expectation,
    MaterializedView,
    MergedView,
    Pipeline,
    PipelineSettings,
    Promotion,
    Requirement,
    StreamingTable,
    TemporaryView,
    UniqueKey,
    kind_of,
)
from headrace.pipelines.names import zone_of
from headrace.pipelines.problems import Problem

Stored = StreamingTable | MaterializedView | MergedView
"""What lives in a zone; sinks and views that are not stored do not."""

_ADVICE = {
    Requirement.CHECKS: "declare an expectation, or keys",
    Requirement.EXPECTATIONS: "declare an expectation",
    Requirement.KEY: "declare keys, expect a unique key, or feed it by a flow of changes",
    Requirement.COMMENT: "give it a comment",
}


def problems(graph: Graph) -> list[Problem]:
    """Reads that no rule of promotion allows, and tables that lack what their zone asks for."""
    return [*_wrong_reads(graph), *_lacking(graph.pipeline), *_edited(graph.pipeline)]


def unpartitioned(pipeline: Pipeline, left_out: Mapping[str, str] | None = None) -> Iterator[str]:
    """Raw tables in which a topic or a day cannot be found without reading all of it.

    `left_out` are those that would be partitioned so by themselves, with what keeps them from it.
    Who has declared that a table has no partitions knows it, and is not told.
    """
    reasons = left_out or {}
    for table in pipeline.datasets.values():
        if not isinstance(table, StreamingTable) or zone_of(table.name) != RAW:
            continue
        reason = _other_partitions(table.partition_by or ()) or reasons.get(table.name)
        if reason is not None:
            yield (
                f"{table.place}: {table.name} is not partitioned by topic and day, so whoever looks"
                f" for one of these reads all of it: {reason}"
            )


def readable_by(zone: str, settings: PipelineSettings) -> tuple[str, ...]:
    """The namespaces that tables of a zone may read."""
    declared = settings.promotions.get(zone)
    if declared is not None and declared.reads is not None:
        return declared.reads
    own = tuple(name for name in settings.zones if name not in ZONES)
    before = ZONES[: ZONES.index(zone) + 1] if zone in ZONES else ZONES
    return (SOURCES, *before, *own, QUARANTINE)


def _other_partitions(declared: Sequence[str]) -> str | None:
    """What is to be said of partitions that are none of topic and a time; None if they are."""
    if not declared or ("topic" in declared and len(declared) > 1):
        return None
    return (
        f"it is declared to be by {', '.join(declared)}; leave out PARTITIONED BY, in Python"
        " partition_cols, and build it anew with headrace pipelines replay FOLDER"
    )


def _wrong_reads(graph: Graph) -> Iterator[Problem]:
    settings = graph.pipeline.settings
    for dataset in _stored(graph.pipeline):
        zone = zone_of(dataset.name)
        readable = readable_by(zone, settings)
        for edge in _reads(graph, dataset.name):
            if zone_of(edge.source) not in readable:
                yield Problem(
                    f"{dataset.name} reads {edge.source}, and tables of {zone} may read"
                    f" {', '.join(readable) or 'nothing'}; read one of these, or say otherwise by"
                    f" reads in [zones.{zone}] of pipeline.toml",
                    edge.place,
                )


def _reads(graph: Graph, name: str) -> list[Edge]:
    """What a dataset reads that is stored: of a temporary view, what the view reads."""
    found: list[Edge] = []
    seen = {name}
    names = [name]
    while names:
        for edge in graph.inputs(names.pop()):
            if not isinstance(graph.pipeline.datasets.get(edge.source), TemporaryView):
                found.append(edge)
            elif edge.source not in seen:
                seen.add(edge.source)
                names.append(edge.source)
    return [edge for edge in found if edge.source in graph.names]


def _lacking(pipeline: Pipeline) -> Iterator[Problem]:
    for dataset in _stored(pipeline):
        zone = zone_of(dataset.name)
        promotion = pipeline.settings.promotions.get(zone, Promotion())
        for requirement in promotion.requires:
            if not has(requirement, dataset, pipeline):
                yield Problem(
                    f"{dataset.name} lacks what [zones.{zone}] of pipeline.toml requires of each"
                    f" table ({requirement.value}); {_advice(requirement, dataset)}",
                    dataset.place,
                )


def _edited(pipeline: Pipeline) -> Iterator[Problem]:
    """Tables that only grow, by their zone or a property, and whose rows would change."""
    for dataset in _stored(pipeline):
        properties = {} if isinstance(dataset, MergedView) else dataset.properties
        is_raw = zone_of(dataset.name) == RAW
        if is_raw and not is_append_only({**APPEND_ONLY, **properties}):
            yield Problem(
                f"{dataset.name} has delta.appendOnly = false, and tables of {RAW} only grow; leave"
                " the property out, or put the table into another zone",
                dataset.place,
            )
        why = why_rewritten(pipeline, dataset)
        if why and (is_raw or is_append_only(properties)):
            whose = f"tables of {RAW}" if is_raw else "tables with delta.appendOnly"
            yield Problem(
                f"{dataset.name} {why}, and {whose} only grow: they keep what came as it came; put"
                " it into another zone" + ("" if is_raw else ", or leave the property out"),
                dataset.place,
            )


def has(requirement: Requirement, dataset: Stored, pipeline: Pipeline) -> bool:
    """Whether a table has what a zone asks for."""
    expectations = () if isinstance(dataset, MergedView) else dataset.expectations
    match requirement:
        case Requirement.EXPECTATIONS:
            return bool(expectations)
        case Requirement.COMMENT:
            return bool(dataset.comment)
        case Requirement.CHECKS if expectations:
            return True
        case Requirement.CHECKS | Requirement.KEY:
            return _has_key(dataset, expectations, pipeline)


def _has_key(dataset: Stored, expectations: Sequence[Expectation], pipeline: Pipeline) -> bool:
    """Whether it is told what makes a row one; of a merged view, its groups do."""
    if isinstance(dataset, MergedView) or (isinstance(dataset, StreamingTable) and dataset.keys):
        return True
    is_changed = any(flow.changes for flow in pipeline.flows_into(dataset.name))
    return is_changed or any(isinstance(one.rule, UniqueKey) for one in expectations)


def _advice(requirement: Requirement, dataset: Stored) -> str:
    if requirement is Requirement.EXPECTATIONS and isinstance(dataset, MergedView):
        return f"a {kind_of(dataset)} can have none, so ask for checks, or put it elsewhere"
    return f"{_ADVICE[requirement]}, or put it into another zone"


def _stored(pipeline: Pipeline) -> list[Stored]:
    return [one for one in pipeline.datasets.values() if isinstance(one, Stored)]
