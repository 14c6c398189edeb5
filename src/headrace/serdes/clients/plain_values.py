"""Objects of Python classes as plain values, and back: dataclasses, msgspec, Pydantic."""

import datetime
import decimal
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from headrace.errors import HeadraceError

_KEPT = (
    bytes, bytearray, datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
    decimal.Decimal, uuid.UUID,
)  # fmt: skip
"""What Avro's logical types are written from as it is."""


class UnfitObject(HeadraceError):
    """An object that cannot become a plain value, or a value that is no object of a class."""


def plain(value: Any) -> Any:
    """Dicts, lists and scalars of an object; what is plain already stays."""
    if value is None or type(value) in (dict, str, bytes, int, float, bool):
        return value
    if hasattr(value, "DESCRIPTOR"):
        return value  # A Protobuf message is encoded as it is.
    try:
        return msgspec.to_builtins(value, builtin_types=_KEPT, enc_hook=_dumped)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnfitObject(f"a {type(value).__name__} is no value to write: {error}") from error


def maker_of(class_: type, *, strict: bool = True) -> Callable[[Any], Any]:
    """Makes objects of a class from plain values; of texts too where it is not strict."""
    validate = getattr(class_, "model_validate", None)

    def make(value: Any) -> Any:
        if value is None:
            return None
        try:
            return validate(value) if validate else msgspec.convert(value, class_, strict=strict)
        except ValueError as error:  # Both libraries' errors are such.
            raise UnfitObject(f"the value is no {class_.__name__}: {error}") from error

    return make


def _dumped(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} is neither a dataclass nor a model")
    return dump(by_alias=True)
