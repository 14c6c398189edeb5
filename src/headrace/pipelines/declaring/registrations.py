"""Declarations of SQL and Python files, put into the registry with their options checked."""

from typing import Any

from headrace.lake.merge_functions import MERGES
from headrace.pipelines import model
from headrace.pipelines.declaring.options import Given
from headrace.pipelines.declaring.registry import QueryFunction, Registry

_OF_FLOW = ("trigger", "realtime")


def add_table(
    registry: Registry,
    location: model.Location,
    name: str,
    given: Given,
    *,
    query: model.Query | None = None,
    schema: str | None = None,
    expectations: tuple[model.Expectation, ...] = (),
) -> None:
    """Add a streaming table, and the flow into it if its query is declared with it."""
    fields = _checked(registry, location, given)
    of_flow = {name: fields.pop(name) for name in _OF_FLOW if name in fields}
    declared = {"schema": schema, "expectations": expectations, **fields}
    registry.add(model.StreamingTable(name=name, location=location, **declared), _function(query))
    if query is not None:
        registry.flows.append(model.Flow(name, name, query, location, **of_flow))


def add_view(
    registry: Registry,
    location: model.Location,
    name: str,
    given: Given,
    *,
    query: model.Query,
    expectations: tuple[model.Expectation, ...] = (),
) -> None:
    """Add a materialized view."""
    fields = _checked(registry, location, given)
    view = model.MaterializedView(name, query, location, expectations=expectations, **fields)
    registry.add(view, _function(query))


def add_temporary_view(
    registry: Registry, location: model.Location, name: str, given: Given, *, query: model.Query
) -> None:
    """Add a temporary view; its description is not stored."""
    _checked(registry, location, given)
    registry.add(model.TemporaryView(name, query, location), _function(query))


def add_merged_view(
    registry: Registry, location: model.Location, name: str, given: Given, *, query: model.Query
) -> None:
    """Add a merged view; each column outside of its key needs a way to merge."""
    fields = _checked(registry, location, given)
    if not fields.get("merge"):
        registry.complain(
            f"{name} merges nothing; give the way in which two parts of each column outside of the"
            f" key become one: {', '.join(MERGES)}",
            location,
        )
    view = model.MergedView(name, query, location, **{"merge": {}, **fields})
    registry.add(view, _function(query))


def add_flow(
    registry: Registry,
    location: model.Location,
    name: str,
    given: Given,
    *,
    target: str,
    query: model.Query,
    changes: Given | None = None,
) -> None:
    """Add a flow into a table or a sink; with `changes`, its rows are change events."""
    fields = _checked(registry, location, given)
    fields.pop("comment", None)
    if changes is not None:
        fields["changes"] = _changes(registry, location, name, changes)
    registry.flows.append(model.Flow(name, target, query, location, **fields))


def add_sink(registry: Registry, location: model.Location, name: str, given: Given) -> None:
    """Add a sink."""
    fields = _checked(registry, location, given)
    if not fields.get("topic"):
        registry.complain(f"the sink {name} has no topic; name the topic to write to", location)
    registry.add(model.Sink(name, location, **{"topic": "", **fields}))


def _changes(
    registry: Registry, location: model.Location, name: str, given: Given
) -> model.Changes:
    fields = _checked(registry, location, given)
    if not fields.get("keys"):
        registry.complain(f"{name}: changes are applied by key; name its columns in keys", location)
    fields["scd_type"] = 2 if fields.get("scd_type") == "2" else 1
    return model.Changes(**{"keys": (), **fields})


def _checked(registry: Registry, location: model.Location, given: Given) -> dict[str, Any]:
    """Return the fields; their problems go to the registry."""
    for problem in given.problems:
        registry.complain(problem, location)
    return dict(given.fields)


def _function(query: model.Query | None) -> QueryFunction | None:
    return query if callable(query) else None
