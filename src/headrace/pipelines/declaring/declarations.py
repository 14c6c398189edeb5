"""Pipelines in Python: decorators and functions that declare tables, views, flows and sinks.

The names are those of `pyspark.pipelines`, with additions: keys, expectations, triggers, schedules,
merged views. A declaration only adds to the registry: nothing is read or run. Mistakes are added
too, so that all mistakes of a folder are reported at once.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack, overload

from headrace.pipelines.declaring import registrations
from headrace.pipelines.declaring.options import (
    ChangesOptions,
    Described,
    FedTableOptions,
    FlowOptions,
    MergedViewOptions,
    RuledTableOptions,
    SinkOptions,
    Timed,
    ViewOptions,
    given_in_python,
    options_of,
)
from headrace.pipelines.declaring.registry import QueryFunction, Registry, current
from headrace.pipelines.model import Location
from headrace.pipelines.problems import nearest
from headrace.serdes.sql_tokens import quoted_name

_Function = TypeVar("_Function", bound=QueryFunction)

ELSEWHERE = {
    "spark_conf": "write the settings into [spark] of pipeline.toml",
    "cluster_by": "use partition_cols",
    "format": "tables are Delta tables, so leave it out",
    "column_list": "use except_column_list, or select the columns in a temporary view",
    "track_history_column_list": "select the columns in a temporary view",
    "track_history_except_column_list": "select the columns in a temporary view",
}
"""Keywords of `pyspark.pipelines` without an equal here, with advice."""


@overload
def table(query_function: _Function) -> _Function: ...
@overload
def table(
    query_function: None = None, *, name: str | None = None, **options: Unpack[FedTableOptions]
) -> Callable[[_Function], _Function]: ...
def table(
    query_function: QueryFunction | None = None, *, name: str | None = None, **options: Any
) -> Any:
    """Declare a streaming table, and the flow of the decorated function into it.

    With `keys`, a row replaces the row with the same key; without, rows are appended. With
    `sequence_by`, a late row does not replace a newer one. A raw table with the record's topic and
    timestamp is partitioned by topic and day, unless `partition_cols` names other columns or none.
    """
    return _decorator(
        "table", FedTableOptions, registrations.add_table, name, options, query_function
    )


@overload
def materialized_view(query_function: _Function) -> _Function: ...
@overload
def materialized_view(
    query_function: None = None, *, name: str | None = None, **options: Unpack[ViewOptions]
) -> Callable[[_Function], _Function]: ...
def materialized_view(
    query_function: QueryFunction | None = None, *, name: str | None = None, **options: Any
) -> Any:
    """Declare a table that the decorated function computes whole, at most every `refresh`."""
    return _decorator(
        "materialized_view", ViewOptions, registrations.add_view, name, options, query_function
    )


@overload
def temporary_view(query_function: _Function) -> _Function: ...
@overload
def temporary_view(
    query_function: None = None, *, name: str | None = None, **options: Unpack[Described]
) -> Callable[[_Function], _Function]: ...
def temporary_view(
    query_function: QueryFunction | None = None, *, name: str | None = None, **options: Any
) -> Any:
    """Declare a named query for other queries; its rows are not stored."""
    return _decorator(
        "temporary_view", Described, registrations.add_temporary_view, name, options, query_function
    )


def merged_view(
    *, name: str | None = None, **options: Unpack[MergedViewOptions]
) -> Callable[[_Function], _Function]:
    """Declare an aggregate that the pipeline's architecture maintains: kappa or lambda.

    `merge` has, for each column outside of the key, how two parts become one: sum, min or max.
    """
    decorate: Callable[[_Function], _Function] = _decorator(
        "merged_view", MergedViewOptions, registrations.add_merged_view, name, options
    )
    return decorate


def append_flow(
    *, target: str, name: str | None = None, **options: Unpack[FlowOptions]
) -> Callable[[_Function], _Function]:
    """Declare a further flow of rows into a streaming table or a sink.

    With `once`, the flow ends after the rows that exist when the pipeline starts.
    """
    add = partial(registrations.add_flow, target=target)
    decorate: Callable[[_Function], _Function] = _decorator(
        "append_flow", FlowOptions, add, name, options, others=("target",)
    )
    return decorate


def create_streaming_table(name: str, **options: Unpack[RuledTableOptions]) -> None:
    """Declare a streaming table for flows that are declared elsewhere."""
    registry = current("create_streaming_table")
    location = registry.location_of_call(sys._getframe(1))
    _check_keywords("create_streaming_table", RuledTableOptions, options, registry, location)
    registrations.add_table(registry, location, name, given_in_python(RuledTableOptions, options))


def create_sink(
    name: str,
    format: str = "json",
    options: Mapping[str, str] | None = None,
    *,
    topic: str | None = None,
    guarantee: str = "exactly-once",
) -> None:
    """Declare a topic for flows: rows as JSON, or with format kafka as key and value."""
    registry = current("create_sink")
    location = registry.location_of_call(sys._getframe(1))
    others = dict(options or {})
    found = topic or others.pop("topic", None)
    values = {"topic": found, "format": format, "guarantee": guarantee, "options": others}
    registrations.add_sink(registry, location, name, given_in_python(SinkOptions, values))


def create_auto_cdc_flow(
    target: str,
    source: str,
    keys: Sequence[str],
    sequence_by: str,
    apply_as_deletes: str | None = None,
    except_column_list: Sequence[str] = (),
    stored_as_scd_type: int | str = 1,
    name: str | None = None,
    **options: Unpack[Timed],
) -> None:
    """Declare a flow that applies change events to a table by key and sequence, late ones too."""
    registry = current("create_auto_cdc_flow")
    location = registry.location_of_call(sys._getframe(1))
    _check_keywords(
        "create_auto_cdc_flow", Timed, options, registry, location, options_of(ChangesOptions)
    )
    changes = given_in_python(
        ChangesOptions,
        {
            "keys": keys,
            "sequence_by": sequence_by,
            "apply_as_deletes": apply_as_deletes,
            "except_column_list": except_column_list,
            "stored_as_scd_type": stored_as_scd_type,
        },
    )
    registrations.add_flow(
        registry,
        location,
        name or target,
        given_in_python(Timed, options),
        target=target,
        query=f"SELECT * FROM STREAM({quoted_name(source)})",
        changes=changes,
    )


def _decorator(
    word: str,
    kind: type,
    add: Callable[..., None],
    name: str | None,
    options: Mapping[str, Any],
    function: QueryFunction | None = None,
    others: Iterable[str] = (),
) -> Any:
    """Declare the decorated function with `add`, or return the decorator if none is given."""
    registry = current(f"@{word}")

    def decorate(decorated: Any) -> Any:
        if not callable(decorated) or not hasattr(decorated, "__code__"):
            location = registry.location_of_call(sys._getframe(1))
            registry.complain(f"@{word} decorates no function; write it above a `def`", location)
            return decorated
        location = registry.location_of_function(decorated)
        if _arguments_needed(decorated):
            registry.complain(
                f"@{word}: {decorated.__name__} takes arguments, but it is called without any;"
                " remove them",
                location,
            )
        _check_keywords(word, kind, options, registry, location, others)
        given = given_in_python(kind, options)
        add(registry, location, name or decorated.__name__, given, query=decorated)
        return decorated

    return decorate if function is None else decorate(function)


def _arguments_needed(function: QueryFunction) -> bool:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(
        parameter.default is inspect.Parameter.empty and parameter.kind not in kinds
        for parameter in inspect.signature(function).parameters.values()
    )


def _check_keywords(
    word: str,
    kind: type,
    given: Mapping[str, Any],
    registry: Registry,
    location: Location,
    others: Iterable[str] = (),
) -> None:
    """Complain about unknown keywords at the declaration's line, and go on with the file."""
    known = {"name", *others, *options_of(kind)}
    for keyword in given:
        if keyword not in known:
            advice = ELSEWHERE.get(keyword)
            text = f"; {advice}" if advice else nearest(keyword, known)
            registry.complain(f"{word} has no option {keyword}{text}", location)
