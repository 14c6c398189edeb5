"""Select the records that a member of a share group acquires from a read."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from headrace.shares.runs import Run, Runs


class ShareLimits(msgspec.Struct, frozen=True):
    """The limits of a group's configs."""

    delivery_count_limit: int = 5
    record_locks_max: int = 2_000
    lock_duration_ms: int = 30_000
    can_renew: bool = True
    has_dead_letters: bool = False


class Span(NamedTuple):
    """A batch of the log; a skipped one has no records for this group."""

    first: int
    last: int
    is_skipped: bool = False


class Pick(NamedTuple):
    """The limits of a member's request; a strict limit cuts batches, the usual one does not."""

    member_id: str
    max_records: int
    batch_size: int
    is_strict: bool = False


class Piece:
    """Offsets that will be acquired or skipped."""

    __slots__ = ("count", "first", "is_new", "is_skipped", "last")

    def __init__(self, first: int, last: int, count: int, *, is_new: bool, is_skipped: bool):
        self.first = first
        self.last = last
        self.count = count
        self.is_new = is_new
        self.is_skipped = is_skipped


class Selection:
    """The offsets of a read that a member acquires, decided before any state changes.

    A record that failed repeatedly may make its neighbours fail. From half of the delivery limit
    on, such a run is therefore delivered alone and in halves, and at last record by record.
    """

    def __init__(self, runs: Runs, pick: Pick, limits: ShareLimits) -> None:
        self._runs = runs
        self._pick = pick
        self._limit = limits.delivery_count_limit
        self._throttle_from = max(2, (self._limit + 1) // 2)
        self._left = pick.max_records
        self._room = limits.record_locks_max - len(runs)
        self._next = runs.next_offset
        self._index = 0
        self._pieces: list[Piece] = []

    def of(self, fetch_offset: int, spans: Iterable[Span]) -> list[Piece]:
        at = max(fetch_offset, self._runs.start_offset)
        self._index = max(0, self._runs.index_of(at))
        if self._left <= 0 or (at >= self._next and self._room <= 0):
            return []
        for first, last, is_skipped in spans:
            if last < at:
                continue
            if first > at:
                self._take(at, first - 1, is_skipped=True)
            self._take(max(first, at), last, is_skipped=is_skipped)
            at = last + 1
            if self._left <= 0 or (at >= self._next and self._room <= 0):
                break
        return self._pieces

    def _take(self, first: int, last: int, *, is_skipped: bool) -> None:
        items = self._runs.items
        while self._index < len(items) and self._left > 0:
            run = items[self._index]
            if run.first > last:
                return
            if run.last >= first and run.is_free:
                self._take_again(
                    run, max(first, run.first), min(last, run.last), is_skipped=is_skipped
                )
            if run.last > last:
                return
            self._index += 1
        if last >= self._next and self._left > 0 and self._room > 0:
            self._take_new(last, is_skipped=is_skipped)

    def _take_again(self, run: Run, first: int, last: int, *, is_skipped: bool) -> None:
        if not is_skipped and run.count >= self._throttle_from:
            if any(not piece.is_skipped for piece in self._pieces):
                self._left = 0  # It is delivered alone.
                return
            is_last_time = run.count >= self._limit - 1 and self._limit > 2
            size = 1 if is_last_time else max(1, len(run) // 2)
            last = min(last, first + size - 1)
            self._add(first, last, run.count, is_new=False, is_skipped=False)
            self._left = 0
            return
        if self._pick.is_strict and not is_skipped:
            last = min(last, first + self._left - 1)
        self._add(first, last, run.count, is_new=False, is_skipped=is_skipped)

    def _take_new(self, last: int, *, is_skipped: bool) -> None:
        first = self._next
        if self._pick.is_strict and not is_skipped:
            last = min(last, first + min(self._left, self._room) - 1)
        self._add(first, last, 0, is_new=True, is_skipped=is_skipped)
        self._next = last + 1
        self._room -= last - first + 1

    def _add(self, first: int, last: int, count: int, *, is_new: bool, is_skipped: bool) -> None:
        before = self._pieces[-1] if self._pieces else None
        if not is_skipped:
            self._left -= last - first + 1
        if (
            before is not None
            and before.last + 1 == first
            and before.is_new == is_new
            and before.count == count
            and before.is_skipped == is_skipped
            and (is_skipped or before.last - before.first + 1 < self._pick.batch_size)
        ):
            before.last = last
        else:
            self._pieces.append(Piece(first, last, count, is_new=is_new, is_skipped=is_skipped))
