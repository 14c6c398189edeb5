"""Share partitions under any sequence of steps: every record is settled once, and held by one."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.errors import InvalidRecordState, InvalidRequest
from headrace.protocol.acknowledge_types import AcknowledgeType
from headrace.shares.partition import Acknowledgement, Acquired, SharePartition
from headrace.shares.runs import Change, RecordState
from headrace.shares.selection import Pick, ShareLimits, Span
from headrace.shares.state import SharePartitionState, StateBatch

MEMBERS = ("ada", "bob", "eve")
LOCK_MS = 1_000


class Sharing(RuleBasedStateMachine):
    """Members, a log that grows and shrinks, a persister that may fail, leaders that change."""

    def __init__(self) -> None:
        super().__init__()
        self.partition = SharePartition(0)
        self.limits = ShareLimits(4, 40, LOCK_MS, True, False)
        self.log: list[Span] = []
        self.log_end = 0
        self.log_start = 0
        self.now_ms = 0
        self.held: dict[int, str] = {}
        self.times: Counter[int] = Counter()
        self.settled: dict[int, str] = {}
        self.skipped: set[int] = set()
        self.written: dict[int, StateBatch] = {}
        self.written_start = 0
        self.letters: list[Acquired] = []

    # --- the outside world ----------------------------------------------------------------------

    @rule(size=st.integers(1, 12), hole=st.integers(0, 2), is_skipped=st.booleans())
    def grow(self, size: int, hole: int, is_skipped: bool) -> None:
        first = self.log_end + (hole if size % 3 == 0 else 0)
        skipped = is_skipped and size % 4 == 0
        self.log.append(Span(first, first + size - 1, skipped))
        self.skipped.update(range(self.log_end, first))
        if skipped:
            self.skipped.update(range(first, first + size))
        self.log_end = first + size

    @rule(share=st.floats(0, 1))
    def shrink(self, share: float) -> None:
        self.log_start += int((self.partition.next_offset - self.log_start) * share / 2)
        self.partition.drop_before(self.log_start)
        for offset in [offset for offset in self.held if offset < self.log_start]:
            del self.held[offset]

    @rule(limit=st.integers(2, 6), dead_letters=st.booleans())
    def configure(self, limit: int, dead_letters: bool) -> None:
        self.limits = ShareLimits(limit, 40, LOCK_MS, True, dead_letters)

    # --- members --------------------------------------------------------------------------------

    @rule(
        member=st.sampled_from(MEMBERS),
        most=st.integers(0, 20),
        batch_size=st.integers(1, 10),
        is_strict=st.booleans(),
    )
    def acquire(self, member: str, most: int, batch_size: int, is_strict: bool) -> None:
        offset = self.partition.fetch_offset()
        before = len(self.partition.runs)
        spans = [span for span in self.log if span.last >= offset]
        pick = Pick(member, most, batch_size, is_strict)
        acquired = self.partition.acquire(pick, offset, spans, self.limits, self.now_ms)
        given = [offset for one in acquired for offset in range(one.first, one.last + 1)]
        assert len(given) <= most if is_strict else len(given) <= most + 12
        assert not most or len(given) - before <= self.limits.record_locks_max + 12
        for one in acquired:
            for offset in range(one.first, one.last + 1):
                assert offset not in self.held, "held by two"
                assert offset not in self.settled, "given out after its end"
                assert offset not in self.skipped, "not for consumers"
                assert offset >= self.log_start
                self.held[offset] = member
                assert one.delivery_count >= 1

    @rule(
        member=st.sampled_from(MEMBERS),
        kinds=st.lists(st.sampled_from(AcknowledgeType), min_size=1, max_size=30),
        is_written=st.booleans(),
        skip=st.integers(0, 5),
    )
    def acknowledge(
        self, member: str, kinds: list[AcknowledgeType], is_written: bool, skip: int
    ) -> None:
        mine = sorted(offset for offset, owner in self.held.items() if owner == member)[skip:]
        said = list(zip(mine, kinds, strict=False))
        batches = [Acknowledgement(offset, offset, [kind]) for offset, kind in said]
        change = self.partition.acknowledge(member, batches, self.limits, self.now_ms)
        self.apply(change, is_written=is_written)
        if not is_written:
            return
        for offset, kind in said:
            if kind is not AcknowledgeType.RENEW:
                del self.held[offset]
            if kind is AcknowledgeType.ACCEPT:
                self.settle(offset, "accepted")

    @rule(member=st.sampled_from(MEMBERS), is_written=st.booleans())
    def acknowledge_a_row(self, member: str, is_written: bool) -> None:
        mine = sorted(offset for offset, owner in self.held.items() if owner == member)
        row = [offset for index, offset in enumerate(mine) if offset == mine[0] + index]
        if not row:
            return
        types = [1 + offset % 3 for offset in row]
        batch = Acknowledgement(row[0], row[-1], types)
        change = self.partition.acknowledge(member, [batch], self.limits, self.now_ms)
        self.apply(change, is_written=is_written)
        if is_written:
            for offset, kind in zip(row, types, strict=True):
                del self.held[offset]
                if kind == AcknowledgeType.ACCEPT:
                    self.settle(offset, "accepted")

    @rule(member=st.sampled_from(MEMBERS), first=st.integers(0, 60), size=st.integers(0, 5))
    def acknowledge_what_is_not_held(self, member: str, first: int, size: int) -> None:
        offsets = range(max(first, self.partition.start_offset), first + size + 1)
        if not offsets or all(self.held.get(offset) == member for offset in offsets):
            return
        before = repr(self.partition.runs.items)
        try:
            self.partition.acknowledge(
                member, [Acknowledgement(first, first + size, [1])], self.limits, self.now_ms
            )
        except (InvalidRecordState, InvalidRequest):
            assert repr(self.partition.runs.items) == before, "a refusal changes nothing"
        else:
            raise AssertionError("it was not refused")

    @rule(member=st.sampled_from(MEMBERS), is_written=st.booleans())
    def leave(self, member: str, is_written: bool) -> None:
        self.apply(self.partition.release(member, self.limits), is_written=is_written)
        if is_written:
            self.held = {offset: who for offset, who in self.held.items() if who != member}

    @rule(ms=st.integers(1, LOCK_MS))
    def wait(self, ms: int) -> None:
        self.now_ms += ms
        change = self.partition.expire(self.now_ms, self.limits)
        if change is not None:
            for run in change.runs:
                for offset in range(run.first, run.last + 1):
                    assert self.held.pop(offset), "only what is held expires"
        self.apply(change, is_written=True)

    @rule()
    def deliver_letters(self) -> None:
        for letter in self.letters:
            self.apply(self.partition.archive(letter.first, letter.last), is_written=True)
        self.letters.clear()

    @rule()
    def crash(self) -> None:
        """A new leader has the written state only."""
        batches = {
            StateBatch(offset, offset, one.delivery_state, one.delivery_count)
            for offset, one in self.written.items()
            if offset >= self.written_start
        }
        state = SharePartitionState(batches=tuple(sorted(batches)))
        self.partition = SharePartition.load(state, self.written_start)
        self.partition.drop_before(self.log_start)
        self.held.clear()
        self.letters = self.partition.archiving()

    # --- helpers --------------------------------------------------------------------------------

    def settle(self, offset: int, how: str) -> None:
        assert offset not in self.settled, f"{offset} was {self.settled.get(offset)} before"
        self.settled[offset] = how

    def apply(self, change: Change | None, *, is_written: bool) -> None:
        if change is None:
            return
        if not is_written:
            self.partition.roll_back(change)
            return
        self.written_start = max(self.written_start, change.start_offset)
        for batch in change.batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                self.written[offset] = batch
        for run in change.runs:
            if run.target is RecordState.ARCHIVED:
                for offset in range(run.first, run.last + 1):
                    self.settle(offset, "archived")
        self.letters += self.partition.apply(change)

    # --- what holds at all times ----------------------------------------------------------------

    @invariant()
    def runs_leave_no_gap(self) -> None:
        runs = self.partition.runs
        at = runs.start_offset
        for run in runs.items:
            assert run.first == at <= run.last
            at = run.last + 1
        assert at == runs.next_offset

    @invariant()
    def what_is_held_is_acquired(self) -> None:
        acquired = {
            offset: run.member_id
            for run in self.partition.runs.items
            if run.state is RecordState.ACQUIRED
            for offset in range(run.first, run.last + 1)
        }
        assert acquired == self.held

    @invariant()
    def done_records_are_counted(self) -> None:
        runs = self.partition.runs
        assert runs.done_count == sum(len(run) for run in runs.items if run.is_done)

    @invariant()
    def nothing_lives_before_the_start_or_at_it_if_done(self) -> None:
        runs = self.partition.runs
        assert all(offset >= runs.start_offset for offset in self.held)
        assert not runs.items or not runs.items[0].is_done

    @invariant()
    def deliveries_have_a_limit(self) -> None:
        assert all(run.count <= 6 for run in self.partition.runs.items)

    def teardown(self) -> None:
        """Every record can still be settled after any steps."""
        self.limits = ShareLimits(4, 40, LOCK_MS, True, False)
        for member in MEMBERS:
            self.leave(member, True)
        self.deliver_letters()
        for _ in range(1_000):
            offset = self.partition.fetch_offset()
            spans = [span for span in self.log if span.last >= offset]
            if not spans:
                break
            pick = Pick("ada", 500, 500)
            for one in self.partition.acquire(pick, offset, spans, self.limits, self.now_ms):
                batch = Acknowledgement(one.first, one.last, [1])
                change = self.partition.acknowledge("ada", [batch], self.limits, self.now_ms)
                self.apply(change, is_written=True)
                for offset in range(one.first, one.last + 1):
                    self.settle(offset, "accepted")
        assert self.partition.start_offset >= self.log_end or not self.log


TestSharing = Sharing.TestCase
TestSharing.settings = settings(stateful_step_count=40, deadline=None)
