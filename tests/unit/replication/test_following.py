"""The fetch session with a leader names what has changed, and answers lead to the right steps."""

from typing import Any

import pytest

from headrace.errors import (
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    InconsistentTopicId,
    InvalidFetchSessionEpoch,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetMovedToTieredStorage,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicId,
)
from headrace.metadata.image import PartitionImage, TopicImage
from headrace.protocol.codec import encode
from headrace.protocol.schemas.fetch import EpochEndOffset, FetchRequest, PartitionData
from headrace.replication.following import (
    EARLIEST,
    FetchLimits,
    Followed,
    LeaderSession,
    Reset,
    Step,
    divergence,
    list_offsets,
    reset_by_end,
    reset_by_start,
)
from headrace.replication.metrics import TopicMetrics
from headrace.replication.partition import HostedTopic, Partition

NODE, LEADER = 1, 2
TOPIC_ID = bytes(range(16))
LIMITS = FetchLimits(replica_id=NODE, broker_epoch=77, metadata_version=25)


def topic(count: int) -> HostedTopic:
    image = PartitionImage(replicas=(LEADER, NODE), isr=(LEADER,), leader=LEADER, leader_epoch=4)
    hosted = HostedTopic(
        TopicImage("orders", TOPIC_ID, (image,) * count), NODE, TopicMetrics(), lambda _: None
    )
    hosted.partitions = [Partition(hosted, index, image) for index in range(count)]
    return hosted


def followed(session: LeaderSession, count: int = 1, offset: int = 10) -> list[Followed]:
    """Follow some partitions from an offset; the last epoch is 3."""
    found = []
    for partition in topic(count).partitions:
        assert partition is not None
        one = Followed(partition)
        one.reach(offset, 3, 0, 5)
        session.follow(one)
        found.append(one)
    return found


def asked(session: LeaderSession, now_ms: int = 0, limits: FetchLimits = LIMITS) -> FetchRequest:
    request = session.request(limits, now_ms)
    assert request is not None
    return request


def named(request: FetchRequest) -> list[int]:
    return [one.partition for topic in request.topics for one in topic.partitions]


def forgotten(request: FetchRequest) -> list[int]:
    return sorted(index for topic in request.forgotten_topics_data for index in topic.partitions)


def opened(session: LeaderSession, session_id: int = 9) -> None:
    asked(session)
    assert session.answered(session_id, 0)


def answer(index: int = 0, **fields: Any) -> PartitionData:
    return PartitionData(index, **fields)


# Requests


def test_the_first_request_opens_a_session_with_every_partition() -> None:
    session = LeaderSession()
    followed(session, 3)
    request = asked(session)
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [0, 1, 2])
    (one, *_) = request.topics[0].partitions
    assert (one.fetch_offset, one.current_leader_epoch, one.last_fetched_epoch) == (10, 4, 3)
    assert (one.log_start_offset, one.partition_max_bytes) == (0, 1 << 20)
    state = request.replica_state
    assert (state.replica_id, state.replica_epoch) == (NODE, 77)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10 << 20)


@pytest.mark.parametrize(
    ("metadata_version", "fetch", "offsets"),
    [
        (7, 13, 7),
        (9, 14, 8),
        (10, 15, 8),
        (19, 16, 8),
        (21, 17, 9),
        (25, 17, 10),
        (27, 18, 10),
        (29, 18, 11),
        (30, 18, 11),
    ],
)
def test_versions_follow_from_the_metadata_version(
    metadata_version: int, fetch: int, offsets: int
) -> None:
    limits = FetchLimits(replica_id=NODE, broker_epoch=77, metadata_version=metadata_version)
    assert (limits.fetch_version, limits.list_offsets_version) == (fetch, offsets)
    session = LeaderSession()
    one = followed(session)
    assert encode(asked(session, limits=limits), fetch)
    assert encode(list_offsets(one, EARLIEST, limits), offsets)


def test_partitions_without_news_are_not_named_again() -> None:
    session = LeaderSession()
    many = followed(session, 1000)
    opened(session)
    request = asked(session)
    assert (request.session_id, request.session_epoch, request.topics) == (9, 1, [])
    assert session.answered(9, 0)
    many[7].reach(20, 4, 0, 5)
    session.moved(many[7])
    many[8].reach(10, 3, 0, 9)
    session.moved(many[8])
    request = asked(session)
    assert (request.session_epoch, named(request)) == (2, [7])


