"""Fetches of followers: checks, acknowledgements, sessions that cost by what has changed."""

import asyncio
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from headrace.broker.dispatch import Dispatcher
from headrace.errors import (
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    KafkaError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import ConfigResource, ResourceType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import encode
from headrace.protocol.schemas.fetch import FetchRequest, FetchTopic, ReplicaState
from tests.builders.replicated_partitions import (
    LEADER,
    NOT_REPORTED,
    SECOND,
    THIRD,
    AnsweredFetch,
    FollowerClient,
    ReplicatedNode,
    epoch_of,
    place_at,
    with_brokers,
)

CONSUMER, DEBUGGER = -1, -2


@pytest.fixture
async def node(tmp_path: Path) -> ReplicatedNode:
    return ReplicatedNode(tmp_path, partitions=3)


async def turn() -> None:
    """Let waiting requests be tried again."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_a_follower_reads_records_that_are_not_committed(node: ReplicatedNode) -> None:
    node.append(b"a", b"b")
    answer = FollowerClient(node, SECOND).fetch((0, 0))
    assert answer.partitions[0].records
    assert (answer.partitions[0].high_watermark, node.ends()) == (0, (0, 2))


async def test_records_are_committed_when_all_followers_have_fetched_behind_them(
    node: ReplicatedNode,
) -> None:
    node.append(b"a", b"b")
    assert FollowerClient(node, SECOND).fetch((0, 2)).partitions[0].high_watermark == 0
    assert FollowerClient(node, THIRD).fetch((0, 1)).partitions[0].high_watermark == 1
    assert node.ends() == (1, 2)


@pytest.mark.parametrize("version", [14, 15, 17, 18])
async def test_a_follower_is_recognised_in_every_version(
    node: ReplicatedNode, version: int
) -> None:
    node.append(b"a")
    for broker in (SECOND, THIRD):
        FollowerClient(node, broker, version=version).fetch((0, 1))
    assert node.ends() == (1, 1)


@pytest.mark.parametrize("version", [12, 14, 15, 18])
async def test_a_debugger_reads_followers_up_to_their_high_watermark(
    node: ReplicatedNode, version: int
) -> None:
    """kafka-replica-verification compares what all replicas have."""
    node.append(b"a")
    node.append(b"b")
    for broker in (SECOND, THIRD):
        FollowerClient(node, broker).fetch((0, 1))
    node.change(leader=SECOND, leader_epoch=1)
    for reader, offset, outcome in (
        (DEBUGGER, 0, (0, True)),
        (DEBUGGER, 1, (0, False)),
        (CONSUMER, 0, (NotLeaderOrFollower.code, False)),
    ):
        fetched = FollowerClient(node, reader, version=version).fetch((0, offset), epoch=-1)
        answer = fetched.partitions[0]
        assert (answer.error_code, bool(answer.records)) == outcome


@pytest.mark.parametrize("version", [17, 18])
async def test_the_first_frame_of_a_connection_may_be_a_fetch(
    node: ReplicatedNode, version: int
) -> None:
    """Kafka's replica fetchers do not ask for the versions of a broker."""
    node.append(b"a")
    place = place_at(0, 0)
    request = FetchRequest(
        replica_state=ReplicaState(SECOND, epoch_of(SECOND)),
        topics=[FetchTopic(topic_id=node.topic.id, partitions=[place])],
    )
    client_id = b"broker-2-fetcher-0"
    header = struct.pack(">hhih", ApiKey.FETCH, version, 7, len(client_id)) + client_id + b"\0"
    frame = bytearray(b"\0\0\0\0" + header + encode(request, version))
    connection = AnsweredFetch(version)
    dispatch = Dispatcher(cast(Any, node.broker), cast(Any, SimpleNamespace(take=None)))
    dispatch(cast(Any, connection), frame, 4, len(frame))
    assert connection.partitions[0].records


class TestChecks:
    async def error(
        self, node: ReplicatedNode, broker: int = SECOND, index: int = 0, epoch: int = 0
    ) -> int:
        answer = FollowerClient(node, broker).fetch((index, 0), epoch=epoch)
        return answer.partitions[index].error_code

    @pytest.mark.parametrize(
        ("epoch", "error"), [(1, UnknownLeaderEpoch), (3, UnknownLeaderEpoch), (0, None)]
    )
    async def test_the_leader_epoch_must_be_that_of_this_leader(
        self, node: ReplicatedNode, epoch: int, error: type[KafkaError] | None
    ) -> None:
        assert await self.error(node, epoch=epoch) == (error.code if error else 0)

    async def test_an_older_leader_epoch_is_fenced_with_the_leaders_name(
        self, node: ReplicatedNode
    ) -> None:
        node.change(leader_epoch=4)
        answer = FollowerClient(node, SECOND).fetch((0, 0)).partitions[0]
        assert answer.error_code == FencedLeaderEpoch.code
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (LEADER, 4)

    async def test_a_follower_asks_only_leaders(self, node: ReplicatedNode) -> None:
        node.change(leader=THIRD, leader_epoch=1)
        fetched = FollowerClient(node, SECOND).fetch((0, 0), epoch=1)
        answer = fetched.partitions[0]
        assert answer.error_code == NotLeaderOrFollower.code
        assert answer.current_leader.leader_id == THIRD
        assert fetched.answer is not None
        assert [one.node_id for one in fetched.answer.node_endpoints] == [THIRD]

    async def test_a_broker_without_a_replica_may_be_ahead_of_our_metadata(
        self, node: ReplicatedNode
    ) -> None:
        node.change(replicas=(LEADER, SECOND), isr=(LEADER, SECOND), partition_epoch=1)
        assert await self.error(node, THIRD) == UnknownLeaderEpoch.code
        assert await self.error(node, THIRD, epoch=-1) == NotLeaderOrFollower.code

    async def test_a_sole_replica_has_no_followers(self, node: ReplicatedNode) -> None:
        node.change(replicas=(LEADER,), isr=(LEADER,), partition_epoch=1)
        assert await self.error(node) == UnknownLeaderEpoch.code

    async def test_an_earlier_life_of_a_broker_is_refused(self, node: ReplicatedNode) -> None:
        node.append(b"a")
        follower = FollowerClient(node, SECOND)
        follower.broker_epoch = epoch_of(SECOND) - 1
        assert follower.fetch((0, 1)).partitions[0].error_code == NotLeaderOrFollower.code
        in_sync = node.partitions[0].in_sync
        assert in_sync is not None
        assert in_sync.followers[SECOND].end_offset == -1

    async def test_unknown_topics_and_partitions_have_their_errors(
        self, node: ReplicatedNode
    ) -> None:
        assert await self.error(node, index=7) == UnknownTopicOrPartition.code
        node.topic = msgspec.structs.replace(node.topic, id=bytes(16))
        assert await self.error(node) == UnknownTopicId.code

    async def test_an_offset_beyond_the_log_acknowledges_nothing(
        self, node: ReplicatedNode
    ) -> None:
        node.append(b"a")
        answer = FollowerClient(node, SECOND).fetch((0, 5)).partitions[0]
        assert answer.error_code == OffsetOutOfRange.code
        in_sync = node.partitions[0].in_sync
        assert in_sync is not None
        assert in_sync.followers[SECOND].end_offset == -1

    async def test_a_diverging_log_acknowledges_nothing(self, node: ReplicatedNode) -> None:
        node.append(b"a")
        node.change(leader_epoch=2)
        node.partitions[0].enter_epoch()
        node.append(b"b")
        place = place_at(0, 2, epoch=2, last_fetched_epoch=1)
        answer = FollowerClient(node, SECOND).fetch(place).partitions[0]
        assert (answer.error_code, answer.records) == (0, b"")
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)
        in_sync = node.partitions[0].in_sync
        assert in_sync is not None
        assert in_sync.followers[SECOND].end_offset == -1


