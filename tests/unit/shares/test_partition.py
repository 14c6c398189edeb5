"""One share partition, step by step."""

from collections.abc import Iterable, Iterator

import pytest

from headrace.errors import InvalidRecordState, InvalidRequest
from headrace.protocol.acknowledge_types import AcknowledgeType
from headrace.shares.partition import Acknowledgement, Acquired, SharePartition
from headrace.shares.runs import Change, RecordState
from headrace.shares.selection import Pick, ShareLimits, Span
from headrace.shares.state import SharePartitionState, StateBatch

LIMITS = ShareLimits(delivery_count_limit=5, record_locks_max=200, lock_duration_ms=1_000)
GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
TEN = (Span(0, 9),)
AVAILABLE, ARCHIVING = int(RecordState.AVAILABLE), int(RecordState.ARCHIVING)
ACKNOWLEDGED, ARCHIVED = int(RecordState.ACKNOWLEDGED), int(RecordState.ARCHIVED)


def take(
    partition: SharePartition,
    spans: Iterable[Span] = TEN,
    *,
    member: str = "ada",
    most: int = 500,
    batch_size: int = 500,
    strict: bool = False,
    limits: ShareLimits = LIMITS,
    now_ms: int = 0,
) -> list[Acquired]:
    pick = Pick(member, most, batch_size, strict)
    return partition.acquire(pick, partition.fetch_offset(), spans, limits, now_ms)


def say(
    partition: SharePartition,
    *said: tuple[int, int, AcknowledgeType],
    member: str = "ada",
    limits: ShareLimits = LIMITS,
) -> Change:
    change = decide(partition, *said, member=member, limits=limits)
    assert change is not None
    partition.apply(change)
    return change


def decide(
    partition: SharePartition,
    *said: tuple[int, int, AcknowledgeType],
    member: str = "ada",
    limits: ShareLimits = LIMITS,
) -> Change | None:
    batches = [Acknowledgement(first, last, [kind]) for first, last, kind in said]
    return partition.acknowledge(member, batches, limits, 0)


def fates(partition: SharePartition) -> list[tuple[int, int, str]]:
    return [(run.first, run.last, run.state.name) for run in partition.runs.items]


# --- acquiring ------------------------------------------------------------------------------------


def test_a_batch_is_given_whole() -> None:
    partition = SharePartition(0)
    assert take(partition, most=3) == [Acquired(0, 9, 1)]
    assert partition.next_offset == 10


def test_a_strict_limit_cuts_a_batch() -> None:
    partition = SharePartition(0)
    assert take(partition, most=3, strict=True) == [Acquired(0, 2, 1)]
    assert take(partition, most=3, strict=True) == [Acquired(3, 5, 1)]


def test_batches_join_up_to_the_batch_size() -> None:
    spans = [Span(0, 3), Span(4, 7), Span(8, 11)]
    assert take(SharePartition(0), spans, batch_size=5) == [Acquired(0, 7, 1), Acquired(8, 11, 1)]


def test_only_needed_batches_are_read() -> None:
    looked_at = []

    def batches() -> Iterator[Span]:
        for span in (Span(0, 4), Span(5, 9), Span(10, 14)):
            looked_at.append(span)
            yield span

    assert take(SharePartition(0), batches(), most=6) == [Acquired(0, 9, 1)]
    assert len(looked_at) == 2


def test_a_fetch_may_begin_inside_a_batch() -> None:
    assert take(SharePartition(4)) == [Acquired(4, 9, 1)]


def test_skipped_batches_and_holes_are_archived_on_the_way() -> None:
    partition = SharePartition(0)
    spans = [Span(2, 4), Span(5, 5, is_skipped=True), Span(8, 9)]
    assert take(partition, spans) == [Acquired(2, 4, 1), Acquired(8, 9, 1)]
    assert partition.start_offset == 2
    assert fates(partition) == [(2, 4, "ACQUIRED"), (5, 7, "ARCHIVED"), (8, 9, "ACQUIRED")]


def test_the_start_moves_past_skipped_records() -> None:
    partition = SharePartition(0)
    assert take(partition, [Span(0, 9, is_skipped=True)]) == []
    assert (partition.start_offset, partition.fetch_offset()) == (10, 10)


def test_the_number_of_acquired_records_is_limited() -> None:
    limits = ShareLimits(record_locks_max=10)
    partition = SharePartition(0)
    spans = [Span(0, 7), Span(8, 15), Span(16, 23)]
    assert take(partition, spans, limits=limits) == [Acquired(0, 15, 1)]
    assert not partition.can_acquire(limits)
    assert take(partition, spans[2:], limits=limits) == []


