"""Combine the state batches of a share partition with added ones."""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from headrace.shares.state import StateBatch


def combine(
    known: Sequence[StateBatch], added: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """The batches in order and without overlap, from the start offset on.

    If two batches cover the same offset, the higher delivery count wins, and with equal counts
    the higher delivery state: a delivered record never becomes undelivered. Equal neighbours
    are merged. This is Kafka's rule, so both read the same state from one log.
    """
    waiting = [
        (first if first > start_offset else start_offset, last, count, state)
        for first, last, state, count in (*known, *added)
        if last >= start_offset
    ]
    if len(waiting) > 1:
        heapify(waiting)
    done: list[_Span] = []
    while waiting:
        span = heappop(waiting)
        if done and span[0] <= done[-1][1]:
            _settle(done, span, waiting)
        else:
            _append(done, span)
    return tuple(StateBatch(first, last, state, count) for first, last, count, state in done)


_Span = tuple[int, int, int, int]
"""First and last offset, delivery count, delivery state: so that spans sort by their offsets."""


def _settle(done: list[_Span], span: _Span, waiting: list[_Span]) -> None:
    """Cut the weaker of two overlapping spans, and put its remainder back in the queue."""
    first, last, *rank = span
    other_first, other_last, *other_rank = done[-1]
    if rank <= other_rank:
        if last > other_last:
            heappush(waiting, (other_last + 1, last, rank[0], rank[1]))
        return
    done.pop()
    if other_first < first:
        done.append((other_first, first - 1, other_rank[0], other_rank[1]))
    if other_last > last:
        heappush(waiting, (last + 1, other_last, other_rank[0], other_rank[1]))
    _append(done, span)


def _append(done: list[_Span], span: _Span) -> None:
    if done:
        first, last, *rank = done[-1]
        if last + 1 == span[0] and rank == [span[2], span[3]]:
            done[-1] = (first, span[1], rank[0], rank[1])
            return
    done.append(span)