class TestSessions:
    async def test_an_incremental_fetch_answers_what_has_changed(
        self, node: ReplicatedNode
    ) -> None:
        follower = FollowerClient(node, SECOND).opened((0, 0), (1, 0), (2, 0))
        node.append(b"a", partition=1)
        assert list(follower.fetch().partitions) == [1]

    async def test_an_idle_partition_is_not_looked_at(self, node: ReplicatedNode) -> None:
        follower = FollowerClient(node, SECOND).opened((0, 0), (1, 0), (2, 0))
        (session,) = node.broker.fetch_sessions._sessions.values()
        assert not session.changed  # type: ignore[union-attr]
        node.append(b"a", partition=1)
        assert [one.index for one in session.changed] == [1]  # type: ignore[union-attr]
        follower.fetch()
        follower.fetch((1, 1))
        assert not session.changed  # type: ignore[union-attr]

    async def test_records_that_the_follower_did_not_take_are_sent_again(
        self, node: ReplicatedNode
    ) -> None:
        follower = FollowerClient(node, SECOND).opened((0, 0))
        node.append(b"a")
        assert follower.fetch().partitions[0].records
        assert follower.fetch().partitions[0].records

    async def test_a_new_high_watermark_is_sent_once(self, node: ReplicatedNode) -> None:
        second = FollowerClient(node, SECOND).opened((0, 0))
        node.append(b"a")
        second.fetch()
        second.fetch((0, 1))
        FollowerClient(node, THIRD).fetch((0, 1))
        assert second.fetch().partitions[0].high_watermark == 1
        assert second.fetch().partitions == {}

    async def test_a_waiting_fetch_is_answered_by_an_append(self, node: ReplicatedNode) -> None:
        follower = FollowerClient(node, SECOND).opened((0, 0), (1, 0))
        waiting = follower.fetch(wait_ms=60_000)
        await turn()
        assert waiting.is_waiting
        node.append(b"a", partition=1)
        node.append(b"b", partition=0)
        await turn()
        assert sorted(waiting.partitions) == [0, 1]

    async def test_a_waiting_fetch_is_answered_when_its_time_is_up(
        self, node: ReplicatedNode
    ) -> None:
        follower = FollowerClient(node, SECOND).opened((0, 0))
        waiting = follower.fetch(wait_ms=1)
        await asyncio.sleep(0.01)
        assert waiting.partitions == {}

    async def test_a_higher_high_watermark_answers_a_follower_that_reports_its_own(
        self, node: ReplicatedNode
    ) -> None:
        node.append(b"a")
        second = FollowerClient(node, SECOND, version=18).opened((0, 1), high_watermark=0)
        waiting = second.fetch(wait_ms=60_000)
        assert waiting.is_waiting
        FollowerClient(node, THIRD).fetch((0, 1))
        await turn()
        assert waiting.partitions[0].high_watermark == 1
        assert second.fetch(wait_ms=60_000).is_waiting

    async def test_a_high_watermark_alone_does_not_wake_an_older_follower(
        self, node: ReplicatedNode
    ) -> None:
        node.append(b"a")
        second = FollowerClient(node, SECOND, version=18).opened(
            (0, 1), high_watermark=NOT_REPORTED
        )
        waiting = second.fetch(wait_ms=60_000)
        FollowerClient(node, THIRD).fetch((0, 1))
        await turn()
        assert waiting.is_waiting

    async def test_a_new_start_of_the_log_answers_a_waiting_fetch(
        self, node: ReplicatedNode
    ) -> None:
        node.append(b"a")
        for one in (SECOND, THIRD):
            follower = FollowerClient(node, one).opened((0, 1))
        waiting = follower.fetch(wait_ms=60_000)
        node.partitions[0].delete_records_before(1)
        await turn()
        assert waiting.partitions[0].log_start_offset == 1
        assert follower.fetch(wait_ms=60_000).is_waiting

    async def test_a_change_of_the_leader_answers_a_waiting_fetch(
        self, node: ReplicatedNode
    ) -> None:
        follower = FollowerClient(node, SECOND).opened((0, 0), (1, 0))
        waiting = follower.fetch(wait_ms=60_000)
        node.change(1, leader=THIRD, leader_epoch=1)
        await turn()
        assert waiting.partitions[1].error_code == NotLeaderOrFollower.code
        # The error is repeated until the follower forgets the partition.
        assert list(follower.fetch().partitions) == [1]
        assert follower.fetch(forgotten=(1,)).partitions == {}

    async def test_a_new_epoch_of_the_leader_is_noticed(self, node: ReplicatedNode) -> None:
        follower = FollowerClient(node, SECOND).opened((0, 0))
        node.change(leader_epoch=1)
        assert follower.fetch().partitions[0].error_code == FencedLeaderEpoch.code
        assert follower.fetch((0, 0), epoch=1).partitions[0].error_code == 0
        node.append(b"a")
        assert follower.fetch().partitions[0].records

    async def test_a_forgotten_partition_is_not_followed(self, node: ReplicatedNode) -> None:
        follower = FollowerClient(node, SECOND).opened((0, 0), (1, 0))
        follower.fetch(forgotten=(1,))
        node.append(b"a", partition=1)
        assert follower.fetch().partitions == {}
        assert not node.partitions[1].readers

    async def test_a_session_that_ends_leaves_its_partitions(self, node: ReplicatedNode) -> None:
        follower = FollowerClient(node, SECOND).opened((0, 0), (1, 0))
        follower.session_epoch = -1
        answer = follower.fetch((0, 0))
        assert answer.answer is not None
        assert answer.answer.session_id == 0
        assert [len(one.readers) for one in node.partitions] == [0, 0, 0]

    async def test_a_restarted_follower_ends_its_old_sessions(self, node: ReplicatedNode) -> None:
        old = FollowerClient(node, SECOND).opened((0, 0))
        new = FollowerClient(node, SECOND)
        new.broker_epoch += 1
        new.opened((0, 0))
        assert len(node.partitions[0].readers) == 1
        answer = old.fetch().answer
        assert answer is not None
        assert answer.error_code == FetchSessionIdNotFound.code

    async def test_a_partition_that_waits_for_room_is_served_first_next_time(
        self, node: ReplicatedNode
    ) -> None:
        follower = FollowerClient(node, SECOND).opened((0, 0), (1, 0))
        node.append(b"a" * 600, partition=0)
        node.append(b"b" * 600, partition=1)
        node.broker.configs.settings = msgspec.structs.replace(
            node.broker.settings, fetch_max_bytes=700
        )
        assert list(follower.fetch().partitions) == [0]
        answer = follower.fetch((0, 1)).partitions
        assert [(index, bool(one.records)) for index, one in answer.items()] == [
            (1, True),
            (0, False),
        ]

    async def test_a_partition_that_is_named_gets_its_figures_again(
        self, node: ReplicatedNode
    ) -> None:
        """The follower may have dropped the answer in which they were."""
        follower = FollowerClient(node, SECOND).opened((0, 0), (1, 0))
        assert list(follower.fetch((1, 0)).partitions) == [1]

    async def test_a_request_without_a_session_waits_as_well(self, node: ReplicatedNode) -> None:
        follower = FollowerClient(node, SECOND)
        follower.session_epoch = -1
        waiting = follower.fetch((0, 0), (1, 0), wait_ms=60_000)
        node.append(b"a", partition=1)
        await turn()
        assert sorted(waiting.partitions) == [0, 1]
        assert not node.partitions[0].readers

    async def test_followers_find_room_among_consumers(self, node: ReplicatedNode) -> None:
        node.broker.fetch_sessions._slots = 1
        FollowerClient(node, SECOND).opened((0, 0))
        FollowerClient(node, THIRD).opened((0, 0))
        assert len(node.broker.fetch_sessions) == 2