def test_released_records_are_acquired_beyond_the_lock_limit() -> None:
    limits = ShareLimits(record_locks_max=10)
    partition = SharePartition(0)
    take(partition, limits=limits)
    say(partition, (5, 6, RELEASE))
    assert partition.can_acquire(limits)
    assert take(partition, [Span(0, 9), Span(10, 19)], limits=limits) == [Acquired(5, 6, 2)]


def test_released_records_come_first_followed_by_new_ones() -> None:
    partition = SharePartition(0)
    take(partition)
    say(partition, (3, 4, RELEASE))
    assert partition.fetch_offset() == 3
    spans = [Span(0, 9), Span(10, 12)]
    assert take(partition, spans, member="bob") == [Acquired(3, 4, 2), Acquired(10, 12, 1)]


def test_released_records_removed_by_compaction_are_archived() -> None:
    partition = SharePartition(0)
    take(partition)
    say(partition, (0, 9, RELEASE))
    assert take(partition, [Span(7, 9)]) == [Acquired(7, 9, 2)]
    assert partition.start_offset == 7


def test_a_record_that_failed_often_is_given_in_halves_and_at_last_alone() -> None:
    limits = ShareLimits(delivery_count_limit=4)
    partition = SharePartition(0)
    seen = []
    for _ in range(4):
        given = take(partition, limits=limits)
        seen += given
        for first, last, _count in given:
            say(partition, (first, last, RELEASE), limits=limits)
    expected = [Acquired(0, 9, 1), Acquired(0, 9, 2), Acquired(0, 4, 3), Acquired(0, 0, 4)]
    assert seen == expected


# --- acknowledging --------------------------------------------------------------------------------


def test_a_batch_accepted_at_the_front_only_moves_the_start() -> None:
    partition = SharePartition(0)
    take(partition)
    change = say(partition, (0, 9, ACCEPT))
    assert (change.start_offset, change.delivery_complete_count, change.batches) == (10, 0, [])
    assert (partition.start_offset, fates(partition)) == (10, [])


def test_records_settled_behind_open_ones_are_written() -> None:
    partition = SharePartition(0)
    take(partition)
    change = say(partition, (4, 6, ACCEPT), (7, 7, REJECT))
    assert (change.start_offset, change.delivery_complete_count) == (0, 4)
    assert change.batches == [StateBatch(4, 6, ACKNOWLEDGED, 1), StateBatch(7, 7, ARCHIVED, 1)]
    change = say(partition, (0, 3, ACCEPT))
    assert (change.start_offset, change.delivery_complete_count) == (8, 0)


def test_types_may_be_given_for_each_offset() -> None:
    partition = SharePartition(0)
    take(partition)
    types = [ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP, ACCEPT, RELEASE, ACCEPT, ACCEPT]
    change = partition.acknowledge("ada", [Acknowledgement(0, 9, types)], LIMITS, 0)
    assert change is not None
    partition.apply(change)
    assert fates(partition) == [
        (2, 3, "AVAILABLE"),
        (4, 4, "ARCHIVED"),
        (5, 5, "ARCHIVED"),
        (6, 6, "ACKNOWLEDGED"),
        (7, 7, "AVAILABLE"),
        (8, 9, "ACKNOWLEDGED"),
    ]


def test_a_change_takes_effect_when_it_is_written() -> None:
    partition = SharePartition(0)
    take(partition)
    change = decide(partition, (0, 9, RELEASE))
    assert change is not None
    assert take(partition, member="bob") == []
    with pytest.raises(InvalidRecordState):
        decide(partition, (0, 9, ACCEPT))
    partition.roll_back(change)
    say(partition, (0, 9, ACCEPT))
    assert partition.start_offset == 10


def test_a_renewal_moves_the_lock_and_writes_nothing() -> None:
    partition = SharePartition(0)
    take(partition)
    said = [Acknowledgement(0, 4, [RENEW])]
    assert partition.acknowledge("ada", said, LIMITS, now_ms=500) is None
    change = partition.expire(1_000, LIMITS)
    assert change is not None
    partition.apply(change)
    assert fates(partition) == [(0, 4, "ACQUIRED"), (5, 9, "AVAILABLE")]


def test_a_group_may_forbid_renewals() -> None:
    partition = SharePartition(0)
    take(partition)
    with pytest.raises(InvalidRecordState, match="renewed"):
        decide(partition, (0, 9, RENEW), limits=ShareLimits(can_renew=False))


def test_others_records_cannot_be_acknowledged() -> None:
    partition = SharePartition(0)
    take(partition)
    with pytest.raises(InvalidRecordState, match="another member"):
        decide(partition, (0, 9, ACCEPT), member="bob")


@pytest.mark.parametrize(("first", "last"), [(0, 10), (10, 12), (5, 90)])
def test_records_that_were_not_acquired_cannot_be_acknowledged(first: int, last: int) -> None:
    partition = SharePartition(0)
    take(partition)
    with pytest.raises(InvalidRequest):
        decide(partition, (first, last, ACCEPT))


