"""Collect the errors of a response from all its levels.

Responses put their error codes at the top, in each topic, in each partition. For each kind of
response one function is compiled that reads only the fields with codes, so that counting the
errors of an answer without any costs a few comparisons.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from headrace.protocol.fields import AnyStructure, fields_of
from headrace.protocol.source import Source

_ERROR_CODE = "error_code"

ErrorCodes = Callable[[Any], list[int]]


@cache
def error_codes_of(response_type: AnyStructure) -> ErrorCodes:
    """A function from a response to the codes in it that are not NONE."""
    source = Source("error_codes(message)", {})
    source.add("found = []")
    _look_into(source, "message", response_type)
    source.add("return found")
    return source.function(f"error codes of {response_type.__name__}")


def _look_into(source: Source, name: str, structure: AnyStructure) -> None:
    for field in fields_of(structure):
        if field.name == _ERROR_CODE:
            source.add(f"if {name}.{_ERROR_CODE}: found.append({name}.{_ERROR_CODE})")
        elif field.is_array and field.structure is not None and _has_error_codes(field.structure):
            element = source.fresh("element")
            with source.block(f"for {element} in {name}.{field.name} or ():"):
                _look_into(source, element, field.structure)


def _has_error_codes(structure: AnyStructure) -> bool:
    return any(
        field.name == _ERROR_CODE
        or (field.is_array and field.structure is not None and _has_error_codes(field.structure))
        for field in fields_of(structure)
    )
