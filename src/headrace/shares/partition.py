"""One share partition: deliveries of records to members and their outcomes (KIP-932).

Members of a share group do not own partitions. The leader of a partition gives each record to
one member, for as long as its lock lasts. The member accepts, releases, rejects or renews it; a
record whose lock expires is released. A record that exceeds the delivery limit, or was rejected,
is archived; if the group has a dead letter topic, the record is copied there first.

Acquisitions are not persisted: after a crash the record is delivered again. Every other step is a
`Change`, which is written before it takes effect: decide, let the persister write, then `apply` or
`roll_back`. Meanwhile the records can neither be acquired nor acknowledged.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.errors import InvalidRecordState, InvalidRequest
from headrace.protocol.acknowledge_types import AcknowledgeType
from headrace.shares.runs import Change, RecordState, Run, Runs
from headrace.shares.selection import Pick, Piece, Selection, ShareLimits, Span
from headrace.shares.state import SharePartitionState, StateBatch


class Acknowledgement(NamedTuple):
    """A member's acknowledgement of some offsets: one type for all of them, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Acquired(NamedTuple):
    """Records that a member has acquired with one lock."""

    first: int
    last: int
    delivery_count: int


class SharePartition:
    """The records in flight of one partition for one group."""

    __slots__ = ("_may_be_free", "runs", "state_epoch")

    def __init__(self, start_offset: int, state_epoch: int = 0) -> None:
        self.runs = Runs(start_offset)
        self.state_epoch = state_epoch
        self._may_be_free = False

    @classmethod
    def load(cls, state: SharePartitionState, start_offset: int) -> "SharePartition":
        """Load the last leader's state; acquired records become available again."""
        loaded = cls(start_offset, state.state_epoch)
        runs = loaded.runs
        for first, last, delivery_state, count in sorted(state.batches):
            if last < runs.next_offset:
                continue
            if first > runs.next_offset:
                runs.append(Run(runs.next_offset, first - 1, RecordState.AVAILABLE, 0))
            known = RecordState(delivery_state)
            if known is RecordState.ACQUIRED:
                known = RecordState.AVAILABLE
            runs.append(Run(max(first, runs.next_offset), last, known, count))
        runs.advance()
        loaded._may_be_free = bool(runs.items)
        return loaded

    # --- state ----------------------------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        """The offset before which all records are settled."""
        return self.runs.start_offset

    @property
    def next_offset(self) -> int:
        """The first offset that was never delivered."""
        return self.runs.next_offset

    def fetch_offset(self) -> int:
        """The offset to read for the next member: released records come first."""
        if self._may_be_free:
            for run in self.runs.items:
                if run.is_free:
                    return run.first
            self._may_be_free = False
        return self.runs.next_offset

    def can_acquire(self, limits: ShareLimits) -> bool:
        in_flight = len(self.runs)
        return in_flight < limits.record_locks_max or self.fetch_offset() < self.runs.next_offset

    def next_deadline_ms(self) -> int | None:
        """The time when the first lock expires."""
        deadlines = [
            run.deadline_ms for run in self.runs.items if run.state is RecordState.ACQUIRED
        ]
        return min(deadlines, default=None)

    # --- acquisition ----------------------------------------------------------------------------

    def acquire(
        self,
        pick: Pick,
        fetch_offset: int,
        spans: Iterable[Span],
        limits: ShareLimits,
        now_ms: int,
    ) -> list[Acquired]:
        """Let a member acquire records of the batches that were read from an offset on.

        Batches are checked one by one until the pick is complete. Offsets without a record
        (compacted or skipped) are archived.
        """
        pieces = Selection(self.runs, pick, limits).of(fetch_offset, spans)
        acquired = [
            self._give(piece, pick.member_id, now_ms + limits.lock_duration_ms)
            for piece in pieces
            if not self._pass_over(piece)
        ]
        if len(acquired) < len(pieces):
            self.runs.advance()
        return acquired

    def _pass_over(self, piece: Piece) -> bool:
        if not piece.is_skipped:
            return False
        if piece.is_new:
            self.runs.append(Run(piece.first, piece.last, RecordState.ARCHIVED, 0))
        else:
            for run in self.runs.cut(piece.first, piece.last):
                self.runs.settle(run, RecordState.ARCHIVED)
        return True

    def _give(self, piece: Piece, member_id: str, deadline_ms: int) -> Acquired:
        if piece.is_new:
            given = [Run(piece.first, piece.last, RecordState.ACQUIRED, 0)]
            self.runs.append(given[0])
        else:
            given = self.runs.cut(piece.first, piece.last)
        for run in given:
            run.state = RecordState.ACQUIRED
            run.count += 1
            run.member_id = member_id
            run.deadline_ms = deadline_ms
        return Acquired(piece.first, piece.last, piece.count + 1)

    # --- acknowledgement ------------------------------------------------------------------------

    def acknowledge(
        self,
        member_id: str,
        acknowledgements: Sequence[Acknowledgement],
        limits: ShareLimits,
        now_ms: int,
    ) -> Change | None:
        """Acknowledge records that a member holds, all of them or none.

        Offsets before the start are done already and skipped. Returns None if there is no record
        to be written, as with renewals.
        """
        said: list[tuple[int, int, AcknowledgeType]] = []
        before = -1
        for one in acknowledgements:
            if one.last < self.start_offset:
                continue
            first = max(one.first, self.start_offset)
            if first <= before:
                raise InvalidRecordState(f"offset {first} is acknowledged twice in one request")
            before = one.last
            self._check_held(member_id, first, one.last)
            said.extend(_steps(one, first))
        if not limits.can_renew and any(kind is AcknowledgeType.RENEW for _, _, kind in said):
            raise InvalidRecordState("the group does not allow locks to be renewed")
        return self._take_back(said, limits, now_ms)

    def _check_held(self, member_id: str, first: int, last: int) -> None:
        items = self.runs.items
        if not items:
            raise InvalidRecordState(f"none of the offsets {first} to {last} is acquired")
        if last >= self.next_offset:
            raise InvalidRequest(f"offset {last} has not been given to anybody yet")
        index = self.runs.index_of(first)
        while index < len(items) and (run := items[index]).first <= last:
            if run.state is not RecordState.ACQUIRED or run.change is not None:
                raise InvalidRecordState(f"offset {max(first, run.first)} is not acquired")
            if run.member_id != member_id:
                raise InvalidRecordState(
                    f"offset {max(first, run.first)} is acquired by another member"
                )
            index += 1

    def _take_back(
        self, said: Iterable[tuple[int, int, AcknowledgeType]], limits: ShareLimits, now_ms: int
    ) -> Change | None:
        changed: list[Run] = []
        for first, last, kind in said:
            for run in self.runs.cut(first, last):
                if kind is AcknowledgeType.RENEW:
                    run.deadline_ms = now_ms + limits.lock_duration_ms
                else:
                    run.target = _outcome(kind, run.count, limits)
                    changed.append(run)
        return self._change(changed)

    def release(self, member_id: str, limits: ShareLimits) -> Change | None:
        """Release the records of a member that is gone."""
        held = [
            run
            for run in self.runs.items
            if run.state is RecordState.ACQUIRED
            and run.member_id == member_id
            and run.change is None
        ]
        return self._release(held, limits)

    def expire(self, now_ms: int, limits: ShareLimits) -> Change | None:
        """Release the records whose locks have expired."""
        late = [
            run
            for run in self.runs.items
            if run.state is RecordState.ACQUIRED
            and run.deadline_ms <= now_ms
            and run.change is None
        ]
        return self._release(late, limits)

    def _release(self, runs: list[Run], limits: ShareLimits) -> Change | None:
        for run in runs:
            run.target = _outcome(AcknowledgeType.RELEASE, run.count, limits)
        return self._change(runs)

    # --- dead letters ---------------------------------------------------------------------------

    def archiving(self) -> list[Acquired]:
        """The rejected records that are not in the dead letter topic yet."""
        return [
            Acquired(run.first, run.last, run.count)
            for run in self.runs.items
            if run.state is RecordState.ARCHIVING and run.change is None
        ]

    def archive(self, first: int, last: int) -> Change | None:
        """Archive the records whose dead letters are written."""
        first = max(first, self.start_offset)
        if first > last or last >= self.next_offset:
            return None
        gone = [
            run
            for run in self.runs.cut(first, last)
            if run.state is RecordState.ARCHIVING and run.change is None
        ]
        for run in gone:
            run.target = RecordState.ARCHIVED
        return self._change(gone)

    # --- changes --------------------------------------------------------------------------------

    def _change(self, runs: list[Run]) -> Change | None:
        """The change for the persister: the new start, and the open records behind it."""
        if not runs:
            return None
        change = Change(runs)
        for run in runs:
            run.change = change
        start = self.start_offset
        for run in self.runs.items:
            if not (run.is_done or (run.change is change and run.target.is_terminal)):
                break
            start = run.last + 1
        done = sum(len(run) for run in runs if run.target.is_terminal)
        change.start_offset = start
        change.delivery_complete_count = self.runs.done_count + done - (start - self.start_offset)
        change.batches = _batches(runs, start)
        return change

    def apply(self, change: Change) -> list[Acquired]:
        """Apply a written change; return the records for the dead letter topic."""
        letters = []
        for run in change.runs:
            target = run.target
            if run.last >= self.start_offset and target is RecordState.ARCHIVING:
                letters.append(Acquired(run.first, run.last, run.count))
            self.runs.settle(run, target)
            self._may_be_free |= target is RecordState.AVAILABLE
        self.runs.advance()
        return letters

    def roll_back(self, change: Change) -> None:
        """Undo a change that was not written: the records keep their owners and locks."""
        for run in change.runs:
            run.change = None
            run.target = run.state

    def drop_before(self, log_start_offset: int) -> None:
        """Move the start after deleted records; it is written with the next change."""
        self.runs.drop_before(log_start_offset)


