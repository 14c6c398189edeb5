"""Compiled scanner of CSV by RFC 4180 or with escapes, for payloads of one line."""

# Compiled code compares with each of two constants; a tuple of them would be a loop.
# ruff: noqa: SIM109

from typing import Any

from headrace.spark.decoding.columns import failures, spans
from headrace.spark.decoding.columns.memory import byte_at, compiled
from headrace.spark.decoding.json.grammar import FAULT, scan_number

NEWLINE, RETURN, QUOTE, PLUS, MINUS = 10, 13, 34, 43, 45


@compiled
def line_end(data: int, at: int, end: int) -> int:
    """Return the end of the line before its newline."""
    if end > at and byte_at(data, end - 1) == NEWLINE:
        end -= 1
        if end > at and byte_at(data, end - 1) == RETURN:
            end -= 1
    return end


@compiled
def scan_quoted(data: int, at: int, end: int, escape: int) -> tuple[int, int]:
    """Scan from behind an opening quote: return the place of the closing one, and the kind of text.

    `escape` is 0 for no escapes, and never a quote.
    """
    kind = spans.STRING
    while at < end:
        byte = byte_at(data, at)
        if byte == escape and escape and at + 1 < end:
            after = byte_at(data, at + 1)
            if after == QUOTE or after == escape:
                kind = spans.ESCAPED
                at += 1
        elif byte == QUOTE:
            if at + 1 >= end or byte_at(data, at + 1) != QUOTE:
                return at, kind
            kind = spans.DOUBLED if kind == spans.STRING else kind
            at += 1
        at += 1
    return end, failures.OPEN_QUOTE


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
    """Record the spans of a line's fields; an empty field without quotes is null."""
    count = len(starts)
    column = 0
    while True:
        if column == count:
            return at, failures.TOO_MANY
        start = at
        if at < end and byte_at(data, at) == QUOTE:
            start = at + 1
            stop, kind = scan_quoted(data, start, end, escape)
            if kind >= FAULT:
                return start, kind
            if kind == spans.ESCAPED:
                kind = spans.SIGNED + escape
            at = stop + 1
            if at < end and byte_at(data, at) != delimiter:
                return at, failures.AFTER_QUOTE
        else:
            while at < end and byte_at(data, at) != delimiter:
                at += 1
            stop = at
            kind = spans.STRING if stop > start else spans.NULL
        starts[column, row] = start
        ends[column, row] = stop
        kinds[column, row] = kind
        column += 1
        if at >= end:
            return (at, spans.OBJECT) if column == count else (at, failures.TOO_FEW)
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
    """Record the spans of each valid payload's columns, and the failures of the others."""
    starts, ends, kinds = found
    codes, fault_starts, fault_ends, _ = noted
    count = len(starts)
    for row in range(len(froms)):
        fill = spans.ABSENT if roots[row] == spans.OBJECT else spans.VOID
        for column in range(count):
            kinds[column, row] = fill
        if fill == spans.VOID:
            continue
        end = line_end(data, froms[row], tos[row])
        at, kind = scan_line(data, froms[row], end, row, delimiter, escape, starts, ends, kinds)
        if kind >= FAULT:
            for column in range(count):
                kinds[column, row] = spans.VOID
            codes[row] = kind
            fault_starts[row] = at
            fault_ends[row] = tos[row]


@compiled
def lower_letter(data: int, at: int) -> int:
    return byte_at(data, at) | 32


@compiled
def boolean_kind(data: int, at: int, end: int) -> int:
    """Return TRUE or FALSE for these words in any case, and STRING for other texts."""
    if (
        end - at == 4
        and lower_letter(data, at) == 116
        and lower_letter(data, at + 1) == 114
        and lower_letter(data, at + 2) == 117
        and lower_letter(data, at + 3) == 101
    ):
        return spans.TRUE
    if (
        end - at == 5
        and lower_letter(data, at) == 102
        and lower_letter(data, at + 1) == 97
        and lower_letter(data, at + 2) == 108
        and lower_letter(data, at + 3) == 115
        and lower_letter(data, at + 4) == 101
    ):
        return spans.FALSE
    return spans.STRING


@compiled
def number_kind(data: int, at: int, end: int) -> tuple[int, int]:
    """Return the start of a number's digits, and INTEGER, FLOAT or STRING; zeros may lead."""
    start = at
    sign = byte_at(data, at)
    if sign == PLUS or sign == MINUS:
        at += 1
    while at + 1 < end and byte_at(data, at) == 48 and 48 <= byte_at(data, at + 1) <= 57:
        at += 1
    if at >= end or not (48 <= byte_at(data, at) <= 57):
        return start, spans.STRING
    stop, kind = scan_number(data, at, end)
    if kind >= FAULT or stop != end:
        return start, spans.STRING
    return (start if sign == MINUS else at), kind


@compiled
def find_numbers(data: int, starts: Any, ends: Any, kinds: Any) -> None:
    """Set the kinds of number texts, for columns of numbers."""
    for index in range(len(starts)):
        if kinds[index] == spans.STRING and starts[index] < ends[index]:
            start, kind = number_kind(data, starts[index], ends[index])
            starts[index] = start
            kinds[index] = kind


@compiled
def find_booleans(data: int, starts: Any, ends: Any, kinds: Any) -> None:
    """Set the kinds of true and false, for columns of booleans."""
    for index in range(len(starts)):
        if kinds[index] == spans.STRING:
            kinds[index] = boolean_kind(data, starts[index], ends[index])
