"""Rules of the high watermark and of the ISR: examples, and a plain model of many steps."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.replication.in_sync_replicas import UNKNOWN_OFFSET, InSyncReplicas

LEADER, SECOND, THIRD = 1, 2, 3
LAG_MAX_MS = 100


def leading(*isr: int, epoch_start: int = 0, now_ms: int = 0) -> InSyncReplicas:
    return InSyncReplicas(
        LEADER, (LEADER, SECOND, THIRD), isr, epoch_start=epoch_start, now_ms=now_ms
    )


def test_the_slowest_in_sync_replica_sets_the_high_watermark() -> None:
    state = leading(LEADER, SECOND, THIRD)
    state.acknowledge(SECOND, 7, 10, 0)
    assert state.high_watermark(10, 1) == UNKNOWN_OFFSET
    state.acknowledge(THIRD, 9, 10, 0)
    assert state.high_watermark(10, 1) == 7


def test_replicas_outside_the_isr_do_not_hold_back_the_high_watermark() -> None:
    state = leading(LEADER, SECOND)
    state.acknowledge(SECOND, 10, 10, 0)
    assert state.high_watermark(10, 1) == 10


def test_a_replica_about_to_join_holds_back_the_high_watermark() -> None:
    state = leading(LEADER)
    state.acknowledge(SECOND, 8, 8, 0)
    assert state.high_watermark(10, 1) == 10
    state.find_joining(10, 0, LAG_MAX_MS, {SECOND})
    assert state.high_watermark(10, 1) == 8
    state.find_joining(10, LAG_MAX_MS + 1, LAG_MAX_MS, {SECOND})
    assert state.high_watermark(10, 1) == 10


def test_nothing_is_committed_below_the_min_isr() -> None:
    assert leading(LEADER).high_watermark(10, 2) == UNKNOWN_OFFSET


def test_the_min_isr_is_at_most_the_number_of_replicas() -> None:
    alone = InSyncReplicas(LEADER, (LEADER,), (LEADER,))
    assert alone.high_watermark(10, 3) == 10


def test_both_isrs_count_while_a_proposal_is_under_way() -> None:
    state = leading(LEADER, SECOND)
    state.acknowledge(SECOND, 10, 10, 0)
    state.acknowledge(THIRD, 4, 10, 0)
    state.propose({LEADER, THIRD})
    assert state.maximal == {LEADER, SECOND, THIRD}
    assert state.high_watermark(10, 1) == 4
    state.withdraw()
    assert state.high_watermark(10, 1) == 10


def test_the_answer_of_the_controller_ends_the_proposal() -> None:
    state = leading(LEADER, SECOND)
    state.propose({LEADER, SECOND, THIRD})
    assert state.commit((LEADER, SECOND, THIRD), partition_epoch=1)
    assert state.proposed is None
    assert state.committed == {LEADER, SECOND, THIRD}


def test_an_older_isr_is_not_taken() -> None:
    state = leading(LEADER, SECOND)
    state.commit((LEADER,), partition_epoch=5)
    assert not state.commit((LEADER, SECOND), partition_epoch=4)
    assert state.committed == {LEADER}


def test_a_follower_joins_with_all_committed_records_and_the_start_of_the_epoch() -> None:
    state = leading(LEADER, epoch_start=6)
    state.acknowledge(SECOND, 5, 10, 0)
    assert not state.may_join(SECOND, high_watermark=5)
    state.acknowledge(SECOND, 6, 10, 0)
    assert not state.may_join(SECOND, high_watermark=7)
    assert state.may_join(SECOND, high_watermark=6)
    state.propose({LEADER, SECOND})
    assert not state.may_join(THIRD, high_watermark=0)


def test_a_follower_lags_when_it_was_not_caught_up_for_too_long() -> None:
    state = leading(LEADER, SECOND, THIRD, now_ms=1000)
    state.acknowledge(SECOND, 10, 10, 1050)
    assert state.lagging(20, 1100, LAG_MAX_MS) == frozenset()
    assert state.lagging(20, 1101, LAG_MAX_MS) == {THIRD}
    assert state.lagging(20, 1151, LAG_MAX_MS) == {SECOND, THIRD}
    assert state.lagging(10, 1151, LAG_MAX_MS) == {THIRD}


def test_a_fetch_proves_that_the_follower_had_caught_up_at_the_fetch_before() -> None:
    state = leading(LEADER, SECOND)
    state.acknowledge(SECOND, 5, 10, 1000)
    state.acknowledge(SECOND, 10, 20, 1080)
    assert state.lagging(30, 1100, LAG_MAX_MS) == frozenset()
    assert state.lagging(30, 1101, LAG_MAX_MS) == {SECOND}


def test_only_eligible_followers_that_are_caught_up_are_joining() -> None:
    state = leading(LEADER)
    state.acknowledge(SECOND, 10, 10, 0)
    state.acknowledge(THIRD, 10, 10, 0)
    state.find_joining(10, 0, LAG_MAX_MS, {SECOND})
    assert state.joining == {SECOND}


def test_a_replica_that_has_joined_is_not_joining_any_more() -> None:
    state = leading(LEADER)
    state.acknowledge(SECOND, 10, 10, 0)
    state.find_joining(10, 0, LAG_MAX_MS, {SECOND})
    state.propose({LEADER, SECOND})
    assert state.joining == frozenset()


def test_an_idle_follower_is_caught_up_as_of_its_last_fetch() -> None:
    state = leading(LEADER, SECOND)
    state.acknowledge(SECOND, 10, 10, 1000)
    state.followers[SECOND].was_caught_up(1500)
    assert state.lagging(11, 1600, LAG_MAX_MS) == frozenset()
    assert state.lagging(11, 1601, LAG_MAX_MS) == {SECOND}


def test_the_low_watermark_is_the_earliest_start_of_a_live_replica() -> None:
    state = leading(LEADER, SECOND, THIRD)
    state.followers[SECOND].start_offset = 4
    assert state.low_watermark(6, live={LEADER, SECOND}) == 4
    assert state.low_watermark(6, live={LEADER}) == 6
    assert state.low_watermark(6, live={LEADER, SECOND, THIRD}) == UNKNOWN_OFFSET


def test_the_answer_ends_the_proposal_even_if_nothing_has_changed() -> None:
    state = leading(LEADER, SECOND)
    state.propose({LEADER, SECOND})
    assert state.accept((LEADER, SECOND), partition_epoch=0)
    assert state.proposed is None


def test_a_reassignment_keeps_the_progress_of_replicas_that_stay() -> None:
    state = leading(LEADER, SECOND)
    state.acknowledge(SECOND, 8, 10, 0)
    state.assign((LEADER, SECOND, 4))
    assert state.followers[SECOND].end_offset == 8
    assert state.followers.keys() == {SECOND, 4}


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("fetch"), st.sampled_from((SECOND, THIRD))),
        st.tuples(st.just("partial"), st.sampled_from((SECOND, THIRD))),
        st.tuples(st.just("propose"), st.frozensets(st.sampled_from((SECOND, THIRD)))),
        st.tuples(st.just("accept"), st.none()),
        st.tuples(st.just("accepted unseen"), st.none()),
        st.tuples(st.just("reject"), st.none()),
    ),
    max_size=60,
)


@given(steps=steps, min_isr=st.integers(1, 3))
def test_committed_records_are_on_every_member_of_the_controllers_isr(
    steps: list[tuple[str, object]], min_isr: int
) -> None:
    """The model is the controller's ISR, which may have changed before the leader learns of it."""
    state = leading(LEADER, SECOND, THIRD)
    real, epoch = frozenset({LEADER, SECOND, THIRD}), 0
    ends = {LEADER: 0, SECOND: 0, THIRD: 0}
    watermark = 0
    for step, value in steps:
        match step, value:
            case "append", int(count):
                ends[LEADER] += count
            case (("fetch" | "partial"), int(follower)):
                gap = ends[LEADER] - ends[follower]
                ends[follower] += gap if step == "fetch" else gap // 2
                state.acknowledge(follower, ends[follower], ends[LEADER], 0)
            case "propose", frozenset() as wanted:
                joining = wanted - state.committed
                may = all(state.may_join(one, watermark) for one in joining)
                if state.proposed is None and may:
                    state.propose(wanted)
            case (("accept" | "accepted unseen"), _) if state.proposed is not None:
                if real != state.proposed:
                    real, epoch = state.proposed, epoch + 1
                if step == "accept":
                    state.commit(real, epoch)
            case "reject", _ if state.proposed is not None and real == state.committed:
                state.withdraw()
            case _:
                pass
        offset = state.high_watermark(ends[LEADER], min_isr)
        if offset > watermark:
            assert len(state.committed) >= min_isr
            watermark = offset
        assert all(ends[member] >= watermark for member in real)