def _steps(said: Acknowledgement, first: int) -> Iterable[tuple[int, int, AcknowledgeType]]:
    """Runs of equal types of single offsets, without offsets before `first`."""
    if len(said.types) == 1:
        yield first, said.last, AcknowledgeType(said.types[0])
        return
    begin = first
    types = said.types
    for offset in range(first, said.last + 1):
        kind = types[offset - said.first]
        if offset == said.last or types[offset - said.first + 1] != kind:
            yield begin, offset, AcknowledgeType(kind)
            begin = offset + 1


def _outcome(kind: AcknowledgeType, count: int, limits: ShareLimits) -> RecordState:
    if kind is AcknowledgeType.ACCEPT:
        return RecordState.ACKNOWLEDGED
    if kind is AcknowledgeType.GAP:
        return RecordState.ARCHIVED
    if kind is AcknowledgeType.RELEASE and count < limits.delivery_count_limit:
        return RecordState.AVAILABLE
    return RecordState.ARCHIVING if limits.has_dead_letters else RecordState.ARCHIVED


def _batches(runs: Iterable[Run], start_offset: int) -> list[StateBatch]:
    """Return the runs as they are written, with equal neighbours merged."""
    written: list[StateBatch] = []
    for run in runs:
        if run.last < start_offset:
            continue
        state, count = int(run.target), run.count
        last = written[-1] if written else None
        if (
            last is not None
            and last.last_offset + 1 == run.first
            and last.delivery_state == state
            and last.delivery_count == count
        ):
            written[-1] = StateBatch(last.first_offset, run.last, state, count)
        else:
            written.append(StateBatch(run.first, run.last, state, count))
    return written
