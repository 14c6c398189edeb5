"""Columns from the slots that a walk over Avro records has filled."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.decoding.avro.programs import Program, Slot
from headrace.spark.decoding.avro.schemas import MILLIS_MAX, Node
from headrace.spark.decoding.avro.walking import to_decimal_words, walk_records
from headrace.spark.decoding.columns import scalars
from headrace.spark.decoding.columns.failures import NOT_UTF8, UNFIT, Failures
from headrace.spark.decoding.columns.scalars import fixed, halves, noted, unscaled_fits
from headrace.spark.decoding.columns.spans import STRING, Spans, bitmap
from headrace.spark.decoding.columns.utf8 import is_utf8


@dataclass(frozen=True, slots=True)
class Slots:
    """What a walk found, by slot and row: values or starts of bytes, their lengths, validity."""

    spans: Spans
    values: Any
    lengths: Any
    is_valid: Any
    failures: Failures


def walk(spans: Spans, root: Node, failures: Failures) -> tuple[Slot, Slots]:
    """Walk over all records of a flat schema."""
    program = Program(failures)
    top = program.record(root, "")
    shape = (program.slot_count, len(spans))
    slots = (np.zeros(shape, np.int64), np.zeros(shape, np.int32), np.zeros(shape, np.uint8))
    walk_records(
        spans.address,
        (spans.starts, spans.ends, spans.kinds),
        program.arrays(),
        slots,
        noted(failures),
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
                node.type, len(values), [bitmap(is_valid)], children=children
            )
        case "union":
            return union_column(slot, slots)
        case "boolean":
            return fixed(node.type, np.packbits(values == 1, bitorder="little"), is_valid)
        case "float":
            return fixed(node.type, values.astype(np.uint32).view(np.float32), is_valid)
        case "enum":
            return pa.array(node.symbols, pa.string()).take(
                fixed(pa.int64(), values.copy(), is_valid)
            )
        case "bytes" | "string" | "fixed":
            return bytes_column(slot, slots)
    if node.logical.endswith("-millis"):
        note_overflow(slot, slots)
    return fixed(node.type, number_values(node, values), is_valid)


def note_overflow(slot: Slot, slots: Slots) -> None:
    """Milliseconds that are too many as microseconds make their rows bad."""
    values, is_valid = slots.values[slot.number], slots.is_valid[slot.number]
    for row in np.flatnonzero((values > MILLIS_MAX) | (values < -MILLIS_MAX)):
        slots.failures.note(UNFIT, slots.spans, row, slot.number)
        is_valid[row] = 0


def number_values(node: Node, values: Any) -> Any:
    if node.logical.endswith("-millis"):
        return values * 1000
    if node.kind == "int":
        return values.astype(np.int32)
    return values


def union_column(slot: Slot, slots: Slots) -> Any:
    """The branches laid over each other; each row has at most one of them."""
    if slot.node.has_members:
        return members_column(slot, slots)
    column = None
    for child in slot.children:
        if child.node.kind == "null":
            continue
        branch = column_of(child, slots)
        if branch.type != slot.node.type:
            branch = branch.cast(slot.node.type)
        column = branch if column is None else pc.coalesce(column, branch)
    return pa.nulls(len(slots.spans)) if column is None else column


def members_column(slot: Slot, slots: Slots) -> Any:
    """A struct of the branches; it is null where the union is."""
    branches = [child for child in slot.children if child.node.kind != "null"]
    is_here = slots.is_valid[[child.number for child in branches]].any(axis=0)
    return pa.Array.from_buffers(
        slot.node.type,
        len(slots.spans),
        [bitmap(is_here.astype(np.uint8))],
        children=[column_of(child, slots) for child in branches],
    )


def bytes_column(slot: Slot, slots: Slots) -> Any:
    node = slot.node
    starts = slots.values[slot.number].astype(np.int32)
    ends = starts + slots.lengths[slot.number]
    is_valid = slots.is_valid[slot.number]
    if node.logical == "decimal":
        return decimal_column(slot, starts, slots)
    kinds = is_valid * np.uint8(STRING)
    spans = Spans(slots.spans.data, starts, ends, kinds, slots.spans.rows)
    column = scalars.bytes_column(spans, pa.binary())
    if not pa.types.is_string(node.type):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return texts_of(column, slot, slots)


def texts_of(column: Any, slot: Slot, slots: Slots) -> Any:
    """Strings without those that are not UTF-8, whose rows are noted."""
    texts = column.to_pylist()
    for row, text in enumerate(texts):
        if text is not None and not is_utf8(text):
            slots.failures.note(NOT_UTF8, slots.spans, row, slot.number)
            texts[row] = None
    return pa.array(texts, pa.string())


def decimal_column(slot: Slot, starts: Any, slots: Slots) -> Any:
    """Decimals of at most 16 bytes by compiled code; longer ones and bad ones by hand."""
    type_, is_valid = slot.node.type, slots.is_valid[slot.number]
    lengths = slots.lengths[slot.number]
    words = np.zeros((len(starts), 2), np.int64)
    is_long = np.zeros(len(starts), np.uint8)
    to_decimal_words(slots.spans.address, starts, lengths, is_valid, words, is_long)
    # What 64 bits hold may still have too many digits; the others are looked at one by one.
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
