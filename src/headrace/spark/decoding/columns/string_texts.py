"""Compiled converters to strings and booleans."""

# Compiled code compares with each of two constants; a tuple of them would be a loop.
# ruff: noqa: SIM109

from typing import Any

from headrace.spark.decoding.columns.failures import UNFIT
from headrace.spark.decoding.columns.memory import byte_at, compiled
from headrace.spark.decoding.columns.number_texts import note
from headrace.spark.decoding.columns.spans import DOUBLED, ESCAPED, FALSE, NULL, SIGNED, TRUE
from headrace.spark.decoding.json.strings import unescape

QUOTE = 34


@compiled
def copy_string(data: int, start: int, end: int, kind: int, out: Any, to: int) -> int:
    """Write a text without its escapes; return its end."""
    if kind == ESCAPED:
        return unescape(data, start, end, out, to)
    if kind == DOUBLED or kind >= SIGNED:
        sign = kind - SIGNED
        at = start
        while at < end:
            byte = byte_at(data, at)
            if byte == sign and at + 1 < end:
                after = byte_at(data, at + 1)
                if after == sign or after == QUOTE:
                    byte = after
                    at += 1
            elif byte == QUOTE:
                at += 1
            out[to] = byte
            to += 1
            at += 1
        return to
    for index in range(end - start):
        out[to + index] = byte_at(data, start + index)
    return to + end - start


@compiled
def string_lengths(starts: Any, ends: Any, kinds: Any, offsets: Any, is_valid: Any) -> int:
    """Return the room for all texts; unescaping never makes a text longer."""
    total = 0
    for index in range(len(starts)):
        offsets[index] = total
        is_valid[index] = kinds[index] > NULL
        if kinds[index] > NULL:
            total += ends[index] - starts[index]
    offsets[len(starts)] = total
    return total


@compiled
def copy_strings(data: int, starts: Any, ends: Any, kinds: Any, offsets: Any, out: Any) -> None:
    """Write all texts one after the other, and the offset of each."""
    to = 0
    for index in range(len(starts)):
        offsets[index] = to
        if kinds[index] > NULL:
            to = copy_string(data, starts[index], ends[index], kinds[index], out, to)
    offsets[len(starts)] = to


@compiled
def to_booleans(spans: Any, values: Any, is_valid: Any, faults: Any) -> None:
    kinds = spans[3]
    for index in range(len(kinds)):
        kind = kinds[index]
        if kind <= NULL:
            continue
        if kind == TRUE or kind == FALSE:
            values[index] = kind == TRUE
            is_valid[index] = 1
        else:
            note(faults, UNFIT, spans, index)
