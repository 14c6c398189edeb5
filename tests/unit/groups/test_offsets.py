"""Committed offsets: who may commit, what is kept, what is forgotten, and in which bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.coordination.effects import Producer
from headrace.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    NonEmptyGroup,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    UnknownMemberId,
)
from headrace.groups.offset_records import (
    CommittedOffset,
    OffsetKey,
    decode_offset_key,
    decode_offset_value,
    offset_record,
)
from headrace.groups.offsets import commit, delete, delete_group, offsets_to_fetch
from headrace.groups.shard import TYPES
from headrace.protocol.codec import DecodeError
from headrace.protocol.coordinator_records import decode_key, decode_value, encode_value
from headrace.protocol.schemas.records.groups import OffsetCommitKey, OffsetCommitValue
from headrace.protocol.uuids import ZERO
from headrace.settings.broker import BrokerSettings
from tests.builders.classic_groups import GROUP, ShardInMemory

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def shard() -> ShardInMemory:
    return ShardInMemory()


def test_members_commit_in_their_generation(shard: ShardInMemory) -> None:
    """CON-6."""
    joined = shard.stable_group(1)
    assert shard.commit(42, member_id=joined[0].member_id, generation=1) == 0
    assert shard.committed() == 42


@pytest.mark.parametrize(
    ("member", "generation", "code"),
    [
        ("ghost", 1, UnknownMemberId.code),
        (None, 0, IllegalGeneration.code),
        ("", -1, UnknownMemberId.code),
    ],
)
def test_only_members_commit_for_a_group_with_members(
    shard: ShardInMemory, member: str | None, generation: int, code: int
) -> None:
    joined = shard.stable_group(1)
    member_id = joined[0].member_id if member is None else member
    assert shard.commit(42, member_id=member_id, generation=generation) == code
    assert shard.committed() is None


def test_a_client_without_membership_commits_freely(shard: ShardInMemory) -> None:
    assert shard.commit(1) == 0
    assert shard.group.state_name == "Empty"
    assert shard.commit(2) == 0
    assert shard.committed() == 2


@pytest.mark.parametrize(("version", "code"), [(8, 22), (9, GroupIdNotFound.code)])
def test_a_commit_with_a_generation_of_an_unknown_group_is_rejected(
    shard: ShardInMemory, version: int, code: int
) -> None:
    assert shard.commit(1, member_id="ghost", generation=3, version=version) == code


def test_commits_between_join_and_sync_are_rejected(shard: ShardInMemory) -> None:
    ticket = shard.new_member()
    shard.pass_time(3000)
    code = shard.commit(1, member_id=ticket.answer.member_id, generation=1)
    assert code == RebalanceInProgress.code


def test_metadata_has_a_limit(shard: ShardInMemory) -> None:
    assert shard.commit(1, metadata="x" * 4096) == 0
    assert shard.commit(2, metadata="x" * 4097) == OffsetMetadataTooLarge.code
    assert shard.committed() == 1


def test_offsets_survive_a_restart(shard: ShardInMemory) -> None:
    """CON-12."""
    shard.commit(7, metadata="here", partition=3)
    shard.reload()
    found = offsets_to_fetch(shard.state, GROUP, None, -1)["orders"][3]
    assert (found.offset, found.metadata) == (7, "here")


# Transactions.


def transactional(shard: ShardInMemory, offset: int, producer_id: int = 9) -> None:
    shard.apply(
        commit(
            shard.state,
            GROUP,
            [("orders", ZERO, 0, offset, -1, None)],
            shard.now_ms,
            producer=Producer(producer_id, 0),
        )
    )


def test_an_offset_of_a_transaction_counts_when_it_commits(shard: ShardInMemory) -> None:
    """DEL-4."""
    transactional(shard, 5)
    assert shard.committed() is None
    assert shard.state.offsets.is_pending(OffsetKey(GROUP, "orders", 0))
    shard.state.end_transaction(9, 0, committed=True)
    assert shard.committed() == 5
    assert not shard.state.offsets.has_pending(GROUP)


def test_an_offset_of_an_aborted_transaction_never_counts(shard: ShardInMemory) -> None:
    shard.commit(3)
    transactional(shard, 5)
    shard.state.end_transaction(9, 0, committed=False)
    assert shard.committed() == 3


def test_the_later_record_counts(shard: ShardInMemory) -> None:
    transactional(shard, 5)
    shard.commit(8)
    shard.state.end_transaction(9, 0, committed=True)
    assert shard.committed() == 8


# Deleting and expiring.


def test_offsets_of_a_topic_that_is_read_stay(shard: ShardInMemory) -> None:
    joined = shard.stable_group(1)
    member_id = joined[0].member_id
    shard.commit(1, member_id=member_id, generation=1)
    shard.commit(1, member_id=member_id, generation=1, topic="bills")
    effects = delete(shard.state, GROUP, [("orders", 0), ("bills", 0), ("bills", 9)])
    assert shard.apply(effects) == [GroupSubscribedToTopic.code, 0, 0]
    assert (shard.committed(), shard.committed("bills")) == (1, None)


def test_offsets_of_other_groups_with_members_stay(shard: ShardInMemory) -> None:
    shard.stable_group(1, protocol_type="connect")
    with pytest.raises(NonEmptyGroup):
        delete(shard.state, GROUP, [("orders", 0)])


def test_a_group_with_members_is_not_deleted(shard: ShardInMemory) -> None:
    """CON-13."""
    joined = shard.stable_group(1)
    shard.commit(1, member_id=joined[0].member_id, generation=1)
    with pytest.raises(NonEmptyGroup):
        delete_group(shard.state, GROUP)
    shard.leave(joined[0].member_id)
    shard.apply(delete_group(shard.state, GROUP))
    assert GROUP not in shard.state.groups
    assert shard.committed() is None
    with pytest.raises(GroupIdNotFound):
        delete_group(shard.state, GROUP)
    shard.reload()
    assert GROUP not in shard.state.groups


def test_offsets_of_a_group_without_members_expire(shard: ShardInMemory) -> None:
    """CON-14: offsets.retention.minutes counts from when the last member left."""
    joined = shard.stable_group(1, session_ms=1_800_000)
    shard.apply(shard.state.on_loaded(shard.now_ms))
    member_id = joined[0].member_id
    shard.commit(1, member_id=member_id, generation=1)
    for _ in range(8 * 96):
        shard.pass_time(DAY_MS // 96)
        assert shard.heartbeat(member_id, 1) == 0
    assert shard.committed() == 1
    shard.leave(member_id)
    shard.pass_time(6 * DAY_MS)
    assert shard.committed() == 1
    shard.pass_time(DAY_MS + 600_000)
    assert shard.committed() is None
    shard.pass_time(600_000)
    assert GROUP not in shard.state.groups


def test_offsets_of_a_client_without_a_group_expire() -> None:
    shard = ShardInMemory(BrokerSettings(offsets_retention_minutes=1))
    shard.apply(shard.state.on_loaded(shard.now_ms))
    shard.commit(1)
    shard.commit(1, partition=1)
    shard.pass_time(599_000)
    shard.commit(2)
    shard.pass_time(1000)
    assert (shard.committed(), shard.committed(partition=1)) == (2, None)
    shard.pass_time(600_000)
    assert GROUP not in shard.state.groups


def test_the_offsets_of_an_open_transaction_do_not_expire() -> None:
    shard = ShardInMemory(BrokerSettings(offsets_retention_minutes=1))
    shard.apply(shard.state.on_loaded(shard.now_ms))
    shard.commit(1)
    transactional(shard, 5)
    shard.pass_time(3_600_000)
    assert shard.committed() == 1


def test_many_expired_offsets_take_several_batches() -> None:
    shard = ShardInMemory(BrokerSettings(offsets_retention_minutes=1))
    shard.apply(shard.state.on_loaded(shard.now_ms))
    for number in range(2500):
        shard.commit(1, partition=number)
    before = len(shard.log)
    shard.pass_time(601_000)
    assert not shard.state.offsets.by_group
    assert len(shard.log) - before == 2501
    assert GROUP not in shard.state.groups


def test_offsets_of_a_deleted_topic_are_forgotten(shard: ShardInMemory) -> None:
    """CON-14: a new topic of that name starts without offsets."""
    shard.commit(1)
    shard.commit(1, topic="bills")
    transactional(shard, 5)
    for effects in shard.state.on_topics_deleted({"orders"}):
        shard.apply(effects)
    assert (shard.committed(), shard.committed("bills")) == (None, 1)
    shard.state.end_transaction(9, 0, committed=True)
    assert shard.committed() is None


# Bytes.

keys = st.builds(OffsetKey, st.text(max_size=9), st.text(max_size=9), st.integers(0, 1 << 30))
values = st.builds(
    CommittedOffset,
    st.integers(-1, 1 << 60),
    st.integers(-1, 1 << 30),
    st.text(max_size=300) | st.just(""),
    st.integers(0, 1 << 50),
    st.just(-1),
    st.binary(min_size=16, max_size=16) | st.just(ZERO),
)


@given(keys, values)
def test_hand_written_records_agree_with_the_codec(key: OffsetKey, value: CommittedOffset) -> None:
    record = offset_record(key, value)
    assert record.value is not None
    assert decode_key(TYPES, record.key) == OffsetCommitKey(*key)
    codec_value = OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_ms,
        topic_id=value.topic_id,
    )
    assert decode_value(TYPES, OffsetCommitKey(*key), record.value) == codec_value
    assert encode_value(codec_value, 4) == record.value
    assert decode_offset_key(record.key) == key
    assert decode_offset_value(record.value) == value


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_value_is_read(version: int) -> None:
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7)
    read = decode_offset_value(encode_value(value, version))
    assert (read.offset, read.metadata, read.commit_ms) == (5, "m", 7)


@given(st.binary(max_size=40))
def test_broken_records_are_refused_and_nothing_else(data: bytes) -> None:
    for decode in (decode_offset_key, decode_offset_value):
        try:
            decode(data)
        except DecodeError:
            continue