class TestLag:
    async def test_an_idle_follower_does_not_lag_when_records_arrive(
        self, node: ReplicatedNode
    ) -> None:
        """Its fetches do not name the partition any more, but prove that it has everything."""
        follower = FollowerClient(node, SECOND).opened((0, 0))
        clock, settings = node.broker.clock, node.broker.settings
        clock.time_ms += 10 * settings.replica_lag_time_max_ms
        follower.fetch()
        fetched_ms = clock.time_ms
        node.append(b"a")
        in_sync = node.partitions[0].in_sync
        assert in_sync is not None
        assert in_sync.lagging(1, fetched_ms + 5, 5) == {THIRD}
        assert in_sync.lagging(1, fetched_ms + 6, 5) == {SECOND, THIRD}

    async def test_a_follower_that_fetches_too_little_lags(self, node: ReplicatedNode) -> None:
        node.append(b"a", b"b")
        follower = FollowerClient(node, SECOND).opened((0, 0))
        node.broker.clock.time_ms += 1000
        follower.fetch((0, 1))
        in_sync = node.partitions[0].in_sync
        assert in_sync is not None
        assert SECOND in in_sync.lagging(2, node.broker.clock.time_ms, 999)


async def test_a_follower_that_is_registered_again_keeps_fetching(node: ReplicatedNode) -> None:
    follower = FollowerClient(node, SECOND).opened((0, 0))
    node.broker.controller.image = with_brokers(node.broker.image, epoch=50)
    node.append(b"a")
    assert follower.fetch().partitions[0].error_code == NotLeaderOrFollower.code
    follower.broker_epoch = 50
    assert follower.fetch((0, 0)).partitions[0].error_code == 0


