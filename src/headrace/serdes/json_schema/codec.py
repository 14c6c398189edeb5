"""Encodes values as JSON and decodes them, validated by their schema both ways."""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from headrace.serdes.json_schema.parsing import JsonSchema
from headrace.serdes.json_schema.texts import pointer
from headrace.serdes.payload_errors import CorruptPayload, PayloadError, UnfitValue

FAULTS_MAX = 100
"""Faults reported for one value; a list of bad items can be longer."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An invalid place in a value."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}"


def encode(schema: JsonSchema, value: Any, *, validated: bool = True) -> bytes:
    """Return a value as JSON: plain values, dataclasses, Structs, dates, UUIDs and decimals.

    The written bytes are validated, as readers will validate them. A decimal is written as a
    string, so that its digits survive.
    """
    try:
        data = msgspec.json.encode(value, enc_hook=_builtin)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnfitValue(f"The value cannot be written as JSON: {error}") from None
    if validated:
        _check(schema, msgspec.json.decode(data), UnfitValue)
    return data


def decode(schema: JsonSchema, data: bytes, *, validated: bool = True) -> Any:
    """Return the JSON value of a payload."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CorruptPayload(f"The value is not JSON: {error}") from None
    if validated:
        _check(schema, value, CorruptPayload)
    return value


def validate(schema: JsonSchema, value: Any) -> list[Fault]:
    """Return the faults of a JSON value (dicts, lists, strings ...); an empty list if it is
    valid."""
    if schema.validator.is_valid(value):
        return []
    errors = islice(schema.validator.iter_errors(value), FAULTS_MAX)
    return [Fault(pointer(error.instance_path), error.message) for error in errors]


def _check(schema: JsonSchema, value: Any, error: type[PayloadError]) -> None:
    faults = validate(schema, value)
    if faults:
        raise error(f"The value is not valid by its schema at {_listed(faults)}")


def _listed(faults: list[Fault]) -> str:
    first = "; ".join(str(fault) for fault in faults[:3])
    return first if len(faults) <= 3 else f"{first}; and at {len(faults) - 3} more places"


def _builtin(value: Any) -> Any:
    """Convert a Pydantic model, which msgspec does not support."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")
    return dump(mode="json", by_alias=True)
