"""Values checked against a schema: what is wrong with them, and where."""

from dataclasses import dataclass
from itertools import islice
from typing import Any

from headrace.serdes.json_schema.parsing import JsonSchema
from headrace.serdes.json_schema.texts import pointer

FAULTS_MAX = 100
"""Enough to mend a value by; a long list of bad items would tell nothing more."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one place of a value."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}"


def validate(schema: JsonSchema, value: Any) -> list[Fault]:
    """The faults of a JSON value (dicts, lists, strings, numbers ...); none if it is valid."""
    if schema.validator.is_valid(value):
        return []
    errors = islice(schema.validator.iter_errors(value), FAULTS_MAX)
    return [Fault(pointer(error.instance_path), error.message) for error in errors]
