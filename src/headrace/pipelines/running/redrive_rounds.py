"""The rounds of a redrive: what is in quarantine of a flow, cut into parts that memory can hold.

A round is the records of some ranges of offsets, with all their rows, and of the rows that name no
record those of whole moments. Rounds follow the time at which rows were refused, so that each finds
its rows in few files. Within a partition they also follow the offsets, whatever those times are:
so a round needs one range of a partition, and no record lies between those of another round.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.refuge import Span

Moments = Mapping[str, Set[int]]
"""For each flow the moments at which batches of it were put into quarantine."""

_WORD = pa.dictionary(pa.int32(), pa.string())
INDEX_SCHEMA = pa.schema(
    [
        ("flow", _WORD),
        ("moment", pa.int64()),
        ("topic", _WORD),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("weight", pa.int64()),
    ]
)
"""What rounds are made of: a row of it for each in quarantine, with the bytes that it weighs."""

_Longs = npt.NDArray[np.int64]
_NAMELESS = -1


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a round takes up at most, unless a single record or moment has more."""

    rows_max: int = 100_000
    bytes_max: int = 64 << 20


class Round(msgspec.Struct, frozen=True):
    """Rows of a flow that are redriven together."""

    flow: str
    number: int
    """Among the rounds of its flow; the table knows the round's rows by it."""
    moments: tuple[int, ...]
    """When those of its rows were refused that name a record: others may have come since."""
    spans: tuple[Span, ...] | None
    """Which records; None for all of these moments."""
    nameless: tuple[int, ...]
    """The moments of which it has those rows that name none."""


def rounds_of(index: pa.Table, flow: str, limits: Limits) -> list[Round]:
    """The rounds of a flow's rows, of which an index tells."""
    rows = _Rows.of(index.filter(pc.equal(index["flow"], pa.scalar(flow))))
    if not len(rows.offset):
        return []
    starts = _starts(rows.topic, rows.partition, rows.offset)
    counts = np.diff(starts, append=len(rows.offset))
    turns = _turns(rows, starts)
    weights = np.add.reduceat(rows.weight, starts)
    cuts = _cuts(counts[turns], weights[turns], limits)
    number_of = np.empty(len(starts), np.int64)
    number_of[turns] = np.repeat(np.arange(len(cuts)), np.diff(cuts, append=len(starts)))
    by_row = np.repeat(number_of, counts)
    # Stable, so that the rows of a round stay ordered by their places.
    parts = np.split(np.argsort(by_row, kind="stable"), np.cumsum(np.bincount(by_row))[:-1])
    return [rows.taken(part).round(flow, number) for number, part in enumerate(parts)]


def without(index: pa.Table, moments: Moments) -> pa.Table:
    """An index without the rows of some batches."""
    for flow, found in moments.items():
        if found:
            is_flow = pc.equal(index["flow"], pa.scalar(flow))
            is_at = pc.is_in(index["moment"], value_set=pa.array(sorted(found), pa.int64()))
            index = index.filter(pc.invert(pc.and_(is_flow, is_at)))
    return index


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one flow, ordered by place.

    Those that name no record are a partition of their own, and their moments its offsets: what
    is done to records is done to moments then.
    """

    topics: tuple[str, ...]
    topic: _Longs
    """Its number among the topics."""
    partition: _Longs
    offset: _Longs
    moment: _Longs
    weight: _Longs

    @classmethod
    def of(cls, index: pa.Table) -> "_Rows":
        index = index.combine_chunks().unify_dictionaries()
        chunks = index["topic"].chunks
        topics = tuple(chunks[0].dictionary.to_pylist()) if chunks else ()
        codes = pa.chunked_array([chunk.indices for chunk in chunks], pa.int32())
        partition, offset = index["partition"], index["offset"]
        is_named = _array(
            pc.and_(pc.and_(codes.is_valid(), partition.is_valid()), offset.is_valid())
        )
        moment = _longs(index["moment"])
        rows = cls(
            topics,
            np.where(is_named, _longs(codes), _NAMELESS),
            np.where(is_named, _longs(partition), _NAMELESS),
            np.where(is_named, _longs(offset), moment),
            moment,
            _longs(index["weight"]),
        )
        return rows.taken(np.lexsort((rows.offset, rows.partition, rows.topic)))

    def taken(self, at: npt.NDArray[np.intp]) -> "_Rows":
        columns = (self.topic, self.partition, self.offset, self.moment, self.weight)
        return _Rows(self.topics, *(column[at] for column in columns))

    def round(self, flow: str, number: int) -> Round:
        """A round of all these rows."""
        is_named = self.topic != _NAMELESS
        named, nameless = (np.unique(self.moment[which]) for which in (is_named, ~is_named))
        starts = _starts(self.topic, self.partition)
        spans = tuple(
            Span(
                self.topics[self.topic[first]],
                int(self.partition[first]),
                int(self.offset[first]),
                int(self.offset[end - 1]) + 1,
            )
            for first, end in zip(starts, [*starts[1:], len(self.topic)], strict=True)
            if is_named[first]
        )
        return Round(flow, number, tuple(named.tolist()), spans, tuple(nameless.tolist()))


def _starts(*columns: _Longs) -> _Longs:
    """Where in sorted columns the next value begins."""
    changes = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.concatenate(([0], np.flatnonzero(changes) + 1)).astype(np.int64)


def _turns(rows: _Rows, starts: _Longs) -> npt.NDArray[np.intp]:
    """In which order records are taken: by the time of refusal, and within a partition by offset.

    A record that was refused again is late for its offset. Those behind it wait for it.
    """
    times = np.minimum.reduceat(rows.moment, starts)
    partitions = _starts(rows.topic[starts], rows.partition[starts])
    for first, end in zip(partitions, [*partitions[1:], len(starts)], strict=True):
        np.maximum.accumulate(times[first:end], out=times[first:end])
    return np.argsort(times, kind="stable")


def _cuts(rows: _Longs, weights: _Longs, limits: Limits) -> list[int]:
    """Where rounds begin: each takes what follows for as long as it fits, and one at least."""
    rows_to, bytes_to = np.cumsum(rows), np.cumsum(weights)
    cuts = [0]
    while True:
        at = cuts[-1]
        rows_max = limits.rows_max + (rows_to[at - 1] if at else 0)
        bytes_max = limits.bytes_max + (bytes_to[at - 1] if at else 0)
        fits = min(
            np.searchsorted(rows_to, rows_max, side="right"),
            np.searchsorted(bytes_to, bytes_max, side="right"),
        )
        end = max(int(fits), at + 1)
        if end >= len(rows):
            return cuts
        cuts.append(end)


def _longs(column: Any) -> _Longs:
    return _array(column.fill_null(0).cast(pa.int64()))


def _array(column: Any) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = column.to_numpy()
    return found