def test_from_version_18_a_new_high_watermark_is_named() -> None:
    """Otherwise the leader would answer at once, for ever."""
    limits = FetchLimits(replica_id=NODE, broker_epoch=77, metadata_version=27)
    session = LeaderSession()
    (one,) = followed(session)
    assert asked(session, limits=limits).topics[0].partitions[0].high_watermark == 5
    session.answered(9, 0)
    one.reach(10, 3, 0, 9)
    session.moved(one)
    assert asked(session, limits=limits).topics[0].partitions[0].high_watermark == 9


def test_a_partition_that_is_not_followed_any_more_is_forgotten_once() -> None:
    session = LeaderSession()
    followed(session, 3)
    opened(session)
    session.stop((TOPIC_ID, 1))
    request = asked(session)
    assert (named(request), forgotten(request)) == ([], [1])
    session.answered(9, 0)
    assert forgotten(asked(session)) == []


def test_a_partition_with_a_new_leader_epoch_is_named_and_not_forgotten() -> None:
    session = LeaderSession()
    (one,) = followed(session)
    opened(session)
    session.stop(one.key)
    one.replica.leader_epoch = 5
    again = Followed(one.replica)
    again.reach(10, 3, 0, 5)
    session.follow(again)
    request = asked(session)
    assert (named(request), forgotten(request)) == ([0], [])
    assert request.topics[0].partitions[0].current_leader_epoch == 5


def test_a_session_that_follows_nothing_asks_nothing() -> None:
    session = LeaderSession()
    assert session.request(LIMITS, 0) is None
    (one,) = followed(session)
    opened(session)
    session.stop(one.key)
    assert session.request(LIMITS, 0) is None


def test_a_leader_without_room_for_a_session_gets_full_requests() -> None:
    session = LeaderSession()
    followed(session, 2)
    opened(session, session_id=0)
    request = asked(session)
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [0, 1])


@pytest.mark.parametrize(
    ("error", "session_id"), [(FetchSessionIdNotFound, 0), (InvalidFetchSessionEpoch, 9)]
)
def test_a_session_error_opens_a_full_session(error: type[KafkaError], session_id: int) -> None:
    session = LeaderSession()
    followed(session, 2)
    opened(session)
    asked(session)
    assert not session.answered(0, error.code)
    request = asked(session)
    assert (request.session_id, request.session_epoch, named(request)) == (session_id, 0, [0, 1])


def test_after_a_lost_connection_the_next_request_ends_the_session_and_opens_another() -> None:
    session = LeaderSession()
    followed(session, 2)
    opened(session)
    asked(session)
    session.lost()
    request = asked(session)
    assert (request.session_id, request.session_epoch, named(request)) == (9, 0, [0, 1])


def test_session_epochs_wrap_to_one() -> None:
    session = LeaderSession()
    followed(session)
    opened(session)
    session._epoch = (1 << 31) - 1
    asked(session)
    session.answered(9, 0)
    assert asked(session).session_epoch == 1


# Delays


def test_a_delayed_partition_leaves_the_session_until_it_is_due() -> None:
    session = LeaderSession()
    _, late = followed(session, 2)
    opened(session)
    session.back_off(late, 100, 1000)
    request = asked(session, 105)
    assert (named(request), forgotten(request), request.max_wait_ms) == ([], [1], 15)
    session.answered(9, 0)
    request = asked(session, 120)
    assert (named(request), request.max_wait_ms) == ([1], 500)


def test_delays_double_up_to_the_bound_and_begin_again_after_a_success() -> None:
    session = LeaderSession()
    (one,) = followed(session)
    found = []
    for _ in range(8):
        session.back_off(one, 0, 1000)
        found.append(session.due_ms)
    assert found == [20, 40, 80, 160, 320, 640, 1000, 1000]
    session.succeeded(one)
    session.back_off(one, 0, 1000)
    assert session.due_ms == 20


def test_a_partition_that_is_held_back_is_left_out_until_its_time() -> None:
    session = LeaderSession()
    first, second = followed(session, 2)
    opened(session)
    session.hold_back(first, 100)
    request = asked(session, 50)
    assert (named(request), forgotten(request)) == ([], [0])
    session.answered(9, 0)
    assert named(asked(session, 100)) == [0]
    assert (first.failures, second.failures) == (0, 0)