def test_acknowledging_with_nothing_in_flight_is_an_invalid_state() -> None:
    with pytest.raises(InvalidRecordState):
        decide(SharePartition(0), (0, 0, ACCEPT))


def test_one_invalid_range_refuses_the_whole_request() -> None:
    partition = SharePartition(0)
    take(partition)
    say(partition, (7, 7, ACCEPT))
    with pytest.raises(InvalidRecordState):
        decide(partition, (0, 5, ACCEPT), (6, 8, ACCEPT))
    say(partition, (0, 6, ACCEPT))
    assert partition.start_offset == 8


# --- coming back ----------------------------------------------------------------------------------


def test_a_member_that_goes_gives_back_only_its_own() -> None:
    partition = SharePartition(0)
    take(partition)
    take(partition, [Span(10, 14)], member="bob")
    change = partition.release("ada", LIMITS)
    assert change is not None
    assert change.batches == [StateBatch(0, 9, AVAILABLE, 1)]
    partition.apply(change)
    assert fates(partition) == [(0, 9, "AVAILABLE"), (10, 14, "ACQUIRED")]


def test_the_next_deadline_is_that_of_the_first_lock() -> None:
    partition = SharePartition(0)
    assert partition.next_deadline_ms() is None
    take(partition, now_ms=50)
    take(partition, [Span(10, 14)], now_ms=20)
    assert partition.next_deadline_ms() == 1_020


def test_after_the_last_delivery_a_record_is_archived() -> None:
    partition = SharePartition(0)
    limits = ShareLimits(delivery_count_limit=2)
    for _ in range(2):
        take(partition, [Span(0, 0)], limits=limits)
        say(partition, (0, 0, RELEASE), limits=limits)
    assert partition.start_offset == 1


def test_with_dead_letters_an_archived_record_waits_for_its_letter() -> None:
    partition = SharePartition(0)
    limits = ShareLimits(has_dead_letters=True)
    take(partition)
    change = decide(partition, (0, 1, REJECT), (2, 9, ACCEPT), limits=limits)
    assert change is not None
    assert change.batches[0] == StateBatch(0, 1, ARCHIVING, 1)
    assert partition.apply(change) == [Acquired(0, 1, 1)]
    assert partition.archiving() == [Acquired(0, 1, 1)]
    written = partition.archive(0, 1)
    assert written is not None
    partition.apply(written)
    assert partition.start_offset == 10


def test_records_before_the_log_start_are_dropped() -> None:
    partition = SharePartition(0)
    take(partition)
    partition.drop_before(4)
    assert partition.start_offset == 4
    say(partition, (0, 9, ACCEPT))
    assert partition.start_offset == 10
    partition.drop_before(25)
    assert (partition.start_offset, partition.next_offset) == (25, 25)


def test_a_change_under_way_survives_the_loss_of_its_records() -> None:
    partition = SharePartition(0)
    take(partition)
    change = decide(partition, (0, 9, RELEASE))
    assert change is not None
    partition.drop_before(4)
    partition.apply(change)
    assert fates(partition) == [(4, 9, "AVAILABLE")]


# --- loading --------------------------------------------------------------------------------------


def test_a_new_leader_delivers_unsettled_records() -> None:
    batches = (
        StateBatch(2, 3, ACKNOWLEDGED, 1),
        StateBatch(6, 6, AVAILABLE, 2),
        StateBatch(8, 9, ARCHIVED, 5),
    )
    partition = SharePartition.load(SharePartitionState(7, 3, 0, 4, batches), 0)
    assert partition.state_epoch == 7
    assert fates(partition) == [
        (0, 1, "AVAILABLE"),
        (2, 3, "ACKNOWLEDGED"),
        (4, 5, "AVAILABLE"),
        (6, 6, "AVAILABLE"),
        (7, 7, "AVAILABLE"),
        (8, 9, "ARCHIVED"),
    ]
    given = take(partition, [Span(0, 9), Span(10, 10)])
    assert given[0] == Acquired(0, 1, 1)


def test_the_start_moves_past_settled_records() -> None:
    batches = (StateBatch(0, 4, ACKNOWLEDGED, 1), StateBatch(5, 5, ARCHIVING, 1))
    partition = SharePartition.load(SharePartitionState(batches=batches), 0)
    assert partition.start_offset == 5
    assert partition.archiving() == [Acquired(5, 5, 1)]


def test_many_single_acknowledgements_leave_few_runs() -> None:
    partition = SharePartition(0)
    limits = ShareLimits(record_locks_max=2_000)
    take(partition, [Span(0, 999)], most=1_000, limits=limits)
    for offset in range(998, 0, -1):
        say(partition, (offset, offset, ACCEPT))
    assert len(partition.runs.items) <= 130
    assert partition.runs.done_count == 998
