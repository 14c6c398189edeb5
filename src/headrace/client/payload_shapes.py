"""What a payload looks like, guessed from its bytes, and the columns that many of them share.

Guesses are for people who do not know a topic yet. They are made from samples, so they may be wrong
about what is rare.
"""

import csv
import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

DEPTH_MAX = 8
FIELDS_MAX = 300
DELIMITERS = (",", ";", "\t", "|")
WIRE_ID_MAX = 10_000_000
"""Ids of schemas are counted from 1; a larger one is more likely some other binary format."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?"
)
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECIMAL_MAX = 10**38


class Kind(Enum):
    """A family of payloads."""

    NULL = "null"
    EMPTY = "empty"
    JSON = "json"
    WIRE_FORMAT = "registry wire format"
    CSV = "csv"
    XML = "xml"
    TEXT = "text"
    BINARY = "binary"


STRUCTURE = {
    Kind.WIRE_FORMAT: "structured",
    Kind.CSV: "structured",
    Kind.JSON: "semi-structured",
    Kind.XML: "semi-structured",
    Kind.TEXT: "unstructured",
    Kind.BINARY: "unstructured",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What one payload looks like; two with the same fields and types have the same detail."""

    kind: Kind
    detail: str = ""
    fields: Mapping[str, Any] | None = None
    """Of a JSON object: its values."""


def shape_of(payload: bytes | None) -> Shape:
    """The shape of one payload, looked at alone."""
    if payload is None:
        return Shape(Kind.NULL)
    if not payload.strip():
        return Shape(Kind.EMPTY)
    if payload[0] == 0 and len(payload) > 5:
        id_ = int.from_bytes(payload[1:5], "big")
        if 0 < id_ <= WIRE_ID_MAX:
            return Shape(Kind.WIRE_FORMAT, f"schema {id_}")
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return Shape(Kind.BINARY)
    if any(ord(sign) < 32 and sign not in "\t\r\n" for sign in text):
        return Shape(Kind.BINARY)
    return _text_shape(text, payload)


def _text_shape(text: str, payload: bytes) -> Shape:
    stripped = text.strip()
    if not stripped:  # White space of Unicode's, which bytes do not know as such.
        return Shape(Kind.EMPTY)
    if stripped[0] in "{[":
        try:
            value = msgspec.json.decode(payload)
        except (msgspec.DecodeError, RecursionError):
            return Shape(Kind.TEXT)
        if isinstance(value, dict):
            return Shape(Kind.JSON, ddl_of_fields(types_of([value])), value)
        return Shape(Kind.JSON, "an array")
    if stripped.startswith("<") and stripped.endswith(">"):
        return Shape(Kind.XML)
    line = text.strip("\r\n")
    delimiter = delimiter_of([line])
    if delimiter and "\n" not in line:
        return Shape(Kind.CSV, f"{len(fields_of(line, delimiter))} fields by {delimiter!r}")
    return Shape(Kind.TEXT)


def delimiter_of(lines: Sequence[str]) -> str | None:
    """The sign that parts each of these lines into the same number of fields, if one does.

    A space after it says that it is rather a part of a sentence.
    """
    for delimiter in DELIMITERS:
        counts = {len(fields_of(line, delimiter)) for line in lines}
        if len(counts) != 1 or counts == {1}:
            continue
        if not any(f"{delimiter} " in line for line in lines):
            return delimiter
    return None


def fields_of(line: str, delimiter: str) -> list[str]:
    """The fields of a line; a sign between quotes parts nothing."""
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # A field between quotes that is larger than its reader likes.
        return line.split(delimiter)


def csv_ddl(lines: Sequence[str], delimiter: str) -> str:
    """Columns `c1, c2, ...` of lines that all have the same number of fields."""
    rows = [fields_of(line, delimiter) for line in lines]
    width = len(rows[0])
    columns = {
        f"c{index + 1}": merged(_text_type(row[index]) for row in rows) for index in range(width)
    }
    return ddl_of_fields(columns)


def _text_type(text: str) -> str:
    """The type of a CSV field's text; an empty one tells nothing."""
    if not text:
        return ""
    if _INTEGER.fullmatch(text):
        return "BIGINT"
    if _NUMBER.fullmatch(text):
        return "DOUBLE"
    if text.lower() in ("true", "false"):
        return "BOOLEAN"
    return _string_type(text)


def _string_type(text: str) -> str:
    if len(text) <= 40:
        if _TIMESTAMP.fullmatch(text) and _is_in_calendar(text):
            return "TIMESTAMP"
        if _DATE.fullmatch(text) and _is_in_calendar(text):
            return "DATE"
    return "STRING"


def _is_in_calendar(text: str) -> bool:
    """Some write 0000-00-00 for no date, which no reader takes for one."""
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def types_of(objects: Iterable[Mapping[str, Any]], depth: int = 0) -> dict[str, str]:
    """Each field of these objects, in the order of appearance, with the type that fits all."""
    found: dict[str, list[Any]] = {}
    for one in objects:
        for name, value in one.items():
            if name in found or len(found) < FIELDS_MAX:
                found.setdefault(name, []).append(value)
    return {name: type_of(values, depth) for name, values in found.items()}


def type_of(values: Sequence[Any], depth: int = 0) -> str:
    """Spark's type for all of these values, empty if they are all null."""
    known = [value for value in values if value is not None]
    if known and depth < DEPTH_MAX:
        if all(isinstance(value, dict) for value in known):
            fields = ddl_of_fields(types_of(known, depth + 1), ": ")
            return f"STRUCT<{fields}>" if fields else "STRING"
        if all(isinstance(value, list) for value in known):
            item = type_of([item for value in known for item in value], depth + 1)
            return f"ARRAY<{item or 'STRING'}>"
    return merged(_scalar_type(value) for value in known)


def _scalar_type(value: Any) -> str:
    match value:
        case bool():
            return "BOOLEAN"
        case int():
            if -(1 << 63) <= value < 1 << 63:
                return "BIGINT"
            return "DECIMAL(38,0)" if abs(value) < _DECIMAL_MAX else "STRING"
        case float():
            return "DOUBLE"
        case str():
            return _string_type(value)
    return "STRING"


def merged(types: Iterable[str]) -> str:
    """One type for values of several; a string takes them all."""
    known = set(types) - {""}
    if len(known) == 1:
        return known.pop()
    if not known:
        return ""
    if known == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    if known == {"BIGINT", "DECIMAL(38,0)"}:
        return "DECIMAL(38,0)"
    if known == {"DATE", "TIMESTAMP"}:
        return "TIMESTAMP"
    return "STRING"


def ddl_of_fields(types: Mapping[str, str], between: str = " ") -> str:
    """Spark's DDL of these columns; one that was always null is a string.

    Spark and Delta have no columns without a name, nor two that differ by small and capital
    letters; the first of such fields is taken.
    """
    first = {name.lower(): name for name in reversed(list(types)) if name}
    return ", ".join(
        f"{quoted_name(name)}{between}{type_ or 'STRING'}"
        for name, type_ in types.items()
        if first.get(name.lower()) == name
    )


def quoted_name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return name
    return "`" + name.replace("`", "``") + "`"


def common_kind(shapes: Iterable[Shape]) -> Kind:
    """What most payloads are, those without content left out."""
    counted = Counter(shape.kind for shape in shapes if shape.kind not in (Kind.NULL, Kind.EMPTY))
    return counted.most_common(1)[0][0] if counted else Kind.EMPTY
