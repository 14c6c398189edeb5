"""A compiled walk over Avro's binary encoding that follows a program."""

from typing import Any

from headrace.spark.decoding.avro import programs
from headrace.spark.decoding.columns import failures
from headrace.spark.decoding.columns.memory import byte_at, compiled
from headrace.spark.decoding.columns.spans import VOID

INT_LEAST, INT_MOST = -(1 << 31), (1 << 31) - 1


@compiled
def read_long(data: int, at: int, end: int) -> tuple[int, int, int]:
    """Read a zigzag number: return its value, the position after it, and a fault or 0."""
    value = 0
    shift = 0
    while at < end:
        byte = byte_at(data, at)
        at += 1
        if shift == 63 and byte > 1:
            return 0, at, failures.BAD_NUMBER
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            # The mask keeps the sign bit out of the shift.
            return ((value >> 1) & 0x7FFF_FFFF_FFFF_FFFF) ^ -(value & 1), at, 0
        shift += 7
        if shift > 63:
            return 0, at, failures.BAD_NUMBER
    return 0, at, failures.RECORD_CUT_SHORT


@compiled
def read_fixed(data: int, at: int, size: int) -> int:
    """Read 4 or 8 bytes in little-endian order."""
    bits = 0
    for index in range(size):
        bits |= byte_at(data, at + index) << (8 * index)
    return bits


@compiled
def read_part(data: int, at: int, end: int, step: int, argument: int) -> tuple[int, int, int, int]:
    """Read a scalar: return its value or start, its length, the next position, and a fault or 0."""
    if step == programs.READ_INT or step == programs.READ_LONG or step == programs.READ_ENUM:
        value, after, fault = read_long(data, at, end)
        if fault:
            return 0, 0, at, fault
        if step == programs.READ_INT and not INT_LEAST <= value <= INT_MOST:
            return 0, 0, at, failures.BAD_NUMBER
        if step == programs.READ_ENUM and not 0 <= value < argument:
            return 0, 0, at, failures.BAD_SYMBOL
        return value, 0, after, 0
    if step == programs.READ_BYTES:
        length, after, fault = read_long(data, at, end)
        if fault:
            return 0, 0, at, fault
        if length < 0 or length > end - after:
            return 0, 0, at, failures.BAD_LENGTH
        return after, length, after + length, 0
    size = 1 if step == programs.READ_BOOLEAN else argument
    if step == programs.READ_FLOAT:
        size = 4
    elif step == programs.READ_DOUBLE:
        size = 8
    if end - at < size:
        return 0, 0, at, failures.RECORD_CUT_SHORT
    if step == programs.READ_FIXED:
        return at, size, at + size, 0
    value = read_fixed(data, at, size)
    if step == programs.READ_BOOLEAN and value > 1:
        return 0, 0, at, failures.BAD_BOOLEAN
    return value, 0, at + size, 0


@compiled
def walk_record(
    data: int,
    at: int,
    end: int,
    row: int,
    steps: Any,
    jumps: Any,
    values: Any,
    lengths: Any,
    is_valid: Any,
) -> tuple[int, int, int]:
    """Follow the program through one record: return its end, a fault or 0, and the slot."""
    index = 0
    while index < len(steps):
        step, argument, slot = steps[index, 0], steps[index, 1], steps[index, 2]
        index += 1
        if step == programs.MARK:
            is_valid[slot, row] = 1
        elif step == programs.JUMP:
            index = argument
        elif step == programs.READ_UNION:
            branch, after, fault = read_long(data, at, end)
            if fault:
                return at, fault, slot
            if branch < 0 or branch >= jumps[argument]:
                return at, failures.BAD_BRANCH, slot
            at = after
            index = jumps[argument + 1 + branch]
        else:
            value, length, after, fault = read_part(data, at, end, step, argument)
            if fault:
                return at, fault, slot
            values[slot, row] = value
            lengths[slot, row] = length
            is_valid[slot, row] = 1
            at = after
    if at < end:
        return at, failures.RECORD_TRAILING, 0
    return at, 0, 0


@compiled
def walk_records(
    data: int,
    spans: Any,
    program: Any,
    slots: Any,
    noted: Any,
) -> None:
    """Fill the slots of all rows; invalid records leave them empty and are recorded."""
    froms, tos, kinds = spans
    steps, jumps = program
    values, lengths, is_valid = slots
    codes, fault_starts, fault_ends, fault_columns = noted
    for row in range(len(froms)):
        if kinds[row] == VOID:
            continue
        at, fault, slot = walk_record(
            data, froms[row], tos[row], row, steps, jumps, values, lengths, is_valid
        )
        if fault:
            codes[row] = fault
            fault_starts[row] = at
            fault_ends[row] = tos[row]
            fault_columns[row] = slot
            for part in range(len(is_valid)):
                is_valid[part, row] = 0


@compiled
def to_decimal_words(
    data: int, starts: Any, lengths: Any, is_valid: Any, words: Any, is_long: Any
) -> None:
    """Convert big-endian numbers of up to 16 bytes to pairs of 64-bit words, the lower first."""
    for index in range(len(starts)):
        if not is_valid[index]:
            continue
        length = lengths[index]
        if length == 0 or length > 16:
            is_long[index] = 1
            continue
        start = starts[index]
        fill = -1 if byte_at(data, start) >= 0x80 else 0
        low, high = fill, fill
        for place in range(start, start + length):
            high = (high << 8) | ((low >> 56) & 0xFF)
            low = (low << 8) | byte_at(data, place)
        words[index, 0] = low
        words[index, 1] = high
