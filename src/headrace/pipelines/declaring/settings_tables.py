"""The tables of pipeline.toml as values, each key checked separately.

An invalid value is reported and replaced by its default, so that all problems of the file are found
in one run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

import msgspec

from headrace.pipelines.model import PipelineSettings
from headrace.pipelines.problems import nearest

_DEFAULTS = PipelineSettings(name="")
Scalar = str | int | float | bool


class PipelineTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[pipeline]`."""

    name: str
    version: str | int | float = _DEFAULTS.version
    architecture: Literal["kappa", "lambda"] = "kappa"
    bootstrap: str = _DEFAULTS.bootstrap
    lake: str = _DEFAULTS.lake
    master: str = _DEFAULTS.master
    trigger: str = _DEFAULTS.trigger
    refresh: str = _DEFAULTS.refresh
    group: str | None = None
    libraries: tuple[str, ...] = _DEFAULTS.libraries
    driver_rows_max: int = _DEFAULTS.driver_rows_max


class SourceTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[sources.name]`."""

    topic: str | None = None
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    format: Literal["bytes", "json", "csv", "avro", "protobuf"] = "bytes"
    schema: str | None = None
    message: str | None = None
    connector: Literal["headrace", "kafka"] = "headrace"
    where: str | None = None
    category: str | None = None
    priority: int = 0
    options: dict[str, Scalar] = {}


class ZoneTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[zones.name]`."""

    comment: str = ""
    reads: tuple[str, ...] | None = None
    requires: tuple[Literal["checks", "expectations", "key", "comment"], ...] = ()
    quarantined_max: float | None = None
    judged_rows_min: int | None = None


Table = TypeVar("Table", PipelineTable, SourceTable, ZoneTable)


@dataclass(frozen=True, slots=True)
class Wrong:
    """A problem with a key of a table; the key is empty if the table lacks one."""

    text: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Converted(Generic[Table]):
    """A table with its valid values, and the problems of the others."""

    table: Table
    wrong: tuple[Wrong, ...]


def converted(
    kind: type[Table], given: Mapping[str, Any], section: str, **stand_ins: Any
) -> Converted[Table]:
    """Convert a table of pipeline.toml; `stand_ins` replace required keys that are missing."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    wrong = [
        Wrong(f"[{section}] has no {key}{nearest(key, fields) or _known(fields)}", key)
        for key in given
        if key not in fields
    ]
    values: dict[str, Any] = {}
    for key, field in fields.items():
        if key not in given:
            if field.required:
                wrong.append(Wrong(f'[{section}] lacks {key}; write {key} = "..."'))
            continue
        try:
            values[key] = msgspec.convert(given[key], field.type)
        except msgspec.ValidationError:
            wrong.append(Wrong(type_problem(key, given[key], field.type), key))
    missing = {key: value for key, value in stand_ins.items() if key not in values}
    return Converted(kind(**values, **missing), tuple(wrong))


def type_problem(key: str, value: Any, wanted: Any) -> str:
    """Return why a value is invalid for a key, and the valid ones."""
    choices = _choices(wanted)
    given = value if isinstance(value, list) else [value]
    if choices and all(isinstance(one, str) for one in given):
        texts = [one for one in given if one not in choices]
        near = nearest(texts[0], choices) if texts else ""
        *some, last = choices
        quoted = ", ".join(map(repr, texts or given))
        return f"{key} is {quoted}, and can be {', '.join(some)} or {last}{near}"
    return f"{key} must be {_words(wanted)}, and is {_shown(value)}"


def _choices(wanted: Any) -> tuple[str, ...]:
    """Return the allowed words of a value, or of each item of a list."""
    if get_origin(wanted) is Literal:
        return get_args(wanted)
    if get_origin(wanted) is tuple:
        return _choices(get_args(wanted)[0])
    return ()


def _words(wanted: Any) -> str:
    """Return a type in words for messages."""
    if isinstance(wanted, UnionType):
        parts = dict.fromkeys(_words(one) for one in get_args(wanted) if one is not type(None))
        return " or ".join(parts)
    if get_origin(wanted) is tuple:
        example = next(iter(_choices(wanted)), "...")
        return f'a list of texts, as ["{example}"]'
    if get_origin(wanted) is dict:
        return "a table of texts and numbers"
    if get_origin(wanted) is Literal:
        return "one of " + ", ".join(get_args(wanted))
    return _TYPES[wanted]


def _shown(value: Any) -> str:
    """Return the kind of a value only: the value may be a secret."""
    return {
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "a table",
    }.get(type(value), "a time")


def _known(fields: Mapping[str, Any]) -> str:
    return f"; it has {', '.join(fields)}"


_TYPES: Mapping[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}
