"""Compiled scanner of JSON by RFC 8259, which finds values and converts none.

Every payload is checked to its last byte, including parts without a column, so invalid JSON never
passes. At a fault a function returns its position, and the fault's code (columns/failures.py)
instead of a kind (columns/spans.py).
"""

# Compiled code compares with each of two constants; a tuple of them would be a loop.
# ruff: noqa: SIM109

from typing import Any

from headrace.spark.decoding.columns import failures, spans
from headrace.spark.decoding.columns.memory import byte_at, compiled, inlined, plain_run

DEPTH_MAX = 128
"""The maximum nesting of a payload."""

FAULT = 32
"""Kinds from here on are faults."""

QUOTE, BACKSLASH, COMMA, COLON = 34, 92, 44, 58
OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET = 123, 125, 91, 93
PLUS, MINUS, POINT, ZERO, NINE = 43, 45, 46, 48, 57
SPACE = 32

Span = tuple[int, int, int, int]
"""Start and end of a value, the position after it, and its kind."""

# The next part that a container allows.
FIRST_VALUE, VALUE, FIRST_KEY, KEY, COMMA_OR_END = 0, 1, 2, 3, 4


@inlined
def skip_spaces(data: int, at: int, end: int) -> int:
    while at < end:
        byte = byte_at(data, at)
        if byte > SPACE or not (byte == 32 or byte == 10 or byte == 13 or byte == 9):
            return at
        at += 1
    return at


@inlined
def is_hex(byte: int) -> bool:
    return ZERO <= byte <= NINE or 65 <= byte <= 70 or 97 <= byte <= 102


@inlined
def is_escape(byte: int) -> bool:
    """Return whether a byte may follow a backslash: a quote, backslash, slash, or one of bfnrt."""
    if byte == QUOTE or byte == BACKSLASH or byte == 47:
        return True
    return byte == 98 or byte == 102 or byte == 110 or byte == 114 or byte == 116


@inlined
def is_plain(byte: int) -> bool:
    """Return whether a byte is unescaped within a string."""
    return byte >= SPACE and byte != QUOTE and byte != BACKSLASH


@inlined
def scan_string(data: int, at: int, end: int) -> tuple[int, int]:
    """Scan from behind the opening quote: return the place of the closing one, and the kind."""
    kind = spans.STRING
    while at + 8 <= end:
        run = plain_run(data, at)
        at += run
        if run < 8:
            break
    while at < end:
        byte = byte_at(data, at)
        if byte == QUOTE:
            return at, kind
        if byte == BACKSLASH:
            kind = spans.ESCAPED
            at += 1
            if at >= end:
                return at, failures.CUT_SHORT
            byte = byte_at(data, at)
            if byte == 117:
                if at + 4 >= end:
                    return end, failures.CUT_SHORT
                for place in range(at + 1, at + 5):
                    if not is_hex(byte_at(data, place)):
                        return place, failures.BAD_ESCAPE
                at += 4
            elif not is_escape(byte):
                return at, failures.BAD_ESCAPE
        elif byte < SPACE:
            return at, failures.CONTROL_CHARACTER
        at += 1
    return end, failures.CUT_SHORT


@inlined
def skip_digits(data: int, at: int, end: int) -> int:
    while at < end and ZERO <= byte_at(data, at) <= NINE:
        at += 1
    return at


@inlined
def scan_number(data: int, at: int, end: int) -> tuple[int, int]:
    """Scan a number: return its end, and INTEGER or FLOAT."""
    kind = spans.INTEGER
    if byte_at(data, at) == MINUS:
        at += 1
    begin = at
    at = skip_digits(data, at, end)
    if at == begin:
        return at, failures.CUT_SHORT if at >= end else failures.UNEXPECTED
    if byte_at(data, begin) == ZERO and at > begin + 1:
        return begin + 1, failures.UNEXPECTED
    if at < end and byte_at(data, at) == POINT:
        kind = spans.FLOAT
        begin = at + 1
        at = skip_digits(data, begin, end)
        if at == begin:
            return at, failures.CUT_SHORT if at >= end else failures.UNEXPECTED
    if at < end and (byte_at(data, at) | 32) == 101:
        kind = spans.FLOAT
        at += 1
        if at < end and (byte_at(data, at) == PLUS or byte_at(data, at) == MINUS):
            at += 1
        begin = at
        at = skip_digits(data, begin, end)
        if at == begin:
            return at, failures.CUT_SHORT if at >= end else failures.UNEXPECTED
    return at, kind


