"""The rules of promotion from zone to zone, checked against a pipeline's declarations.

The default order is topics, raw, staging, trusted, refined. A table may read its own zone and
earlier ones; a pipeline's own zones are outside of this order. pipeline.toml can restrict or extend
the zones that a zone reads, and demand properties of each table. Raw tables only grow, always: all
others can be rebuilt from them.
"""

from collections.abc import Iterator, Mapping, Sequence

from headrace.lake.metadata import APPEND_ONLY, is_append_only
from headrace.pipelines import model
from headrace.pipelines.analysing.graph import Edge, Graph, why_rewritten
from headrace.pipelines.declaring.names import zone_of
from headrace.pipelines.problems import Problem

Stored = model.StreamingTable | model.MaterializedView | model.MergedView
"""Datasets that have a zone; sinks and temporary views do not."""

_ADVICE = {
    model.Requirement.CHECKS: "declare an expectation, or keys",
    model.Requirement.EXPECTATIONS: "declare an expectation",
    model.Requirement.KEY: "declare keys, expect a unique key, or feed it by a flow of changes",
    model.Requirement.COMMENT: "give it a comment",
}


def problems(graph: Graph) -> list[Problem]:
    """Return reads that no rule allows, and tables that lack what their zone demands."""
    return [*_wrong_reads(graph), *_lacking(graph.pipeline), *_edited(graph.pipeline)]


def unpartitioned(
    pipeline: model.Pipeline, left_out: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Report raw tables in which finding a topic or day reads everything.

    `left_out` has tables that lack the default partitions, with the reason. Tables declared without
    partitions are not reported.
    """
    reasons = left_out or {}
    for table in pipeline.datasets.values():
        if not isinstance(table, model.StreamingTable) or zone_of(table.name) != model.RAW:
            continue
        reason = _other_partitions(table.partition_by or ()) or reasons.get(table.name)
        if reason is not None:
            yield (
                f"{table.location}: {table.name} is not partitioned by topic and day, so a query"
                f" for one of them reads all of it: {reason}"
            )


def readable_by(zone: str, settings: model.PipelineSettings) -> tuple[str, ...]:
    """Return the namespaces that tables of a zone may read."""
    declared = settings.promotions.get(zone)
    if declared is not None and declared.reads is not None:
        return declared.reads
    own = tuple(name for name in settings.zones if name not in model.ZONES)
    before = model.ZONES[: model.ZONES.index(zone) + 1] if zone in model.ZONES else model.ZONES
    return (model.SOURCES, *before, *own, model.QUARANTINE)


def _other_partitions(declared: Sequence[str]) -> str | None:
    """Return the problem of partitions without topic and time; None if they have both."""
    if not declared or ("topic" in declared and len(declared) > 1):
        return None
    return (
        f"it is declared by {', '.join(declared)}; remove PARTITIONED BY, in Python"
        " partition_cols, and rebuild it with headrace pipelines replay FOLDER"
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
                    f" {', '.join(readable) or 'nothing'}; read one of these, or change reads in"
                    f" [zones.{zone}] of pipeline.toml",
                    edge.location,
                )


def _reads(graph: Graph, name: str) -> list[Edge]:
    """Return the stored inputs of a dataset, through temporary views."""
    found: list[Edge] = []
    seen = {name}
    names = [name]
    while names:
        for edge in graph.inputs(names.pop()):
            if not isinstance(graph.pipeline.datasets.get(edge.source), model.TemporaryView):
                found.append(edge)
            elif edge.source not in seen:
                seen.add(edge.source)
                names.append(edge.source)
    return [edge for edge in found if edge.source in graph.names]


def _lacking(pipeline: model.Pipeline) -> Iterator[Problem]:
    for dataset in _stored(pipeline):
        zone = zone_of(dataset.name)
        promotion = pipeline.settings.promotions.get(zone, model.Promotion())
        for requirement in promotion.requires:
            if not has(requirement, dataset, pipeline):
                yield Problem(
                    f"{dataset.name} lacks what [zones.{zone}] of pipeline.toml requires of each"
                    f" table ({requirement.value}); {_advice(requirement, dataset)}",
                    dataset.location,
                )


def _edited(pipeline: model.Pipeline) -> Iterator[Problem]:
    """Report tables that may only grow, by zone or property, and whose rows would change."""
    for dataset in _stored(pipeline):
        properties = {} if isinstance(dataset, model.MergedView) else dataset.properties
        is_raw = zone_of(dataset.name) == model.RAW
        if is_raw and not is_append_only({**APPEND_ONLY, **properties}):
            yield Problem(
                f"{dataset.name} has delta.appendOnly = false, and tables of {model.RAW} only grow;"
                " remove the property, or move the table to another zone",
                dataset.location,
            )
        why = why_rewritten(pipeline, dataset)
        if why and (is_raw or is_append_only(properties)):
            whose = f"tables of {model.RAW}" if is_raw else "tables with delta.appendOnly"
            yield Problem(
                f"{dataset.name} {why}, and {whose} only grow: they keep the input unchanged;"
                " move it to another zone" + ("" if is_raw else ", or remove the property"),
                dataset.location,
            )


def has(requirement: model.Requirement, dataset: Stored, pipeline: model.Pipeline) -> bool:
    """Return whether a table meets a demand of its zone."""
    expectations = () if isinstance(dataset, model.MergedView) else dataset.expectations
    match requirement:
        case model.Requirement.EXPECTATIONS:
            return bool(expectations)
        case model.Requirement.COMMENT:
            return bool(dataset.comment)
        case model.Requirement.CHECKS if expectations:
            return True
        case model.Requirement.CHECKS | model.Requirement.KEY:
            return _has_key(dataset, expectations, pipeline)


def _has_key(
    dataset: Stored, expectations: Sequence[model.Expectation], pipeline: model.Pipeline
) -> bool:
    """Return whether a key identifies a row; the groups of a merged view do."""
    if isinstance(dataset, model.MergedView) or (
        isinstance(dataset, model.StreamingTable) and dataset.keys
    ):
        return True
    is_changed = any(flow.changes for flow in pipeline.flows_into(dataset.name))
    return is_changed or any(isinstance(one.rule, model.UniqueKey) for one in expectations)


def _advice(requirement: model.Requirement, dataset: Stored) -> str:
    if requirement is model.Requirement.EXPECTATIONS and isinstance(dataset, model.MergedView):
        return f"a {model.kind_of(dataset)} cannot have one, so require checks, or move it"
    return f"{_ADVICE[requirement]}, or move it to another zone"


def _stored(pipeline: model.Pipeline) -> list[Stored]:
    return [one for one in pipeline.datasets.values() if isinstance(one, Stored)]
