"""How far a micro-batch goes: so many rows, so many bytes, whichever is less; shared fairly.

Every partition gets of the limit what it has of the backlog, so that none falls behind the others.
"""

from collections.abc import Mapping

from headrace.spark.source.offsets import Positions, TopicPartition


def backlog(start: Positions, latest: Positions) -> Positions:
    """How many records wait in each partition; one that `start` does not know begins at 0."""
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
    """Where the next micro-batch ends: at `latest`, or before it where a limit says so."""
    waiting = backlog(start, latest)
    part = 1.0
    rows = sum(waiting.values())
    if rows_max is not None and rows > rows_max:
        part = rows_max / rows
    if bytes_max is not None:
        sizes = record_bytes or {}
        total = sum(count * sizes.get(place, 0.0) for place, count in waiting.items())
        if total > bytes_max:
            part = min(part, bytes_max / total)
    if part >= 1.0:
        return {**start, **latest}
    taken = _shared_out(waiting, part)
    return {**start, **{place: start.get(place, 0) + count for place, count in taken.items()}}


def _shared_out(waiting: Positions, part: float) -> Positions:
    """Whole records of each partition; what rounding leaves goes to the largest remainders.

    At least one record is taken: a limit below one record must not stop the query.
    """
    exact = {place: count * part for place, count in waiting.items()}
    taken = {place: int(count) for place, count in exact.items()}
    left = max(round(sum(exact.values())), 1) - sum(taken.values())
    by_remainder = sorted(exact, key=lambda place: (taken[place] - exact[place], place))
    for place in by_remainder[: max(0, left)]:
        taken[place] += 1
    return taken
