"""Compiled scanner of objects and arrays: the spans of their values."""

from typing import Any

import numpy as np

from headrace.spark.decoding.columns.failures import (
    CUT_SHORT,
    EMPTY,
    NOT_AN_OBJECT,
    TRAILING,
    UNEXPECTED,
)
from headrace.spark.decoding.columns.memory import byte_at, compiled, inlined
from headrace.spark.decoding.columns.spans import ABSENT, ARRAY, ESCAPED, NULL, OBJECT, VOID
from headrace.spark.decoding.json.grammar import (
    CLOSE_BRACE,
    COLON,
    COMMA,
    DEPTH_MAX,
    FAULT,
    OPEN_BRACE,
    QUOTE,
    is_plain,
    scan_key,
    scan_value,
    skip_spaces,
)
from headrace.spark.decoding.json.strings import unescape


@compiled
def has_name(data: int, start: int, stop: int, names: int, begin: int, end: int) -> bool:
    if stop - start != end - begin:
        return False
    for index in range(stop - start):
        if byte_at(data, start + index) != byte_at(names, begin + index):
            return False
    return True


@compiled
def named_field(data: int, start: int, stop: int, names: int, name_ends: Any, guess: int) -> int:
    """Return the column with this name, or -1, trying columns from `guess` on."""
    count = len(name_ends) - 1
    for step in range(count):
        column = guess + step
        if column >= count:
            column -= count
        if has_name(data, start, stop, names, name_ends[column], name_ends[column + 1]):
            return column
    return -1


@compiled
def keyed_column(
    data: int, start: int, stop: int, kind: int, names: int, name_ends: Any, guess: int
) -> int:
    if kind == ESCAPED:
        scratch = np.empty(stop - start, np.uint8)
        length = unescape(data, start, stop, scratch, 0)
        return named_field(scratch.ctypes.data, 0, length, names, name_ends, guess)
    return named_field(data, start, stop, names, name_ends, guess)


@inlined
def guessed_key(data: int, at: int, end: int, names: int, begin: int, length: int) -> int:
    """Return the position of a value whose plain key is the expected one, otherwise -1.

    Most records have their keys in the schema's order, and comparing is quicker than scanning.
    """
    stop = at + 1 + length
    if stop + 2 >= end or byte_at(data, at) != QUOTE or byte_at(data, stop) != QUOTE:
        return -1
    for index in range(length):
        byte = byte_at(data, at + 1 + index)
        if byte != byte_at(names, begin + index) or not is_plain(byte):
            return -1
    if byte_at(data, stop + 1) != COLON:
        return -1
    after = skip_spaces(data, stop + 2, end)
    return after if after < end else -1


@inlined
def scan_members(
    data: int, at: int, end: int, names: Any, found: Any, row: int, stack: Any
) -> tuple[int, int]:
    """Scan from behind an opening brace, and record the spans of a row's columns."""
    name_text, name_ends = names
    starts, ends, kinds = found
    guess = 0
    count = len(name_ends) - 1
    at = skip_spaces(data, at, end)
    if at < end and byte_at(data, at) == CLOSE_BRACE:
        return at + 1, OBJECT
    while True:
        if at >= end:
            return at, CUT_SHORT
        column, after = guess, -1
        if guess < count:
            begin = name_ends[guess]
            after = guessed_key(data, at, end, name_text, begin, name_ends[guess + 1] - begin)
        if after < 0:
            key_start, key_stop, after, kind = scan_key(data, at, end)
            if kind >= FAULT:
                return key_start, kind
            column = keyed_column(data, key_start, key_stop, kind, name_text, name_ends, guess)
        at = after
        start, stop, at, kind = scan_value(data, at, end, stack)
        if kind >= FAULT:
            return stop, kind
        if column >= 0:
            starts[column, row] = start
            ends[column, row] = stop
            kinds[column, row] = kind
            guess = column + 1
        at = skip_spaces(data, at, end)
        if at >= end:
            return at, CUT_SHORT
        if byte_at(data, at) == CLOSE_BRACE:
            return at + 1, OBJECT
        if byte_at(data, at) != COMMA:
            return at, UNEXPECTED
        at = skip_spaces(data, at + 1, end)