@inlined
def has_letters(data: int, at: int, end: int, first: int, second: int, third: int) -> bool:
    """Compare the three bytes after the one at `at`."""
    return (
        at + 3 < end
        and byte_at(data, at + 1) == first
        and byte_at(data, at + 2) == second
        and byte_at(data, at + 3) == third
    )


@inlined
def scan_literal(data: int, at: int, end: int) -> tuple[int, int]:
    """Scan true, false or null."""
    byte = byte_at(data, at)
    if byte == 116 and has_letters(data, at, end, 114, 117, 101):
        return at + 4, spans.TRUE
    if byte == 110 and has_letters(data, at, end, 117, 108, 108):
        return at + 4, spans.NULL
    if byte == 102 and has_letters(data, at, end, 97, 108, 115) and at + 4 < end:
        return (at + 5, spans.FALSE) if byte_at(data, at + 4) == 101 else (at, failures.UNEXPECTED)
    return at, failures.UNEXPECTED


@inlined
def scan_scalar(data: int, at: int, end: int) -> Span:
    """Scan a value without children."""
    byte = byte_at(data, at)
    if byte == QUOTE:
        stop, kind = scan_string(data, at + 1, end)
        return at + 1, stop, stop + 1, kind
    if byte == MINUS or ZERO <= byte <= NINE:
        stop, kind = scan_number(data, at, end)
    else:
        stop, kind = scan_literal(data, at, end)
    return at, stop, stop, kind


@inlined
def scan_key(data: int, at: int, end: int) -> Span:
    """Scan a key with its colon; the position after it is that of the value."""
    if byte_at(data, at) != QUOTE:
        return at, at, at, failures.UNEXPECTED
    stop, kind = scan_string(data, at + 1, end)
    if kind >= FAULT:
        return stop, stop, stop, kind
    after = skip_spaces(data, stop + 1, end)
    if after >= end:
        return after, after, after, failures.CUT_SHORT
    if byte_at(data, after) != COLON:
        return after, after, after, failures.UNEXPECTED
    after = skip_spaces(data, after + 1, end)
    if after >= end:
        return after, after, after, failures.CUT_SHORT
    return at + 1, stop, after, kind


@compiled
def skip_container(data: int, at: int, end: int, stack: Any) -> tuple[int, int]:
    """Check a container from its opening sign, and return the position behind its closing one."""
    stack[0] = byte_at(data, at)
    depth = 1
    state = FIRST_KEY if byte_at(data, at) == OPEN_BRACE else FIRST_VALUE
    at += 1
    while True:
        at = skip_spaces(data, at, end)
        if at >= end:
            return at, failures.CUT_SHORT
        byte = byte_at(data, at)
        if byte == CLOSE_BRACE or byte == CLOSE_BRACKET:
            # The code of a closing sign is that of its opening one plus two.
            may_close = state == COMMA_OR_END or state == FIRST_KEY or state == FIRST_VALUE
            if not may_close or stack[depth - 1] != byte - 2:
                return at, failures.UNEXPECTED
            depth -= 1
            at += 1
            if depth == 0:
                return at, spans.OBJECT
            state = COMMA_OR_END
        elif state == COMMA_OR_END:
            if byte != COMMA:
                return at, failures.UNEXPECTED
            state = KEY if stack[depth - 1] == OPEN_BRACE else VALUE
            at += 1
        elif state == FIRST_KEY or state == KEY:
            fault_at, _, at, kind = scan_key(data, at, end)
            if kind >= FAULT:
                return fault_at, kind
            state = VALUE
        elif byte == OPEN_BRACE or byte == OPEN_BRACKET:
            if depth == len(stack):
                return at, failures.TOO_DEEP
            stack[depth] = byte
            depth += 1
            at += 1
            state = FIRST_KEY if byte == OPEN_BRACE else FIRST_VALUE
        else:
            _, stop, at, kind = scan_scalar(data, at, end)
            if kind >= FAULT:
                return stop, kind
            state = COMMA_OR_END


@inlined
def scan_value(data: int, at: int, end: int, stack: Any) -> Span:
    """Scan any value."""
    byte = byte_at(data, at)
    if byte == OPEN_BRACE or byte == OPEN_BRACKET:
        stop, kind = skip_container(data, at, end, stack)
        if kind < FAULT:
            kind = spans.OBJECT if byte == OPEN_BRACE else spans.ARRAY
        return at, stop, stop, kind
    return scan_scalar(data, at, end)
