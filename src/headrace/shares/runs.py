"""The records between a share partition's start and its end, as runs of equal state.

A run is a range of offsets with one state, one delivery count and one owner. Whole batches are
acquired and whole batches accepted, so there are few runs and most are never divided; if a client
acknowledges single records, the run is split at just those offsets. The runs leave no gap: offsets
that the log lacks (compacted, aborted, a marker) are an archived run.
"""

from bisect import bisect_right
from enum import IntEnum
from operator import attrgetter

from headrace.shares.state import StateBatch

_first = attrgetter("first")
_COMPACT_FROM = 64


class RecordState(IntEnum):
    """The delivery state of a record, with the numbers of `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3  # Rejected, and not yet in the dead letter topic (KIP-1191).
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        return self is RecordState.ACKNOWLEDGED or self is RecordState.ARCHIVED


class Run:
    """Consecutive offsets with one state; `target` is the state that is being written."""

    __slots__ = ("change", "count", "deadline_ms", "first", "last", "member_id", "state", "target")

    def __init__(self, first: int, last: int, state: RecordState, count: int) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.member_id = ""
        self.deadline_ms = 0
        self.change: Change | None = None
        self.target = state

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __repr__(self) -> str:
        return f"{self.first}-{self.last} {self.state.name} {self.count} {self.member_id}".rstrip()

    @property
    def is_free(self) -> bool:
        """Return whether a member may acquire the run now."""
        return self.state is RecordState.AVAILABLE and self.change is None

    @property
    def is_done(self) -> bool:
        """Return whether a written state excludes any further delivery."""
        return self.change is None and self.state.is_terminal


class Change:
    """A step of several runs, which takes effect once it is written."""

    __slots__ = ("batches", "delivery_complete_count", "runs", "start_offset")

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs
        self.start_offset = 0
        self.delivery_complete_count = 0
        self.batches: list[StateBatch] = []


class Runs:
    """Every run from the start offset to the first offset that was never delivered."""

    __slots__ = ("_compact_at", "done_count", "items", "next_offset", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.next_offset = start_offset
        self.items: list[Run] = []
        self.done_count = 0  # Records of settled runs behind an open one.
        self._compact_at = _COMPACT_FROM

    def __len__(self) -> int:
        return self.next_offset - self.start_offset

    def index_of(self, offset: int) -> int:
        """The index of the run that holds an offset between start and next."""
        return bisect_right(self.items, offset, key=_first) - 1

    def append(self, run: Run) -> None:
        assert run.first == self.next_offset, "runs leave no gap"
        self.items.append(run)
        self.next_offset = run.last + 1
        if run.is_done:
            self.done_count += len(run)

    def cut(self, first: int, last: int) -> list[Run]:
        """The runs that make up exactly these offsets, split at both ends where needed."""
        items = self.items
        begin = self.index_of(first)
        if items[begin].first < first:
            begin += 1
            self._split(begin - 1, first)
        end = begin
        while end < len(items) and items[end].last <= last:
            end += 1
        if end < len(items) and items[end].first <= last:
            self._split(end, last + 1)
            end += 1
        return items[begin:end]

    def _split(self, index: int, offset: int) -> None:
        """Divide a run before an offset; both parts belong to its pending step."""
        run = self.items[index]
        rest = Run(offset, run.last, run.state, run.count)
        rest.member_id, rest.deadline_ms = run.member_id, run.deadline_ms
        rest.change, rest.target = run.change, run.target
        if rest.change is not None:
            rest.change.runs.append(rest)
        run.last = offset - 1
        self.items.insert(index + 1, rest)

    def settle(self, run: Run, state: RecordState) -> None:
        """Set the state of a run and remove its owner."""
        run.state = run.target = state
        run.change = None
        run.member_id = ""
        run.deadline_ms = 0
        if state.is_terminal and run.last >= self.start_offset:
            self.done_count += run.last - max(run.first, self.start_offset) + 1

    def advance(self) -> None:
        """Drop done runs at the front, and merge equal runs behind them."""
        items = self.items
        done = 0
        while done < len(items) and items[done].is_done:
            self.done_count -= len(items[done])
            done += 1
        if done:
            self.start_offset = items[done - 1].last + 1
            del items[:done]
        if len(items) > self._compact_at:
            self._compact()

    def drop_before(self, offset: int) -> None:
        """Drop the runs before an offset that the log has deleted."""
        if offset <= self.start_offset:
            return
        if offset >= self.next_offset:
            self.items.clear()
            self.done_count = 0
            self.start_offset = self.next_offset = offset
            return
        for run in self.cut(self.start_offset, offset - 1):
            if run.is_done:
                self.done_count -= len(run)
        del self.items[: self.index_of(offset)]
        self.start_offset = offset
        self.advance()

    def _compact(self) -> None:
        """Merge equal neighbours, only when the list has doubled, which keeps it cheap."""
        joined: list[Run] = []
        for run in self.items:
            last = joined[-1] if joined else None
            if last is not None and _are_alike(last, run):
                last.last = run.last
            else:
                joined.append(run)
        self.items = joined
        self._compact_at = max(_COMPACT_FROM, 2 * len(joined))


def _are_alike(one: Run, other: Run) -> bool:
    if one.change is not None or other.change is not None or one.state is not other.state:
        return False
    if one.state.is_terminal:
        return True
    return one.state is RecordState.AVAILABLE and one.count == other.count