@inlined
def scan_root(
    data: int, at: int, end: int, names: Any, found: Any, row: int, stack: Any
) -> tuple[int, int]:
    """Scan a whole text, which should be an object; `null` is not a fault."""
    at = skip_spaces(data, at, end)
    if at >= end:
        return at, EMPTY
    if byte_at(data, at) == OPEN_BRACE:
        at, kind = scan_members(data, at + 1, end, names, found, row, stack)
    else:
        start, stop, at, kind = scan_value(data, at, end, stack)
        if kind >= FAULT:
            return stop, kind
        if kind != NULL:
            return start, NOT_AN_OBJECT
    if kind >= FAULT:
        return at, kind
    at = skip_spaces(data, at, end)
    if at < end:
        return at, TRAILING
    return at, kind


@compiled
def scan_objects(spans: Any, names: Any, found: Any, faults: Any) -> None:
    """Record the spans of the columns of each object, and the failures of other texts.

    `names` is the address of all names and their ends; `found` is (starts, ends, kinds) by column
    and row.
    """
    data, froms, tos, roots, rows = spans
    kinds = found[2]
    codes, fault_starts, fault_ends, fault_columns, column = faults
    stack = np.empty(DEPTH_MAX, np.uint8)
    count = len(kinds)
    for row in range(len(froms)):
        fill = ABSENT if roots[row] == OBJECT else VOID
        for index in range(count):
            kinds[index, row] = fill
        if fill == VOID:
            continue
        at, kind = scan_root(data, froms[row], tos[row], names, found, row, stack)
        if kind != OBJECT:
            roots[row] = NULL
            for index in range(count):
                kinds[index, row] = VOID
        if kind >= FAULT and codes[rows[row]] == 0:
            codes[rows[row]] = kind
            fault_starts[rows[row]] = at
            fault_ends[rows[row]] = tos[row]
            fault_columns[rows[row]] = column


@compiled
def count_items(spans: Any, counts: Any) -> int:
    """Count the values of arrays and objects, which are checked already."""
    data, froms, tos, kinds, _ = spans
    stack = np.empty(DEPTH_MAX, np.uint8)
    total = 0
    for row in range(len(froms)):
        counts[row] = total
        if kinds[row] == ARRAY or kinds[row] == OBJECT:
            end = tos[row] - 1
            at = skip_spaces(data, froms[row] + 1, end)
            while at < end:
                if kinds[row] == OBJECT:
                    _, _, at, _ = scan_key(data, at, end)
                _, _, at, _ = scan_value(data, at, end, stack)
                total += 1
                at = skip_spaces(data, at, end)
                at = skip_spaces(data, at + 1, end)
    counts[len(froms)] = total
    return total


@compiled
def scan_items(spans: Any, keys: Any, values: Any, item_rows: Any) -> None:
    """Record the spans of all keys and values of arrays and objects."""
    data, froms, tos, kinds, rows = spans
    key_starts, key_ends, key_kinds = keys
    value_starts, value_ends, value_kinds = values
    stack = np.empty(DEPTH_MAX, np.uint8)
    item = 0
    for row in range(len(froms)):
        if kinds[row] == ARRAY or kinds[row] == OBJECT:
            end = tos[row] - 1
            at = skip_spaces(data, froms[row] + 1, end)
            while at < end:
                if kinds[row] == OBJECT:
                    start, stop, at, kind = scan_key(data, at, end)
                    key_starts[item] = start
                    key_ends[item] = stop
                    key_kinds[item] = kind
                start, stop, at, kind = scan_value(data, at, end, stack)
                value_starts[item] = start
                value_ends[item] = stop
                value_kinds[item] = kind
                item_rows[item] = rows[row]
                item += 1
                at = skip_spaces(data, at, end)
                at = skip_spaces(data, at + 1, end)
