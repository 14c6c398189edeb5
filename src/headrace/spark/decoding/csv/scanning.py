"""CSV by RFC 4180 or with escapes, a line per payload: compiled code finds where fields lie."""

# Compiled code compares with each of two constants; a tuple of them would be a loop.
# ruff: noqa: SIM109

from typing import Any

from headrace.spark.decoding.columns.failures import AFTER_QUOTE, OPEN_QUOTE, TOO_FEW, TOO_MANY
from headrace.spark.decoding.columns.memory import byte_at, compiled
from headrace.spark.decoding.columns.spans import (
    ABSENT,
    DOUBLED,
    ESCAPED,
    FALSE,
    NULL,
    OBJECT,
    SIGNED,
    STRING,
    TRUE,
    VOID,
)
from headrace.spark.decoding.json.grammar import FAULT, scan_number

NEWLINE, RETURN, QUOTE, PLUS, MINUS = 10, 13, 34, 43, 45


@compiled
def line_end(data: int, at: int, end: int) -> int:
    """Where the line ends, its newline left out."""
    if end > at and byte_at(data, end - 1) == NEWLINE:
        end -= 1
        if end > at and byte_at(data, end - 1) == RETURN:
            end -= 1
    return end


@compiled
def scan_quoted(data: int, at: int, end: int, escape: int) -> tuple[int, int]:
    """From behind an opening quote: where the closing one is, and how the text is written.

    The sign that escapes is found before quotes are, so it is never one; without one it is 0.
    """
    kind = STRING
    while at < end:
        byte = byte_at(data, at)
        if byte == escape and escape and at + 1 < end:
            after = byte_at(data, at + 1)
            if after == QUOTE or after == escape:
                kind = ESCAPED
                at += 1
        elif byte == QUOTE:
            if at + 1 >= end or byte_at(data, at + 1) != QUOTE:
                return at, kind
            kind = DOUBLED if kind == STRING else kind
            at += 1
        at += 1
    return end, OPEN_QUOTE


@compiled
def scan_line(
    data: int,
    at: int,
    end: int,
    row: int,
    delimiter: int,
    escape: int,
    starts: Any,
    ends: Any,
    kinds: Any,
) -> tuple[int, int]:
    """Note the spans of a line's fields; an empty one without quotes is null."""
    count = len(starts)
    column = 0
    while True:
        if column == count:
            return at, TOO_MANY
        start = at
        if at < end and byte_at(data, at) == QUOTE:
            start = at + 1
            stop, kind = scan_quoted(data, start, end, escape)
            if kind >= FAULT:
                return start, kind
            if kind == ESCAPED:
                kind = SIGNED + escape
            at = stop + 1
            if at < end and byte_at(data, at) != delimiter:
                return at, AFTER_QUOTE
        else:
            while at < end and byte_at(data, at) != delimiter:
                at += 1
            stop = at
            kind = STRING if stop > start else NULL
        starts[column, row] = start
        ends[column, row] = stop
        kinds[column, row] = kind
        column += 1
        if at >= end:
            return (at, OBJECT) if column == count else (at, TOO_FEW)
        at += 1


@compiled
def scan_lines(
    data: int,
    froms: Any,
    tos: Any,
    roots: Any,
    delimiter: int,
    escape: int,
    found: Any,
    noted: Any,
) -> None:
    """Spans of the columns of each payload that is a line of them; failures of the others."""
    starts, ends, kinds = found
    codes, fault_starts, fault_ends, _ = noted
    count = len(starts)
    for row in range(len(froms)):
        fill = ABSENT if roots[row] == OBJECT else VOID
        for column in range(count):
            kinds[column, row] = fill
        if fill == VOID:
            continue
        end = line_end(data, froms[row], tos[row])
        at, kind = scan_line(data, froms[row], end, row, delimiter, escape, starts, ends, kinds)
        if kind >= FAULT:
            for column in range(count):
                kinds[column, row] = VOID
            codes[row] = kind
            fault_starts[row] = at
            fault_ends[row] = tos[row]


@compiled
def lower_letter(data: int, at: int) -> int:
    return byte_at(data, at) | 32


@compiled
def boolean_kind(data: int, at: int, end: int) -> int:
    """TRUE or FALSE for these words in any case, else STRING."""
    if (
        end - at == 4
        and lower_letter(data, at) == 116
        and lower_letter(data, at + 1) == 114
        and lower_letter(data, at + 2) == 117
        and lower_letter(data, at + 3) == 101
    ):
        return TRUE
    if (
        end - at == 5
        and lower_letter(data, at) == 102
        and lower_letter(data, at + 1) == 97
        and lower_letter(data, at + 2) == 108
        and lower_letter(data, at + 3) == 115
        and lower_letter(data, at + 4) == 101
    ):
        return FALSE
    return STRING


@compiled
def number_kind(data: int, at: int, end: int) -> tuple[int, int]:
    """INTEGER or FLOAT and where its digits begin, else STRING. Leading zeros are fine here."""
    start = at
    sign = byte_at(data, at)
    if sign == PLUS or sign == MINUS:
        at += 1
    while at + 1 < end and byte_at(data, at) == 48 and 48 <= byte_at(data, at + 1) <= 57:
        at += 1
    if at >= end or not (48 <= byte_at(data, at) <= 57):
        return start, STRING
    stop, kind = scan_number(data, at, end)
    if kind >= FAULT or stop != end:
        return start, STRING
    return (start if sign == MINUS else at), kind


@compiled
def find_numbers(data: int, starts: Any, ends: Any, kinds: Any) -> None:
    """Tell numbers from other texts, for columns of numbers."""
    for index in range(len(starts)):
        if kinds[index] == STRING and starts[index] < ends[index]:
            start, kind = number_kind(data, starts[index], ends[index])
            starts[index] = start
            kinds[index] = kind


@compiled
def find_booleans(data: int, starts: Any, ends: Any, kinds: Any) -> None:
    """Tell true and false from other texts, for columns of booleans."""
    for index in range(len(starts)):
        if kinds[index] == STRING:
            kinds[index] = boolean_kind(data, starts[index], ends[index])
