"""Compiled converters of number texts: integers, doubles, decimals of up to 18 digits.

What compiled code cannot do exactly (doubles with long mantissas, decimals beyond 64 bits) is left
to the caller: its index is noted as hard.
"""

# Compiled code compares with each of two constants; a tuple of them would be a loop.
# ruff: noqa: SIM109

from typing import Any

import numpy as np

from headrace.spark.decoding.columns.failures import UNFIT
from headrace.spark.decoding.columns.memory import byte_at, compiled
from headrace.spark.decoding.columns.spans import FLOAT, INTEGER, NULL, STRING

POWERS_OF_TEN = 10.0 ** np.arange(23)
"""The powers of ten that a double holds exactly."""
INTEGER_POWERS = 10 ** np.arange(19, dtype=np.int64)
MANTISSA_MAX = 1 << 53
SMALL_DIGITS = 18
LEAST = -(1 << 63)
LEAST_TENTH, LEAST_DIGIT = -(-LEAST // 10), -LEAST % 10
"""The least integer's digits but the last, and the last."""

MINUS, PLUS, POINT, ZERO, NINE = 45, 43, 46, 48, 57


@compiled
def note(noted: Any, code: int, row: int, start: int, end: int, column: int) -> None:
    codes, fault_starts, fault_ends, fault_columns = noted
    if codes[row] == 0:
        codes[row] = code
        fault_starts[row] = start
        fault_ends[row] = end
        fault_columns[row] = column


@compiled
def note_unfit(noted: Any, row: int, start: int, end: int, column: int) -> None:
    note(noted, UNFIT, row, start, end, column)


@compiled
def integer_of(data: int, at: int, end: int) -> tuple[int, bool]:
    """The value of a checked integer text, and whether 64 bits hold it."""
    is_negative = byte_at(data, at) == MINUS
    if is_negative:
        at += 1
    if end - at > SMALL_DIGITS + 1:
        return 0, False
    # Counted downwards, as there is one more number below zero than above.
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
def to_integers(
    data: int,
    starts: Any,
    ends: Any,
    kinds: Any,
    rows: Any,
    low: int,
    high: int,
    column: int,
    values: Any,
    is_valid: Any,
    noted: Any,
) -> None:
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
        note_unfit(noted, rows[index], starts[index], ends[index], column)


@compiled
def parts_of(data: int, at: int, end: int) -> tuple[bool, int, int, bool]:
    """A checked number as (is negative, digits as an integer, power of ten, digits are exact)."""
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
def to_doubles(
    data: int,
    starts: Any,
    ends: Any,
    kinds: Any,
    rows: Any,
    column: int,
    values: Any,
    is_valid: Any,
    hard: Any,
    noted: Any,
) -> int:
    """Exact by one rounding where digits and power of ten are doubles themselves; else hard."""
    hard_count = 0
    for index in range(len(starts)):
        kind = kinds[index]
        if kind <= NULL:
            continue
        if kind == INTEGER or kind == FLOAT:
            is_valid[index] = 1
            is_negative, mantissa, power, is_exact = parts_of(data, starts[index], ends[index])
            if is_exact and mantissa <= MANTISSA_MAX and -22 <= power <= 22:
                value = float(mantissa)
                if power < 0:
                    value /= POWERS_OF_TEN[-power]
                else:
                    value *= POWERS_OF_TEN[power]
                values[index] = -value if is_negative else value
            else:
                hard[hard_count] = index
                hard_count += 1
        elif kind == STRING:
            hard[hard_count] = index
            hard_count += 1
        else:
            note_unfit(noted, rows[index], starts[index], ends[index], column)
    return hard_count


@compiled
def scaled(mantissa: int, power: int, limit: int) -> int:
    """The digits moved by a power of ten, rounded half up; -1 if they exceed the limit."""
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
def to_decimals(
    data: int,
    starts: Any,
    ends: Any,
    kinds: Any,
    rows: Any,
    scale: int,
    limit: int,
    column: int,
    words: Any,
    is_valid: Any,
    hard: Any,
    noted: Any,
) -> int:
    """Decimals as pairs of 64-bit words, the lower first, as Arrow keeps them."""
    hard_count = 0
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
                hard[hard_count] = index
                hard_count += 1
        elif kind == STRING:
            hard[hard_count] = index
            hard_count += 1
        else:
            note_unfit(noted, rows[index], starts[index], ends[index], column)
    return hard_count
