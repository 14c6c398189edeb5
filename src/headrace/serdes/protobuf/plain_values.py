"""Converts messages to plain Python values, and such values to the JSON of messages.

Protobuf's JSON has texts for large numbers, bytes and times, which cannot be compared or added.
Plain values have numbers, bytes and times.
"""

import datetime
import math
import struct
from typing import Any

import msgspec
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from headrace.serdes.payload_errors import CorruptPayload

_PACKAGE = "google.protobuf."
_WRAPPED = ["Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64"]
_WRAPPERS = frozenset(f"{_PACKAGE}{kind}Value" for kind in _WRAPPED)
_FLOAT = struct.Struct("<f")
_FLOAT_MAX = float.fromhex("0x1.fffffep+127")
_FLOAT_DIGITS_SURE = 6
"""Every float has at least this many exact digits."""
_FLOAT_DIGITS_MAX = 9
"""Enough digits to distinguish all floats."""
_NANOS_KEPT = 1_000
"""Nanoseconds per microsecond; Python's times cannot express less, so finer times stay texts."""


def values_of(message: Message) -> dict[str, Any]:
    """Return the fields of a message by name, without absent optional ones."""
    found = {
        field.name: _value(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }
    for field, content in message.ListFields():
        if field.is_extension:
            found[f"[{field.full_name}]"] = _value(field, content)
    return found


def json_of(value: Any) -> Any:
    """Convert plain values from any source to Protobuf's JSON."""
    match value:
        case dict():
            return {_key(key): json_of(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [json_of(each) for each in value]
        case datetime.timedelta():
            return _seconds(value)
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return msgspec.to_builtins(value)


def _value(field: FieldDescriptor, content: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {key: _single(inner, content[key]) for key in content}
    if field.is_repeated:
        return [_single(field, each) for each in content]
    return _single(field, content)


def _single(field: FieldDescriptor, content: Any) -> Any:
    if field.enum_type is not None:
        constant = field.enum_type.values_by_number.get(content)
        return content if constant is None else constant.name
    if field.message_type is not None:
        return _message(content)
    return _shortest(content) if field.type == FieldDescriptor.TYPE_FLOAT else content


def _message(content: Any) -> Any:
    name = content.DESCRIPTOR.full_name
    if not name.startswith(_PACKAGE):
        return values_of(content)
    try:
        return _well_known(name, content)
    except (json_format.Error, TypeError, ValueError, OverflowError) as error:
        raise CorruptPayload(f"invalid {name}: {error}") from error


def _well_known(name: str, content: Any) -> Any:
    if name in _WRAPPERS:
        return content.value
    if name == f"{_PACKAGE}Timestamp" and content.nanos % _NANOS_KEPT == 0:
        return content.ToDatetime(datetime.UTC)
    if name == f"{_PACKAGE}Duration" and content.nanos % _NANOS_KEPT == 0:
        return content.ToTimedelta()
    return json_format.MessageToDict(content, descriptor_pool=content.DESCRIPTOR.file.pool)


def _shortest(number: float) -> float:
    """Return the number with the fewest digits and the same four bytes: 0.1 for
    0.10000000149011612."""
    for digits in range(_FLOAT_DIGITS_SURE, _FLOAT_DIGITS_MAX + 1):
        shorter = float(f"{number:.{digits}g}")
        if abs(shorter) <= _FLOAT_MAX and _FLOAT.unpack(_FLOAT.pack(shorter))[0] == number:
            return shorter
    return number


def _key(key: Any) -> str:
    """Convert a key of a map, which is always a text in JSON."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _seconds(value: datetime.timedelta) -> str:
    micros = value // datetime.timedelta(microseconds=1)
    sign = "-" if micros < 0 else ""
    return f"{sign}{abs(micros) // 1_000_000}.{abs(micros) % 1_000_000:06}s"