def test_with_every_partition_delayed_there_is_no_request() -> None:
    session = LeaderSession()
    (one,) = followed(session)
    session.back_off(one, 0, 1000)
    assert session.request(LIMITS, 19) is None
    assert session.request(LIMITS, 20) is not None


def test_a_delayed_partition_that_moves_waits_all_the_same() -> None:
    session = LeaderSession()
    (one,) = followed(session)
    session.back_off(one, 0, 1000)
    one.reach(3, 1, 0, 0)
    session.moved(one)
    assert session.request(LIMITS, 0) is None


# Steps


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (OffsetOutOfRange, Step.LOOK_UP),
        (FencedLeaderEpoch, Step.STOP),
        (OffsetMovedToTieredStorage, Step.STOP),
        (UnknownLeaderEpoch, Step.BACK_OFF),
        (NotLeaderOrFollower, Step.BACK_OFF),
        (UnknownTopicId, Step.BACK_OFF),
        (InconsistentTopicId, Step.BACK_OFF),
        (KafkaStorageError, Step.BACK_OFF),
    ],
)
def test_each_error_has_its_step(error: type[KafkaError], step: Step) -> None:
    session = LeaderSession()
    (one,) = followed(session)
    opened(session)
    assert session.step_after(one.key, answer(error_code=error.code)) == (one, step)


def test_records_are_appended_and_divergence_truncates() -> None:
    session = LeaderSession()
    (one,) = followed(session)
    opened(session)
    assert session.step_after(one.key, answer()) == (one, Step.APPEND)
    diverging = answer(diverging_epoch=EpochEndOffset(2, 7))
    assert session.step_after(one.key, diverging) == (one, Step.TRUNCATE)


def test_an_answer_for_another_position_or_epoch_is_ignored() -> None:
    session = LeaderSession()
    one, other = followed(session, 2)
    assert session.step_after(one.key, answer())[1] is Step.IGNORE
    opened(session)
    one.reach(11, 3, 0, 5)
    assert session.step_after(one.key, answer())[1] is Step.IGNORE
    other.replica.leader_epoch = 5
    assert session.step_after(other.key, answer())[1] is Step.IGNORE
    session.stop(other.key)
    assert session.step_after(other.key, answer()) == (None, Step.IGNORE)


def test_an_answer_for_a_delayed_partition_is_ignored() -> None:
    session = LeaderSession()
    (one,) = followed(session)
    opened(session)
    session.back_off(one, 0, 1000)
    assert session.step_after(one.key, answer())[1] is Step.IGNORE


# Truncation


@pytest.mark.parametrize(
    ("diverging", "local", "end", "expected"),
    [
        ((3, 50), (3, 80), 80, 50),  # The leader's epoch 3 is shorter.
        ((3, 50), (3, 40), 80, 40),  # The follower's epoch 3 is shorter, and others follow.
        ((3, 50), (2, 30), 80, 30),  # The follower has no epoch 3: compare epoch 2 next.
        ((3, 50), (2, 90), 80, 80),
        ((3, 50), (-1, -1), 80, 50),
        ((3, 90), (3, 95), 80, 80),
    ],
)
def test_a_log_is_cut_where_both_histories_agree(
    diverging: tuple[int, int], local: tuple[int, int], end: int, expected: int
) -> None:
    assert divergence(diverging, local, end) == expected


def test_a_log_moves_into_the_range_of_its_leader() -> None:
    assert reset_by_end(50, 80) == Reset(50)
    assert reset_by_end(80, 80) is None
    assert reset_by_start(90, 80) == Reset(90, restarts=True)
    assert reset_by_start(80, 80) is None


def test_offsets_are_listed_as_a_replica_in_the_leader_epoch() -> None:
    session = LeaderSession()
    request = list_offsets(followed(session, 2), EARLIEST, LIMITS)
    (found,) = request.topics
    assert (request.replica_id, found.name) == (NODE, "orders")
    assert [(one.partition_index, one.current_leader_epoch) for one in found.partitions] == [
        (0, 4),
        (1, 4),
    ]
    assert {one.timestamp for one in found.partitions} == {EARLIEST}
