"""The format of payloads, guessed from their bytes, and the columns they have in common.

Guesses help people who do not know a topic yet. They are based on samples, so they may be wrong for
rare payloads.
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
"""Schema ids count from 1; a larger number suggests another binary format."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?"
)
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECIMAL_MAX = 10**38


class PayloadKind(Enum):
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
    PayloadKind.WIRE_FORMAT: "structured",
    PayloadKind.CSV: "structured",
    PayloadKind.JSON: "semi-structured",
    PayloadKind.XML: "semi-structured",
    PayloadKind.TEXT: "unstructured",
    PayloadKind.BINARY: "unstructured",
}


@dataclass(frozen=True, slots=True)
class PayloadShape:
    """The format of one payload; equal fields and types have equal details."""

    kind: PayloadKind
    detail: str = ""
    fields: Mapping[str, Any] | None = None
    """The values of a JSON object."""


def shape_of(payload: bytes | None) -> PayloadShape:
    """Guess the shape of one payload."""
    if payload is None:
        return PayloadShape(PayloadKind.NULL)
    if not payload.strip():
        return PayloadShape(PayloadKind.EMPTY)
    if payload[0] == 0 and len(payload) > 5:
        id_ = int.from_bytes(payload[1:5], "big")
        if 0 < id_ <= WIRE_ID_MAX:
            return PayloadShape(PayloadKind.WIRE_FORMAT, f"schema {id_}")
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return PayloadShape(PayloadKind.BINARY)
    if any(ord(sign) < 32 and sign not in "\t\r\n" for sign in text):
        return PayloadShape(PayloadKind.BINARY)
    return _text_shape(text, payload)


def _text_shape(text: str, payload: bytes) -> PayloadShape:
    stripped = text.strip()
    if not stripped:  # Unicode white space, which `bytes.strip` keeps.
        return PayloadShape(PayloadKind.EMPTY)
    if stripped[0] in "{[":
        try:
            value = msgspec.json.decode(payload)
        except (msgspec.DecodeError, RecursionError):
            return PayloadShape(PayloadKind.TEXT)
        if isinstance(value, dict):
            return PayloadShape(PayloadKind.JSON, ddl_of_fields(types_of([value])), value)
        return PayloadShape(PayloadKind.JSON, "an array")
    if stripped.startswith("<") and stripped.endswith(">"):
        return PayloadShape(PayloadKind.XML)
    line = text.strip("\r\n")
    delimiter = delimiter_of([line])
    if delimiter and "\n" not in line:
        return PayloadShape(
            PayloadKind.CSV, f"{len(fields_of(line, delimiter))} fields by {delimiter!r}"
        )
    return PayloadShape(PayloadKind.TEXT)


def delimiter_of(lines: Sequence[str]) -> str | None:
    """Return the delimiter that splits all lines into the same number of fields, if any.

    A delimiter with a space after it counts as punctuation.
    """
    for delimiter in DELIMITERS:
        counts = {len(fields_of(line, delimiter)) for line in lines}
        if len(counts) != 1 or counts == {1}:
            continue
        if not any(f"{delimiter} " in line for line in lines):
            return delimiter
    return None


def fields_of(line: str, delimiter: str) -> list[str]:
    """Split a line into fields; delimiters within quotes do not count."""
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # A quoted field beyond the size limit of the reader.
        return line.split(delimiter)


def csv_ddl(lines: Sequence[str], delimiter: str) -> str:
    """Return the DDL of columns `c1, c2, ...` of lines with equal numbers of fields."""
    rows = [fields_of(line, delimiter) for line in lines]
    width = len(rows[0])
    columns = {
        f"c{index + 1}": merged(_text_type(row[index]) for row in rows) for index in range(width)
    }
    return ddl_of_fields(columns)


def _text_type(text: str) -> str:
    """Return the type of a CSV field; empty for an empty field."""
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
    """Return whether a date exists, unlike 0000-00-00."""
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def types_of(objects: Iterable[Mapping[str, Any]], depth: int = 0) -> dict[str, str]:
    """Return the fields of objects in order of appearance, with their common types."""
    found: dict[str, list[Any]] = {}
    for one in objects:
        for name, value in one.items():
            if name in found or len(found) < FIELDS_MAX:
                found.setdefault(name, []).append(value)
    return {name: type_of(values, depth) for name, values in found.items()}


def type_of(values: Sequence[Any], depth: int = 0) -> str:
    """Return Spark's common type of values; empty if all are null."""
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
    """Return the common type of several types; STRING holds any."""
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
    """Return Spark's DDL of columns; a column without values is a string.

    Spark and Delta have neither columns without a name nor names that differ only in case; the
    first of such fields is used.
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


def common_kind(shapes: Iterable[PayloadShape]) -> PayloadKind:
    """Return the most frequent kind of payloads with content."""
    counted = Counter(
        shape.kind for shape in shapes if shape.kind not in (PayloadKind.NULL, PayloadKind.EMPTY)
    )
    return counted.most_common(1)[0][0] if counted else PayloadKind.EMPTY


def registered_format(payloads: Iterable[bytes]) -> str:
    """Guess the format behind the schema ids of payloads: avro, json or protobuf.

    Payloads do not name it. JSON is recognized by its first character, and Protobuf by fields that
    fill each payload exactly, which Avro hardly ever does.
    """
    contents = [payload[5:] for payload in payloads]
    if all(content.lstrip()[:1] in (b"{", b"[") for content in contents):
        return "json"
    return "protobuf" if all(map(_is_protobuf, contents)) else "avro"


def _is_protobuf(content: bytes) -> bool:
    """Return whether a payload is a list of message indexes followed by a message's fields."""
    try:
        count, at = _varint(content, 0)
        for _ in range(count >> 1):  # Zigzag; 0 means the first message.
            _, at = _varint(content, at)
        while at < len(content):
            tag, at = _varint(content, at)
            at = _behind_field(content, tag, at)
    except (IndexError, ValueError):
        return False
    return at == len(content) and not count & 1


def _behind_field(content: bytes, tag: int, at: int) -> int:
    if not 0 < tag >> 3 < 1 << 29:
        raise ValueError("invalid field number")
    match tag & 7:
        case 0:
            return _varint(content, at)[1]
        case 1:
            return at + 8
        case 2:
            size, at = _varint(content, at)
            return at + size
        case 5:
            return at + 4
    raise ValueError("invalid field type")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Decode a number; return it with the position after it."""
    value = 0
    for place in range(10):
        byte = content[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("invalid number")
