"""Converts objects of Python classes to plain values and back: dataclasses, msgspec, Pydantic."""

import datetime
import decimal
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from headrace.errors import HeadraceError
from headrace.serdes.classes.values import from_schema, to_schema
from headrace.serdes.schemas import SchemaType

_KEPT = (
    bytes, bytearray, datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
    decimal.Decimal, uuid.UUID,
)  # fmt: skip
"""Values that Avro's logical types are written from unchanged."""


class UnfitObject(HeadraceError):
    """An object that cannot become a plain value, or a value that does not fit a class."""


def plain(value: Any, schema_type: SchemaType) -> Any:
    """Convert an object to dicts, lists and scalars, as the schema of its class has them.

    Plain values are returned unchanged.
    """
    if value is None or type(value) in (dict, str, bytes, int, float, bool):
        return value
    if hasattr(value, "DESCRIPTOR"):
        return value  # A Protobuf message is encoded as it is.
    try:
        found = msgspec.to_builtins(value, builtin_types=_KEPT, enc_hook=_dumped)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnfitObject(f"a {type(value).__name__} cannot be written: {error}") from error
    class_: type = type(value)
    change = to_schema(class_, schema_type)
    return found if change is None else change(found)


def maker_of(class_: type, schema_type: SchemaType, *, strict: bool = True) -> Callable[[Any], Any]:
    """Return a function that makes objects of a class; unless `strict`, it also parses texts."""
    validate = getattr(class_, "model_validate", None)
    change = from_schema(class_, schema_type)

    def make(value: Any) -> Any:
        if value is None:
            return None
        try:
            value = value if change is None else change(value)
            if validate is not None:
                return validate(value)
            return msgspec.convert(value, class_, strict=strict, dec_hook=_made)
        except (ValueError, TypeError) as error:  # For unsupported classes.
            raise UnfitObject(f"the value is not a valid {class_.__name__}: {error}") from error

    return make


def _dumped(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} is neither a dataclass nor a model")
    return dump(by_alias=True)


def _made(class_: type, value: Any) -> Any:
    """Make a Pydantic model inside a dataclass or a Struct."""
    validate = getattr(class_, "model_validate", None)
    if validate is None:
        raise TypeError(f"{class_.__name__} is neither a dataclass nor a model")
    return value if isinstance(value, class_) else validate(value)
