"""The rounds of a redrive: a flow's quarantined rows, cut into parts that fit into memory.

All rows of a record are in one round, and so are all rows without a place that were rejected at one
moment. A round consists of ranges of offsets and moments, which are valid in any version of the
quarantine table: later rows have other moments.

Quarantine is scanned in small batches: payloads may be of any size, and exceed memory together.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.quarantine import QUARANTINE_SCHEMA, QUARANTINED_AT
from headrace.lake.tables import Table
from headrace.pipelines.running.correcting.kept_records import PLACE
from headrace.spark.side_output import Span

INDEX_SCHEMA = pa.schema(
    [
        ("flow", pa.string()),
        ("moment", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("weight", pa.int64()),
    ]
)
"""One entry per row of quarantine: its place, its moment, and its bytes."""
_BATCH_ROWS = 1024
_TEXTS = ("reason", "payload", "row")
"""The columns without a bound; the others are small."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The size of a round, unless a single record or moment exceeds it."""

    rows_max: int = 100_000
    bytes_max: int = 64 << 20


class Round(msgspec.Struct, frozen=True):
    """Rows of a flow that are redriven together."""

    flow: str
    number: int
    """Counts the rounds of its flow; part of the token of its batch."""
    moments: tuple[int, ...]
    """The moments when its rows were rejected, in microseconds since 1970."""
    spans: tuple[Span, ...]
    """The offsets of its records; empty for a round of rows without a place."""


def rounds_of(index: pa.Table, flow: str, limits: Limits) -> list[Round]:
    """Cut the rows of a flow into rounds."""
    rows = index.filter(pc.equal(index["flow"], flow))
    is_nameless = pc.or_(pc.or_(*(rows[n].is_null() for n in PLACE[:2])), rows[PLACE[2]].is_null())
    named = _parts(rows.filter(pc.invert(is_nameless)), PLACE, limits)
    nameless = _parts(rows.filter(is_nameless), ("moment",), limits)
    found = [(part, _spans(part)) for part in named] + [(part, ()) for part in nameless]
    return [
        Round(flow, number, tuple(sorted(part["moment"].unique().to_pylist())), spans)
        for number, (part, spans) in enumerate(found)
    ]


def without(index: pa.Table, moments: Mapping[str, Set[int]]) -> pa.Table:
    """Leave out rows that some flows rejected at some moments."""
    for flow, found in moments.items():
        if found:
            is_flow = pc.equal(index["flow"], flow)
            is_at = pc.is_in(index["moment"], value_set=pa.array(sorted(found), pa.int64()))
            index = index.filter(pc.invert(pc.and_(is_flow, is_at)))
    return index


def index_of(quarantine: Table) -> pa.Table:
    """Index all rows in quarantine."""
    columns = {
        "flow": _text("flow"),
        "moment": pc.field(QUARANTINED_AT).cast(pa.int64()),
        "topic": _text("topic"),
        "partition": pc.field("partition"),
        "offset": pc.field("offset"),
        "weight": _weight(),
    }
    return _scanner(quarantine, columns).to_table().cast(INDEX_SCHEMA)


def rows_of(quarantine: Table, part: Round) -> pa.Table:
    """Read the rows of a round that are still in quarantine."""
    of_type = QUARANTINE_SCHEMA.field(QUARANTINED_AT).type
    moments = pa.array(part.moments, pa.int64()).cast(of_type)
    topic, partition, offset = (pc.field(name) for name in PLACE)
    if part.spans:
        is_within = _any([_is_within(span) for span in part.spans])
    else:
        is_within = topic.is_null() | partition.is_null() | offset.is_null()
    is_of = (_text("flow") == part.flow) & pc.field(QUARANTINED_AT).isin(moments) & is_within
    columns = {name: pc.field(name) for name in QUARANTINE_SCHEMA.names}
    return _scanner(quarantine, columns, is_of).to_table()


def _parts(rows: pa.Table, keys: Sequence[str], limits: Limits) -> Iterator[pa.Table]:
    """Sort rows and cut them by the limits, but not between rows with the same keys."""
    rows = rows.sort_by([(key, "ascending") for key in keys])
    groups = rows.group_by(list(keys), use_threads=False).aggregate(
        [("weight", "count"), ("weight", "sum")]
    )
    first = end = size_bytes = 0
    counts, weights = (groups[f"weight_{name}"].to_pylist() for name in ("count", "sum"))
    for count, weight in zip(counts, weights, strict=True):
        is_full = end - first + count > limits.rows_max or size_bytes + weight > limits.bytes_max
        if is_full and end > first:
            yield rows.slice(first, end - first)
            first, size_bytes = end, 0
        end += count
        size_bytes += weight
    if end > first:
        yield rows.slice(first)


def _spans(part: pa.Table) -> tuple[Span, ...]:
    """Return one range of offsets for each partition; no other round has a record within."""
    ends = part.group_by(["topic", "partition"]).aggregate([("offset", "min"), ("offset", "max")])
    columns = (ends[n].to_pylist() for n in ("topic", "partition", "offset_min", "offset_max"))
    return tuple(
        Span(topic, partition, first, last + 1)
        for topic, partition, first, last in sorted(zip(*columns, strict=True))
    )


def _weight() -> Any:
    weight = pc.scalar(pa.scalar(0, pa.int64()))
    for name in _TEXTS:
        length = pc.binary_length(pc.field(name)).cast(pa.int64())
        weight += pc.coalesce(length, pa.scalar(0, pa.int64()))
    return weight


def _is_within(span: Span) -> Any:
    offset = pc.field("offset")
    is_there = (_text("topic") == span.topic) & (pc.field("partition") == span.partition)
    return is_there & (offset >= span.first) & (offset < span.end)


def _any(conditions: Sequence[Any]) -> Any:
    """Combine conditions as a balanced tree: Arrow recurses into a long chain."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return _any(conditions[:half]) | _any(conditions[half:])


def _text(name: str) -> Any:
    """Return a column of texts for a filter.

    Files rewritten by the Delta library have texts as views, which Arrow cannot compare with the
    bounds of a file; the cast makes them plain texts.
    """
    return pc.field(name).cast(pa.string())


def _scanner(quarantine: Table, columns: dict[str, Any], passes: Any = None) -> Any:
    """Scan few rows at a time, without reading ahead more of a file than needed."""
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
