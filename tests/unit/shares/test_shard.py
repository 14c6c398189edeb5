"""The share coordinator: states begun, read, written, fenced, and what a log gives back."""

import pytest

from headrace.errors import (
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
    UnknownTopicOrPartition,
)
from headrace.shares.state import SharePartitionKey, StateBatch
from tests.builders.metadata_images import topic_id
from tests.builders.share_coordinators import KEY, States

OTHER = SharePartitionKey("workers", topic_id("orders"), 1)
ACKNOWLEDGED = 2


def acknowledged(first: int, last: int, count: int = 1) -> StateBatch:
    return StateBatch(first, last, ACKNOWLEDGED, count)


def test_a_state_is_begun_read_and_written() -> None:
    states = States()
    states.initialize(start=-1)
    assert states.read(5).start_offset == -1
    states.write(acknowledged(10, 12), start=7)
    after = states.read(5)
    assert (after.start_offset, after.batches) == (7, (acknowledged(10, 12),))


def test_an_uninitialized_state_is_neither_read_nor_written() -> None:
    states = States()
    with pytest.raises(InvalidRequest, match="uninitialized"):
        states.read(1)
    with pytest.raises(InvalidRequest, match="uninitialized"):
        states.write(acknowledged(0, 1))


def test_a_late_write_does_not_move_the_start_back() -> None:
    """Two of a leader's writes in flight: the later decision is written first."""
    states = States()
    states.initialize()
    states.read(5)
    states.write(start=5)
    states.write(acknowledged(5, 9), start=0)
    assert states.read(5).start_offset == 5
    assert states.reloaded().held[KEY].state == states.shard.held[KEY].state


def test_initializing_again_may_move_the_start_back() -> None:
    states = States()
    states.initialize(start=50)
    states.initialize(epoch=2, start=10)
    assert states.read(5).start_offset == 10
    assert states.reloaded().held[KEY].state.start_offset == 10


@pytest.mark.parametrize(
    "batch", [StateBatch(0, 3, 9, 1), StateBatch(0, 3, -1, 1), StateBatch(3, 0, 2, 1)]
)
def test_unreadable_states_are_not_written(batch: StateBatch) -> None:
    states = States()
    states.initialize()
    with pytest.raises(InvalidRequest, match="delivery state"):
        states.write(batch)


def test_a_new_leader_locks_the_last_one_out() -> None:
    states = States()
    states.initialize()
    states.read(5)
    states.read(6)
    with pytest.raises(FencedLeaderEpoch):
        states.write(acknowledged(0, 1), leader_epoch=5)
    with pytest.raises(FencedLeaderEpoch):
        states.read(5)
    states.write(acknowledged(0, 1), leader_epoch=6)


def test_initializing_again_fences_writers_of_the_old_state() -> None:
    states = States()
    states.initialize(epoch=3)
    states.initialize(epoch=4, start=100)
    with pytest.raises(FencedStateEpoch):
        states.write(acknowledged(0, 1), state_epoch=3)
    with pytest.raises(FencedStateEpoch):
        states.initialize(epoch=3)
    assert states.read(5).start_offset == 100


def test_missing_partitions_have_no_state() -> None:
    states = States()
    for key in (KEY._replace(partition=2), KEY._replace(topic_id=topic_id("nothing"))):
        with pytest.raises(UnknownTopicOrPartition):
            states.initialize(key)
        with pytest.raises(UnknownTopicOrPartition):
            states.shard.summary(key)
    with pytest.raises(InvalidRequest):
        states.initialize(KEY._replace(partition=-1))


def test_the_log_gives_the_same_states_back() -> None:
    states = States(share_coordinator_snapshot_update_records_per_snapshot=3)
    states.initialize()
    states.initialize(OTHER)
    states.read(5)
    for offset in range(0, 20, 2):
        states.write(acknowledged(offset, offset), start=offset // 2)
    assert states.reloaded().held == states.shard.held


def test_a_snapshot_comes_after_some_updates() -> None:
    states = States(share_coordinator_snapshot_update_records_per_snapshot=2)
    states.initialize()
    for offset in range(6):
        states.write(acknowledged(offset, offset))
    snapshots = [states.is_snapshot(offset) for offset in range(len(states.log))]
    assert snapshots == [True, False, False, True, False, False, True]


def test_records_before_all_snapshots_may_be_deleted() -> None:
    states = States(share_coordinator_snapshot_update_records_per_snapshot=1)
    states.initialize()
    states.initialize(OTHER)
    assert states.shard.redundant_before == 0
    for offset in range(4):
        states.write(acknowledged(offset, offset))
    assert states.shard.redundant_before == 1
    for offset in range(4):
        states.write(acknowledged(offset, offset), key=OTHER)
    before = states.shard.redundant_before
    assert before == 5
    assert states.reloaded(before).held == states.shard.held


def test_a_deleted_state_is_gone_and_so_is_its_part_of_the_log() -> None:
    states = States()
    states.initialize()
    states.apply(states.shard.delete(KEY))
    states.apply(states.shard.delete(KEY))  # Is no error.
    assert not states.shard.held
    assert states.apply(states.shard.summary(KEY)).start_offset == -1
    assert states.shard.redundant_before == len(states.log) == 2


def test_states_of_deleted_topics_are_removed() -> None:
    states = States()
    states.initialize()
    for effects in states.shard.on_topics_deleted({KEY.topic_id}):
        states.apply(effects)
    assert not states.shard.held
    assert not states.reloaded().held


def test_an_idle_state_is_snapshotted_so_that_the_log_can_be_deleted() -> None:
    states = States()
    states.initialize()
    states.initialize(OTHER)
    states.now_ms += 300_000
    for offset in range(3):
        states.write(acknowledged(offset, offset))
    states.apply(states.shard.on_timer(("cold",), states.now_ms))
    assert states.shard.redundant_before == 5
    assert states.reloaded(5).held == states.shard.held
    states.apply(states.shard.on_timer(("cold",), states.now_ms + 300_000))
    assert len(states.log) == 7, "states that were just written need no snapshot"
