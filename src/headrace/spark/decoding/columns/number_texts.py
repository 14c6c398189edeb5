"""Compiled converters of number texts: integers, doubles, decimals of up to 18 digits.

Values that they cannot convert exactly (doubles with long mantissas, decimals beyond 64 bits) are
left to the caller: their `is_valid` is HARD.
"""

# Compiled code compares with each of two constants; a tuple of them would be a loop.
# ruff: noqa: SIM109

from typing import Any

import numpy as np

from headrace.spark.decoding.columns.failures import UNFIT
from headrace.spark.decoding.columns.memory import byte_at, compiled
from headrace.spark.decoding.columns.spans import FLOAT, INTEGER, NULL, STRING

POWERS_OF_TEN = 10.0 ** np.arange(23)
"""The powers of ten that are exact as doubles."""
INTEGER_POWERS = 10 ** np.arange(19, dtype=np.int64)
MANTISSA_MAX = 1 << 53
SMALL_DIGITS = 18
LEAST = -(1 << 63)
LEAST_TENTH, LEAST_DIGIT = -(-LEAST // 10), -LEAST % 10
"""The digits of the least integer, split before the last one."""

HARD = 2
"""The validity of a value that Python converts."""

MINUS, PLUS, POINT, ZERO, NINE = 45, 43, 46, 48, 57


@compiled
def note(faults: Any, code: int, spans: Any, index: int) -> None:
    """Record a bad value, unless its row is bad already."""
    codes, fault_starts, fault_ends, fault_columns, column = faults
    _, starts, ends, _, rows = spans
    row = rows[index]
    if codes[row] == 0:
        codes[row] = code
        fault_starts[row] = starts[index]
        fault_ends[row] = ends[index]
        fault_columns[row] = column


@compiled
def integer_of(data: int, at: int, end: int) -> tuple[int, bool]:
    """Return the value of a checked integer text, and whether it fits into 64 bits."""
    is_negative = byte_at(data, at) == MINUS
    if is_negative:
        at += 1
    if end - at > SMALL_DIGITS + 1:
        return 0, False
    # The value is negative while digits are added, as there is one more negative number.
    value = 0
    for place in range(at, end):
        digit = byte_at(data, place) - ZERO
        if value < LEAST_TENTH or (value == LEAST_TENTH and digit > LEAST_DIGIT):
            return 0, False
        value = value * 10 - digit
    if is_negative:
        return value, True
    return -value, value != LEAST


@compiled
def to_integers(spans: Any, values: Any, is_valid: Any, faults: Any, low: int, high: int) -> None:
    data, starts, ends, kinds, _ = spans
    for index in range(len(starts)):
        kind = kinds[index]
        if kind <= NULL:
            continue
        if kind == INTEGER:
            value, fits = integer_of(data, starts[index], ends[index])
            if fits and low <= value <= high:
                values[index] = value
                is_valid[index] = 1
                continue
        note(faults, UNFIT, spans, index)


@compiled
def parts_of(data: int, at: int, end: int) -> tuple[bool, int, int, bool]:
    """Split a checked number into (is negative, digits, power of ten, digits are exact)."""
    is_negative = byte_at(data, at) == MINUS
    if is_negative:
        at += 1
    mantissa = 0
    digits = 0
    power = 0
    is_fraction = False
    is_exact = True
    while at < end:
        byte = byte_at(data, at)
        if byte == POINT:
            is_fraction = True
        elif (byte | 32) == 101:
            break
        else:
            if digits < SMALL_DIGITS:
                mantissa = mantissa * 10 + byte - ZERO
                if mantissa > 0:
                    digits += 1
                if is_fraction:
                    power -= 1
            else:
                is_exact = is_exact and byte == ZERO
                if not is_fraction:
                    power += 1
        at += 1
    if at < end:
        at += 1
        is_shrinking = byte_at(data, at) == MINUS
        if is_shrinking or byte_at(data, at) == PLUS:
            at += 1
        exponent = 0
        while at < end:
            if exponent < 100_000:
                exponent = exponent * 10 + byte_at(data, at) - ZERO
            at += 1
        power += -exponent if is_shrinking else exponent
    return is_negative, mantissa, power, is_exact


@compiled
def to_doubles(spans: Any, values: Any, is_valid: Any, faults: Any) -> None:
    """Convert exactly, by one rounding, where digits and power of ten are doubles."""
    data, starts, ends, kinds, _ = spans
    for index in range(len(starts)):
        kind = kinds[index]
        if kind <= NULL:
            continue
        if kind == INTEGER or kind == FLOAT:
            is_negative, mantissa, power, is_exact = parts_of(data, starts[index], ends[index])
            if is_exact and mantissa <= MANTISSA_MAX and -22 <= power <= 22:
                value = float(mantissa)
                if power < 0:
                    value /= POWERS_OF_TEN[-power]
                else:
                    value *= POWERS_OF_TEN[power]
                values[index] = -value if is_negative else value
                is_valid[index] = 1
            else:
                is_valid[index] = HARD
        elif kind == STRING:
            is_valid[index] = HARD
        else:
            note(faults, UNFIT, spans, index)


@compiled
def scaled(mantissa: int, power: int, limit: int) -> int:
    """Scale digits by a power of ten, rounding half up; return -1 beyond the limit."""
    if mantissa == 0:
        return 0
    value = mantissa
    if power < 0:
        if power < -SMALL_DIGITS:
            return 0
        unit = INTEGER_POWERS[-power]
        rest = value % unit
        value //= unit
        if rest >= unit - rest:
            value += 1
    elif power > 0:
        if power > SMALL_DIGITS or value > limit // INTEGER_POWERS[power]:
            return -1
        value *= INTEGER_POWERS[power]
    return value if value <= limit else -1


@compiled
def to_decimals(spans: Any, words: Any, is_valid: Any, faults: Any, scale: int, limit: int) -> None:
    """Convert to pairs of 64-bit words, the lower first, as in Arrow."""
    data, starts, ends, kinds, _ = spans
    for index in range(len(starts)):
        kind = kinds[index]
        if kind <= NULL:
            continue
        if kind == INTEGER or kind == FLOAT:
            is_negative, mantissa, power, is_exact = parts_of(data, starts[index], ends[index])
            value = -1
            if is_exact:
                value = scaled(mantissa, power + scale, limit)
            if value >= 0:
                words[index, 0] = -value if is_negative else value
                words[index, 1] = -1 if is_negative and value > 0 else 0
                is_valid[index] = 1
            else:
                is_valid[index] = HARD
        elif kind == STRING:
            is_valid[index] = HARD
        else:
            note(faults, UNFIT, spans, index)
