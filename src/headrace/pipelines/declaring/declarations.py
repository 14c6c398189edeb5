"""The words of pipeline files in Python: tables, views, flows and sinks.

They are those of `pyspark.pipelines`, so that its users are at home, with what it lacks: keys,
expectations, triggers, schedules, merged views. They only note down what is declared; nothing is
read or run. A mistake is noted too, so that all of a folder are seen at once.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from headrace.pipelines.declaring.complaints import (
    complain_about_interval,
    complain_about_schedule,
    declare_changes,
    declare_merged_view,
    declare_sink,
)
from headrace.pipelines.declaring.registry import QueryFunction, Registry, current
from headrace.pipelines.declaring.rules import expectation
from headrace.pipelines.declaring.sql_text import quoted_name
from headrace.pipelines.model import (
    Expectation,
    Flow,
    MaterializedView,
    MergedView,
    Place,
    Rule,
    Sink,
    StreamingTable,
    TemporaryView,
)
from headrace.pipelines.problems import PipelineError, nearest

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_Function = TypeVar("_Function", bound=QueryFunction)
Rules = Mapping[str, str | Rule]

ELSEWHERE = {
    "spark_conf": "write the settings into [spark] of pipeline.toml",
    "cluster_by": "use partition_cols",
    "format": "tables are Delta tables, so leave it out",
    "column_list": "use except_column_list, or select the columns in a temporary view",
    "track_history_column_list": "select the columns in a temporary view",
    "track_history_except_column_list": "select the columns in a temporary view",
}
"""What `pyspark.pipelines` takes and we do not, with what to do about it."""


@overload
def table(query_function: _Function) -> _Function: ...
@overload
def table(
    query_function: None = None,
    *,
    name: str | None = None,
    comment: str = "",
    partition_cols: Sequence[str] | None = None,
    table_properties: Mapping[str, str] | None = None,
    schema: "str | StructType | None" = None,
    keys: Sequence[str] = (),
    sequence_by: str | None = None,
    dead_letter_topic: str | None = None,
    trigger: str | None = None,
    realtime: str | None = None,
    **others: Any,
) -> Callable[[_Function], _Function]: ...
def table(
    query_function: QueryFunction | None = None,
    *,
    name: str | None = None,
    comment: str = "",
    partition_cols: Sequence[str] | None = None,
    table_properties: Mapping[str, str] | None = None,
    schema: "str | StructType | None" = None,
    keys: Sequence[str] = (),
    sequence_by: str | None = None,
    dead_letter_topic: str | None = None,
    trigger: str | None = None,
    realtime: str | None = None,
    **others: Any,
) -> Any:
    """A streaming table, and the flow of the decorated function into it.

    With `keys` a row replaces the one with the same key; else rows are appended. With
    `sequence_by`, a column, a row that comes late does not replace a newer one. A table of raw
    that brings topic and timestamp is partitioned by topic and day, unless `partition_cols` says
    otherwise; `[]` says that it is not.
    """

    def declare(registry: Registry, function: QueryFunction, place: Place) -> None:
        given_name = name or function.__name__
        _complain_about(others, table, registry, place)
        dataset = StreamingTable(
            name=given_name,
            place=place,
            comment=comment,
            schema=_ddl(schema),
            partition_by=_partitions(partition_cols),
            keys=_columns(keys),
            sequence_by=sequence_by,
            dead_letter_topic=dead_letter_topic,
            properties=dict(table_properties or {}),
        )
        registry.add(dataset, function)
        registry.flows.append(
            _flow(registry, given_name, given_name, function, place, trigger, realtime)
        )

    return _decorating("@table", declare, query_function)


@overload
def materialized_view(query_function: _Function) -> _Function: ...
@overload
def materialized_view(
    query_function: None = None,
    *,
    name: str | None = None,
    comment: str = "",
    partition_cols: Sequence[str] = (),
    table_properties: Mapping[str, str] | None = None,
    refresh: str | None = None,
    **others: Any,
) -> Callable[[_Function], _Function]: ...
def materialized_view(
    query_function: QueryFunction | None = None,
    *,
    name: str | None = None,
    comment: str = "",
    partition_cols: Sequence[str] = (),
    table_properties: Mapping[str, str] | None = None,
    refresh: str | None = None,
    **others: Any,
) -> Any:
    """A table that is computed whole by the decorated function, every `refresh` at most."""

    def declare(registry: Registry, function: QueryFunction, place: Place) -> None:
        _complain_about(others, materialized_view, registry, place)
        complain_about_schedule(refresh, registry, place)
        dataset = MaterializedView(
            name=name or function.__name__,
            query=function,
            place=place,
            comment=comment,
            partition_by=_columns(partition_cols),
            refresh=refresh,
            properties=dict(table_properties or {}),
        )
        registry.add(dataset, function)

    return _decorating("@materialized_view", declare, query_function)


@overload
def temporary_view(query_function: _Function) -> _Function: ...
@overload
def temporary_view(
    query_function: None = None, *, name: str | None = None, **others: Any
) -> Callable[[_Function], _Function]: ...
def temporary_view(
    query_function: QueryFunction | None = None, *, name: str | None = None, **others: Any
) -> Any:
    """A named query that others read; it is not stored."""
    others.pop("comment", None)

    def declare(registry: Registry, function: QueryFunction, place: Place) -> None:
        _complain_about(others, temporary_view, registry, place)
        registry.add(TemporaryView(name or function.__name__, function, place), function)

    return _decorating("@temporary_view", declare, query_function)


def merged_view(
    *,
    name: str | None = None,
    merge: Mapping[str, str],
    deduplicate_by: Sequence[str] = (),
    comment: str = "",
    refresh: str | None = None,
    **others: Any,
) -> Callable[[_Function], _Function]:
    """An aggregate that is kept by the pipeline's architecture: kappa or lambda.

    `merge` says for each column that is no key how two parts become one: sum, min or max.
    """

    def declare(registry: Registry, function: QueryFunction, place: Place) -> None:
        _complain_about(others, merged_view, registry, place)
        dataset = MergedView(
            name=name or function.__name__,
            query=function,
            place=place,
            merge=dict(merge),
            deduplicate_by=_columns(deduplicate_by),
            comment=comment,
            refresh=refresh,
        )
        declare_merged_view(registry, dataset, function)

    decorate: Callable[[_Function], _Function] = _decorating("@merged_view", declare, None)
    return decorate


def append_flow(
    *,
    target: str,
    name: str | None = None,
    once: bool = False,
    trigger: str | None = None,
    realtime: str | None = None,
    **others: Any,
) -> Callable[[_Function], _Function]:
    """A further flow of rows into a streaming table or a sink.

    With `once` it takes what is there when the pipeline starts, and no more.
    """

    def declare(registry: Registry, function: QueryFunction, place: Place) -> None:
        _complain_about(others, append_flow, registry, place)
        registry.flows.append(
            _flow(
                registry,
                name or function.__name__,
                target,
                function,
                place,
                trigger,
                realtime,
                is_once=once,
            )
        )

    decorate: Callable[[_Function], _Function] = _decorating("@append_flow", declare, None)
    return decorate


def create_streaming_table(
    name: str,
    *,
    comment: str = "",
    partition_cols: Sequence[str] | None = None,
    table_properties: Mapping[str, str] | None = None,
    schema: "str | StructType | None" = None,
    keys: Sequence[str] = (),
    sequence_by: str | None = None,
    dead_letter_topic: str | None = None,
    expect_all: Rules | None = None,
    expect_all_or_drop: Rules | None = None,
    expect_all_or_quarantine: Rules | None = None,
    expect_all_or_fail: Rules | None = None,
    **others: Any,
) -> None:
    """A streaming table that flows declared elsewhere write to."""
    registry = current("create_streaming_table")
    place = registry.place_of_call(sys._getframe(1))
    _complain_about(others, create_streaming_table, registry, place)
    rules = {
        "warn": expect_all,
        "drop": expect_all_or_drop,
        "quarantine": expect_all_or_quarantine,
        "fail": expect_all_or_fail,
    }
    dataset = StreamingTable(
        name=name,
        place=place,
        comment=comment,
        schema=_ddl(schema),
        partition_by=_partitions(partition_cols),
        keys=_columns(keys),
        sequence_by=sequence_by,
        expectations=_expectations(rules),
        dead_letter_topic=dead_letter_topic,
        properties=dict(table_properties or {}),
    )
    registry.add(dataset)


def create_sink(
    name: str,
    format: str = "json",
    options: Mapping[str, str] | None = None,
    *,
    topic: str | None = None,
    guarantee: str = "exactly-once",
) -> None:
    """A topic that flows write to: rows as JSON, or with format kafka as key and value."""
    registry = current("create_sink")
    place = registry.place_of_call(sys._getframe(1))
    others = dict(options or {})
    found = topic or others.pop("topic", "")
    declare_sink(registry, Sink(name, place, found, format, guarantee, others))


def create_auto_cdc_flow(
    target: str,
    source: str,
    keys: Sequence[str],
    sequence_by: str,
    apply_as_deletes: str | None = None,
    except_column_list: Sequence[str] = (),
    stored_as_scd_type: int | str = 1,
    name: str | None = None,
    *,
    trigger: str | None = None,
    **others: Any,
) -> None:
    """Apply change events to a table by key and sequence; late ones find their place."""
    registry = current("create_auto_cdc_flow")
    place = registry.place_of_call(sys._getframe(1))
    _complain_about(others, create_auto_cdc_flow, registry, place)
    declare_changes(
        registry,
        place,
        name=name or target,
        target=target,
        query=f"SELECT * FROM STREAM({quoted_name(source)})",
        keys=_columns(keys),
        sequence_by=_text(sequence_by, "sequence_by"),
        apply_as_deletes=None
        if apply_as_deletes is None
        else _text(apply_as_deletes, "apply_as_deletes"),
        scd_type=str(stored_as_scd_type),
        except_columns=_columns(except_column_list),
        trigger=trigger,
    )


def _flow(
    registry: Registry,
    name: str,
    target: str,
    function: QueryFunction,
    place: Place,
    trigger: str | None,
    realtime: str | None,
    *,
    is_once: bool = False,
) -> Flow:
    complain_about_interval(trigger, "trigger", registry, place)
    complain_about_interval(realtime, "realtime", registry, place)
    return Flow(name, target, function, place, is_once=is_once, trigger=trigger, realtime=realtime)


def _decorating(
    word: str,
    declare: Callable[[Registry, QueryFunction, Place], None],
    function: QueryFunction | None,
) -> Any:
    """The decorated function, noted down; or the decorator, when there is none yet."""
    registry = current(word)

    def decorate(decorated: Any) -> Any:
        if not callable(decorated) or not hasattr(decorated, "__code__"):
            place = registry.place_of_call(sys._getframe(1))
            registry.complain(f"{word} decorates no function; write it above a `def`", place)
            return decorated
        place = registry.place_of_function(decorated)
        if _arguments_needed(decorated):
            registry.complain(
                f"{word}: {decorated.__name__} takes arguments, and nobody will give them; let it"
                " take none",
                place,
            )
        declare(registry, decorated, place)
        return decorated

    return decorate if function is None else decorate(function)


def _arguments_needed(function: QueryFunction) -> bool:
    import inspect

    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(
        parameter.default is inspect.Parameter.empty and parameter.kind not in kinds
        for parameter in inspect.signature(function).parameters.values()
    )


def _complain_about(
    others: Mapping[str, Any], word: Callable[..., Any], registry: Registry, place: Place
) -> None:
    """Arguments that we do not know are a mistake at a line, not the end of the file."""
    import inspect

    known = set(inspect.signature(word).parameters) - {"query_function", "others"}
    for argument in others:
        advice = ELSEWHERE.get(argument)
        text = f"; {advice}" if advice else nearest(argument, known)
        registry.complain(f"{word.__name__} takes no {argument}{text}", place)


def _expectations(rules: Mapping[str, Rules | None]) -> tuple[Expectation, ...]:
    return tuple(
        expectation(name, rule, violation)
        for violation, named in rules.items()
        for name, rule in (named or {}).items()
    )


def _columns(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns; a single text is one name, not a list of letters."""
    listed = [names] if isinstance(names, str) else list(names)
    return tuple(_text(name, "a column") for name in listed)


def _partitions(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """The columns of partitions; None, unlike an empty list, says nothing."""
    return None if names is None else _columns(names)


def _text(value: object, what: str) -> str:
    if isinstance(value, str):
        return value
    raise PipelineError(
        f"{what} is given as {type(value).__name__}; there is no Spark yet while files are read,"
        " so write it as text"
    )


def _ddl(schema: "str | StructType | None") -> str | None:
    """A schema as text, `id BIGINT, name STRING`."""
    if schema is None or isinstance(schema, str):
        return schema
    return ", ".join(
        f"`{field.name}` {field.dataType.simpleString()}" + ("" if field.nullable else " NOT NULL")
        for field in schema.fields
    )
