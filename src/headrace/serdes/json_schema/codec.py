"""Values as JSON in records, and back, checked against their schema on either way."""

from typing import Any

import msgspec

from headrace.errors import HeadraceError
from headrace.serdes.json_schema.parsing import JsonSchema
from headrace.serdes.json_schema.validation import Fault, validate


class InvalidValue(HeadraceError):
    """A value that its schema does not allow, or bytes that are no JSON."""


def encode(schema: JsonSchema, value: Any, *, validated: bool = True) -> bytes:
    """A value as JSON: plain values, dataclasses, Structs, dates, UUIDs and decimals.

    What is checked are the bytes that were written. A decimal is written as a string, so that its
    digits survive, and it is the string that readers will hold against the schema.
    """
    try:
        data = msgspec.json.encode(value, enc_hook=_builtin)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"The value cannot be written as JSON: {error}") from None
    if validated:
        _check(schema, msgspec.json.decode(data))
    return data


def decode(schema: JsonSchema, data: bytes, *, validated: bool = True) -> Any:
    """The JSON value in a record."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidValue(f"The value is no JSON: {error}") from None
    if validated:
        _check(schema, value)
    return value


def _check(schema: JsonSchema, value: Any) -> None:
    faults = validate(schema, value)
    if faults:
        raise InvalidValue(f"The value is not valid by its schema at {_listed(faults)}")


def _listed(faults: list[Fault]) -> str:
    first = "; ".join(str(fault) for fault in faults[:3])
    return first if len(faults) <= 3 else f"{first}; and at {len(faults) - 3} more places"


def _builtin(value: Any) -> Any:
    """What msgspec does not know itself: Pydantic's models know how to become plain values."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return dump(mode="json", by_alias=True)
