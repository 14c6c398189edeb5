"""Planning of tasks: large ranges of offsets are split, and small ones joined.

The plan depends on positions and options alone: a batch that Spark plans again after a crash gets
the same tasks, as the exactly-once sink requires.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from headrace.protocol.topic_partition import TopicPartition
from headrace.protocol.uuids import ZERO, Uuid
from headrace.spark.source.offsets import Positions

TASK_ROWS_SMALL = 10_000
"""Partitions with fewer records share a task, whose start takes longer than reading them."""
TASK_ROWS_LARGE = 2_000_000
"""A range of more records is split: a task costs 0.05 CPU s, and this many records one second."""
TASKS_OF_RANGE_MAX = 16
"""The default maximum of tasks per range, as each task has a cost in Spark and the sink."""


@dataclass(frozen=True, slots=True)
class Range:
    """The records of a partition from `first` to before `end`."""

    place: TopicPartition
    first: int
    end: int
    topic_id: Uuid = ZERO
    """The topic's id at the time of planning, so that records of a recreated topic are not read."""

    @property
    def rows(self) -> int:
        """The maximum number of records; compaction and transactions leave gaps."""
        return max(0, self.end - self.first)


TaskRanges = tuple[Range, ...]
"""The ranges of one task, in order."""


def ranges_between(start: Positions, end: Positions, topic_ids: Mapping[str, Uuid]) -> list[Range]:
    """Return the ranges between two positions; partitions that are not in `start` begin at 0."""
    return [
        Range(place, start.get(place, 0), end[place], topic_ids.get(place.topic, ZERO))
        for place in sorted(end)
        if start.get(place, 0) < end[place]
    ]


def task_ranges(
    ranges: Sequence[Range], tasks_min: int | None = None, task_rows_max: int | None = None
) -> list[TaskRanges]:
    """Split ranges into tasks; an explicit number of tasks disables joining.

    The number of cores does not matter, because it may differ after a restart elsewhere.
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


def _joined(ranges: Sequence[Range]) -> list[TaskRanges]:
    shares: list[TaskRanges] = []
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
    """Split a range into equal parts, up to one record."""
    count = min(count, whole.rows)
    if count <= 1:
        return [whole]
    bounds = [whole.first + whole.rows * index // count for index in range(count + 1)]
    return [replace(whole, first=first, end=end) for first, end in pairwise(bounds)]
