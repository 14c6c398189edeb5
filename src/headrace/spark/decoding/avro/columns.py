"""Arrow columns from the slots that a walk over Avro records has filled."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.serdes.avro.model import Enum, Node, Record, Union
from headrace.spark.decoding.avro.column_types import MILLIS_MAX, has_members, is_in_millis
from headrace.spark.decoding.avro.compiled_walk import to_decimal_words, walk_records
from headrace.spark.decoding.avro.programs import Program, Slot
from headrace.spark.decoding.columns import scalars
from headrace.spark.decoding.columns.failures import NOT_UTF8, UNFIT, Failures, is_utf8
from headrace.spark.decoding.columns.scalars import fixed, halves, unscaled_fits
from headrace.spark.decoding.columns.spans import STRING, Spans, bitmap


@dataclass(frozen=True, slots=True)
class Slots:
    """The result of a walk by slot and row: values or starts of bytes, lengths, validity."""

    spans: Spans
    values: Any
    lengths: Any
    is_valid: Any
    failures: Failures


def walk(spans: Spans, root: Node, columns: Any, failures: Failures) -> tuple[Slot, Slots]:
    """Walk over all records of a flat schema with these columns."""
    assert isinstance(root, Record), "avro_schema takes no others"
    program = Program(failures)
    top = program.record(root, pa.struct(columns), "")
    shape = (program.slot_count, len(spans))
    slots = (np.zeros(shape, np.int64), np.zeros(shape, np.int32), np.zeros(shape, np.uint8))
    walk_records(
        spans.address,
        (spans.starts, spans.ends, spans.kinds),
        program.arrays(),
        slots,
        failures.arrays,
    )
    return top, Slots(spans, *slots, failures)


def column_of(slot: Slot, slots: Slots) -> Any:
    """An Arrow array of the slot's type."""
    node = slot.node
    values, is_valid = slots.values[slot.number], slots.is_valid[slot.number]
    match node.kind:
        case "null":
            return pa.nulls(len(values))
        case "record":
            children = [column_of(child, slots) for child in slot.children]
            return pa.Array.from_buffers(
                slot.type, len(values), [bitmap(is_valid)], children=children
            )
        case "union":
            return union_column(slot, slots)
        case "boolean":
            return fixed(slot.type, np.packbits(values == 1, bitorder="little"), is_valid)
        case "float":
            return fixed(slot.type, values.astype(np.uint32).view(np.float32), is_valid)
        case "enum":
            assert isinstance(node, Enum)
            return pa.array(node.symbols, pa.string()).take(
                fixed(pa.int64(), values.copy(), is_valid)
            )
        case "bytes" | "string" | "fixed":
            return bytes_column(slot, slots)
    if is_in_millis(node):
        note_overflow(slot, slots)
    return fixed(slot.type, number_values(node, values), is_valid)


def note_overflow(slot: Slot, slots: Slots) -> None:
    """Record rows whose milliseconds do not fit into microseconds."""
    values, is_valid = slots.values[slot.number], slots.is_valid[slot.number]
    for row in np.flatnonzero((values > MILLIS_MAX) | (values < -MILLIS_MAX)):
        slots.failures.note(UNFIT, slots.spans, row, slot.number)
        is_valid[row] = 0


def number_values(node: Node, values: Any) -> Any:
    if is_in_millis(node):
        return values * 1000
    if node.kind == "int":
        return values.astype(np.int32)
    return values


def union_column(slot: Slot, slots: Slots) -> Any:
    """Coalesce the branches; each row has at most one of them."""
    if isinstance(slot.node, Union) and has_members(slot.node):
        return members_column(slot, slots)
    column = None
    for child in slot.children:
        if child.node.kind == "null":
            continue
        branch = column_of(child, slots)
        if branch.type != slot.type:
            branch = branch.cast(slot.type)
        column = branch if column is None else pc.coalesce(column, branch)
    return pa.nulls(len(slots.spans)) if column is None else column


def members_column(slot: Slot, slots: Slots) -> Any:
    """Return a struct of the branches, which is null where the union is."""
    branches = [child for child in slot.children if child.node.kind != "null"]
    is_here = slots.is_valid[[child.number for child in branches]].any(axis=0)
    return pa.Array.from_buffers(
        slot.type,
        len(slots.spans),
        [bitmap(is_here.astype(np.uint8))],
        children=[column_of(child, slots) for child in branches],
    )


def bytes_column(slot: Slot, slots: Slots) -> Any:
    starts = slots.values[slot.number].astype(np.int32)
    ends = starts + slots.lengths[slot.number]
    is_valid = slots.is_valid[slot.number]
    if pa.types.is_decimal(slot.type):
        return decimal_column(slot, starts, slots)
    kinds = is_valid * np.uint8(STRING)
    spans = Spans(slots.spans.data, starts, ends, kinds, slots.spans.rows)
    column = scalars.bytes_column(spans, pa.binary())
    if not pa.types.is_string(slot.type):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return texts_of(column, slot, slots)


def texts_of(column: Any, slot: Slot, slots: Slots) -> Any:
    """Return strings, with those that are not UTF-8 as null and recorded."""
    texts = column.to_pylist()
    for row, text in enumerate(texts):
        if text is not None and not is_utf8(text):
            slots.failures.note(NOT_UTF8, slots.spans, row, slot.number)
            texts[row] = None
    return pa.array(texts, pa.string())


def decimal_column(slot: Slot, starts: Any, slots: Slots) -> Any:
    """Convert decimals of up to 16 bytes by compiled code, and others one by one."""
    type_, is_valid = slot.type, slots.is_valid[slot.number]
    lengths = slots.lengths[slot.number]
    words = np.zeros((len(starts), 2), np.int64)
    is_long = np.zeros(len(starts), np.uint8)
    to_decimal_words(slots.spans.address, starts, lengths, is_valid, words, is_long)
    # Values of 64 bits may still have too many digits, so those are checked one by one.
    limit = 10 ** min(type_.precision, 18)
    low = words[:, 0]
    is_small = (words[:, 1] == low >> 63) & (-limit < low) & (low < limit)
    for row in np.flatnonzero(is_valid & (is_long | ~is_small)):
        raw = slots.spans.data[starts[row] : starts[row] + lengths[row]].tobytes()
        value = int.from_bytes(raw, "big", signed=True)
        if not raw or not unscaled_fits(value, type_.precision):
            slots.failures.note(UNFIT, slots.spans, row, slot.number)
            is_valid[row] = 0
        elif is_long[row]:
            words[row] = halves(value)
    return fixed(type_, words, is_valid)
