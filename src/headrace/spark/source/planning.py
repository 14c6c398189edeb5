"""Which task reads what: ranges of offsets, split where they are large, joined where small.

Pure, and a function of positions and options alone: a batch that Spark plans again after a crash
gets the same tasks, which the exactly-once sink relies on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from headrace.protocol.uuids import ZERO, Uuid
from headrace.spark.source.offsets import Positions, TopicPartition

TASK_ROWS_SMALL = 10_000
"""Partitions with fewer records share a task: starting one takes longer than to read those."""
TASK_ROWS_LARGE = 2_000_000
"""A range of more records is cut: a task costs some 0.05 s of a core, and as many take a second."""
TASKS_OF_RANGE_MAX = 16
"""Not more of a range unless it is asked for: Spark and the sink have work with each task."""


@dataclass(frozen=True, slots=True)
class Range:
    """The records of a partition from one offset up to before another."""

    place: TopicPartition
    first: int
    end: int
    topic_id: Uuid = ZERO
    """The topic's identity when this was planned, so that another one's records are not taken."""

    @property
    def rows(self) -> int:
        """As many as there can be; compaction and transactions leave gaps."""
        return max(0, self.end - self.first)


Share = tuple[Range, ...]
"""What one task reads, in this order."""


def ranges_between(start: Positions, end: Positions, topic_ids: Mapping[str, Uuid]) -> list[Range]:
    """What lies between two positions; a partition that `start` does not know is new, from 0."""
    return [
        Range(place, start.get(place, 0), end[place], topic_ids.get(place.topic, ZERO))
        for place in sorted(end)
        if start.get(place, 0) < end[place]
    ]


def shares_of(
    ranges: Sequence[Range], tasks_min: int | None = None, task_rows_max: int | None = None
) -> list[Share]:
    """The tasks for some ranges; who asks for a number of tasks gets that, and no joined ones.

    Not a function of the cores there are, which would be others after a restart elsewhere.
    """
    if tasks_min is None and task_rows_max is None:
        return _joined([part for whole in ranges for part in _several(whole)])
    pieces = [piece for whole in ranges for piece in _split(whole, task_rows_max)]
    if tasks_min is not None and len(pieces) < tasks_min:
        rows = sum(piece.rows for piece in pieces)
        pieces = [
            part
            for piece in pieces
            for part in _parts(piece, max(1, round(tasks_min * piece.rows / rows)))
        ]
    return [(piece,) for piece in pieces]


def _joined(ranges: Sequence[Range]) -> list[Share]:
    shares: list[Share] = []
    small: list[Range] = []
    rows = 0
    for one in ranges:
        if one.rows >= TASK_ROWS_SMALL:
            shares.append((one,))
            continue
        if small and rows + one.rows > TASK_ROWS_SMALL:
            shares.append(tuple(small))
            small, rows = [], 0
        small.append(one)
        rows += one.rows
    if small:
        shares.append(tuple(small))
    return shares


def _several(whole: Range) -> list[Range]:
    return _parts(whole, min(-(-whole.rows // TASK_ROWS_LARGE), TASKS_OF_RANGE_MAX))


def _split(whole: Range, rows_max: int | None) -> list[Range]:
    return [whole] if rows_max is None else _parts(whole, -(-whole.rows // rows_max))


def _parts(whole: Range, count: int) -> list[Range]:
    """Equal parts but for a record."""
    count = min(count, whole.rows)
    if count <= 1:
        return [whole]
    bounds = [whole.first + whole.rows * index // count for index in range(count + 1)]
    return [replace(whole, first=first, end=end) for first, end in pairwise(bounds)]