def throttle_replication(node: ReplicatedNode, replicas: str) -> None:
    """Throttle replicas of the topic to a byte per second, which is exceeded."""
    image = node.broker.image
    configs = {
        ConfigResource(ResourceType.TOPIC, "t"): {
            "leader.replication.throttled.replicas": replicas
        },
        ConfigResource(ResourceType.BROKER, ""): {"leader.replication.throttled.rate": "1"},
    }
    throttles = node.broker.replication_throttles
    throttles.follow(msgspec.structs.replace(image, configs=configs), LEADER)
    throttles.leader.record(1_000_000)


async def test_a_throttled_follower_that_is_not_in_sync_gets_no_records(tmp_path: Path) -> None:
    node = ReplicatedNode(tmp_path, partitions=2, isr=(LEADER, SECOND))
    node.append(b"a")
    node.append(b"b", partition=1)
    throttle_replication(node, f"0:{LEADER}")
    answer = FollowerClient(node, THIRD).fetch((0, 0), (1, 0))
    assert not answer.partitions[0].records
    assert answer.partitions[1].records


async def test_a_follower_in_sync_is_not_throttled(node: ReplicatedNode) -> None:
    """Or acks=all would wait for the throttle."""
    node.append(b"a")
    throttle_replication(node, "*")
    assert FollowerClient(node, SECOND).fetch((0, 0)).partitions[0].records


async def test_the_bytes_of_throttled_replicas_count(node: ReplicatedNode) -> None:
    node.append(b"a")
    throttle_replication(node, "*")
    throttle = node.broker.replication_throttles.leader
    before = throttle.rate()
    FollowerClient(node, SECOND).fetch((0, 0))
    assert throttle.rate() > before
