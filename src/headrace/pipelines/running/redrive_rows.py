"""Rows of quarantine as a redrive reads them: an index of all, and in full those of one round.

Both go through the files in small batches, and leave behind at once what they do not keep: payloads
may be of any size, and there may be more of them than memory holds.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.quarantine import QUARANTINE_SCHEMA, QUARANTINED_AT
from headrace.lake.tables import Table
from headrace.pipelines.running.kept_records import PLACE
from headrace.pipelines.running.redrive_rounds import INDEX_SCHEMA, Round
from headrace.spark.refuge import Span

_BATCH_ROWS = 1024
_TEXTS = ("reason", "payload", "row")
"""What a row weighs is what these do: they have no bound, and the rest is small beside a record."""


def index_of(quarantine: Table) -> pa.Table:
    """Where each row in quarantine came from, when it was refused, and what it weighs."""
    found = pa.Table.from_batches(_indexed(quarantine), INDEX_SCHEMA)
    # One dictionary for all batches: without it the words of each stand apart.
    return found.combine_chunks().unify_dictionaries()


def rows_of(quarantine: Table, part: Round) -> pa.Table:
    """The rows of a round that are in quarantine still."""
    names = QUARANTINE_SCHEMA.names
    return _scanner(quarantine, {name: pc.field(name) for name in names}, _is_of(part)).to_table()


def _indexed(quarantine: Table) -> Iterator[Any]:
    columns = {
        "flow": pc.field("flow"),
        "moment": pc.field(QUARANTINED_AT).cast(pa.int64()),
        **{name: pc.field(name) for name in PLACE},
        "weight": _weight(),
    }
    for batch in _scanner(quarantine, columns).to_batches():
        arrays = [
            batch.column(one.name).dictionary_encode()
            if pa.types.is_dictionary(one.type)
            else batch.column(one.name).cast(one.type)
            for one in INDEX_SCHEMA
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=INDEX_SCHEMA)


def _weight() -> Any:
    weight = pc.scalar(pa.scalar(0, pa.int64()))
    for name in _TEXTS:
        length = pc.binary_length(pc.field(name)).cast(pa.int64())
        weight += pc.coalesce(length, pa.scalar(0, pa.int64()))
    return weight


def _is_of(part: Round) -> Any:
    """True for the rows of a round."""
    place = [pc.field(name) for name in PLACE]
    is_nameless = place[0].is_null() | place[1].is_null() | place[2].is_null()
    if part.spans is None:
        is_within = ~is_nameless
    else:
        is_within = _any([_is_within(span) for span in part.spans])
    is_one = (_is_at(part.moments) & is_within) | (_is_at(part.nameless) & is_nameless)
    return (_text("flow") == part.flow) & is_one


def _is_at(moments: Sequence[int]) -> Any:
    of_type = QUARANTINE_SCHEMA.field(QUARANTINED_AT).type
    return pc.field(QUARANTINED_AT).isin(pa.array(moments, pa.int64()).cast(of_type))


def _is_within(span: Span) -> Any:
    offset = pc.field("offset")
    is_there = (_text("topic") == span.topic) & (pc.field("partition") == span.partition)
    return is_there & (offset >= span.first) & (offset < span.end)


def _any(conditions: Sequence[Any]) -> Any:
    """True where one of them is, halved again and again: Arrow goes down into a long chain."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else pc.scalar(False)
    half = len(conditions) // 2
    return _any(conditions[:half]) | _any(conditions[half:])


def _text(name: str) -> Any:
    """A column of texts in a filter.

    The cast has one effect alone: files that the wheel has rewritten hold texts as views, and
    Arrow cannot compare a view with the bounds of a file.
    """
    return pc.field(name).cast(pa.string())


def _scanner(quarantine: Table, columns: dict[str, Any], passes: Any = None) -> Any:
    """Goes through few rows at a time, and reads no more of a file ahead than it needs."""
    import pyarrow.dataset as ds

    return quarantine.dataset().scanner(
        columns=columns,
        filter=passes,
        batch_size=_BATCH_ROWS,
        batch_readahead=2,
        fragment_readahead=1,
        fragment_scan_options=ds.ParquetFragmentScanOptions(
            use_buffered_stream=True, pre_buffer=False
        ),
    )
