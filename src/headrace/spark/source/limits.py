"""The end of a micro-batch by limits of rows and bytes, shared fairly between partitions.

Each partition gets a share of the limit in proportion to its backlog, so that none falls behind,
and at least one record: with a large backlog elsewhere, its share might never be a whole record.
"""

from collections.abc import Mapping

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.offsets import Positions


def backlog(start: Positions, latest: Positions) -> Positions:
    """Count the waiting records by partition; partitions that are not in `start` begin at 0."""
    return {
        place: latest[place] - start.get(place, 0)
        for place in sorted(latest)
        if latest[place] > start.get(place, 0)
    }


def admitted(
    start: Positions,
    latest: Positions,
    rows_max: int | None,
    bytes_max: int | None = None,
    record_bytes: Mapping[TopicPartition, float] | None = None,
) -> Positions:
    """Return the end of the next micro-batch: `latest`, or less by the limits."""
    waiting = backlog(start, latest)
    taken = waiting
    if rows_max is not None:
        taken = _shared_out(waiting, dict.fromkeys(waiting, 1.0), rows_max)
    if bytes_max is not None:
        sizes = record_bytes or {}
        costs = {place: sizes.get(place, 0.0) for place in waiting}
        by_bytes = _shared_out(waiting, costs, bytes_max)
        taken = {place: min(count, by_bytes[place]) for place, count in taken.items()}
    if taken == waiting:
        return {**start, **latest}
    return {**start, **{place: start.get(place, 0) + count for place, count in taken.items()}}


def _shared_out(
    waiting: Positions, costs: Mapping[TopicPartition, float], limit: float
) -> Positions:
    """Share the limit between partitions, whose records may have different costs.

    A limit below one record of each partition is exceeded, because it must not stop a partition.
    """
    if _cost(waiting, costs) <= limit:
        return waiting
    shared, left = dict(waiting), float(limit)
    while True:
        part = _part(left, _cost(shared, costs))
        small = [place for place, count in shared.items() if count * part < 1]
        if not small:
            break
        for place in small:  # It gets one record, which leaves less for the others.
            del shared[place]
            left -= costs[place]
    taken = {place: int(count * part) for place, count in shared.items()}
    left -= _cost(taken, costs)
    for place in sorted(shared, key=lambda at: (taken[at] - shared[at] * part, at)):
        if costs[place] <= left and taken[place] < shared[place]:
            taken[place] += 1
            left -= costs[place]
    return {place: taken.get(place, 1) for place in waiting}


def _part(left: float, cost: float) -> float:
    return min(1.0, max(0.0, left) / cost) if cost else 1.0


def _cost(counts: Positions, costs: Mapping[TopicPartition, float]) -> float:
    return sum(count * costs[place] for place, count in counts.items())
