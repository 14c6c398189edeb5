"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords and DescribeProducers on a real log."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.errors import (
    FencedLeaderEpoch,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    KafkaStorageError,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.schemas.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.schemas.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.schemas.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.builders.failing_disk import failing
from tests.builders.logs import NOW, batch_of
from tests.builders.replicated_partitions import (
    LEADER,
    SECOND,
    THIRD,
    FollowerClient,
    ReplicatedNode,
)
from tests.unit.broker.api.builders import UnitBroker, a_broker, ask

LATEST, EARLIEST, MAX_TIMESTAMP, LOCAL, TIERED, PENDING = range(-1, -7, -1)
NOTHING = (-1, -1, -1)
Found = tuple[int, int, int]


@pytest.fixture
async def broker(tmp_path: Path) -> UnitBroker:
    """Topic r: partition 0 has five records, 1 none; c is compacted."""
    broker = a_broker(tmp_path)
    compact = [CreatableTopicConfig(name="cleanup.policy", value="compact")]
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(name="r", num_partitions=2, replication_factor=1),
            CreatableTopic(name="c", num_partitions=1, replication_factor=1, configs=compact),
        ]
    )
    await ask(broker, ApiKey.CREATE_TOPICS, request)
    append(broker, 1000, 3000, 2000)
    append(broker, 5000)
    append(broker, 4000)
    return broker


def append(broker: UnitBroker, *timestamps: int, index: int = 0, **producer: Any) -> None:
    records = [Record(i, timestamp, b"k", b"v", ()) for i, timestamp in enumerate(timestamps)]
    batch = bytearray(build_batch(records, **producer))
    broker.partitions.led("r", index).append(memoryview(batch), broker.clock.now_ms())


async def list_offsets(
    broker: UnitBroker, *partitions: ListOffsetsPartition, version: int = 11, **fields: Any
) -> dict[int, ListOffsetsPartitionResponse]:
    topic = ListOffsetsTopic(name=fields.pop("topic", "r"), partitions=list(partitions))
    request = ListOffsetsRequest(topics=[topic], **{"replica_id": -1, **fields})
    response = await ask(broker, ApiKey.LIST_OFFSETS, request, version)
    return {one.partition_index: one for topic in response.topics for one in topic.partitions}


async def find(broker: UnitBroker, timestamp: int, index: int = 0, **fields: Any) -> Found:
    asked = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    found = (await list_offsets(broker, asked, **fields))[index]
    assert found.error_code == 0
    return found.timestamp, found.offset, found.leader_epoch


async def error_of(
    broker: UnitBroker, timestamp: int, index: int = 0, epoch: int = -1, **fields: Any
) -> int:
    asked = ListOffsetsPartition(
        partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
    )
    return (await list_offsets(broker, asked, **fields))[index].error_code


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (LATEST, (-1, 5, 0)),
        (EARLIEST, (-1, 0, 0)),
        (MAX_TIMESTAMP, (5000, 3, 0)),
        (LOCAL, (-1, 0, 0)),
        (TIERED, NOTHING),
        (PENDING, NOTHING),
        (0, (1000, 0, 0)),
        (1000, (1000, 0, 0)),
        (1001, (3000, 1, 0)),
        (3000, (3000, 1, 0)),
        (3001, (5000, 3, 0)),
        (5000, (5000, 3, 0)),
        (5001, NOTHING),
        (1 << 62, NOTHING),
    ],
)
async def test_offsets_are_found_by_timestamp_and_by_special_value(
    broker: UnitBroker, timestamp: int, found: Found
) -> None:
    """LOG-13(b): start of the log, its end, and any time in between."""
    assert await find(broker, timestamp) == found


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [(LATEST, (-1, 0, 0)), (EARLIEST, (-1, 0, 0)), (MAX_TIMESTAMP, NOTHING), (0, NOTHING)],
)
async def test_offsets_are_found_in_an_empty_partition(
    broker: UnitBroker, timestamp: int, found: Found
) -> None:
    assert await find(broker, timestamp, index=1) == found


@pytest.mark.parametrize(
    ("timestamp", "known_from"),
    [(LATEST, 1), (EARLIEST, 1), (MAX_TIMESTAMP, 7), (LOCAL, 8), (TIERED, 9), (PENDING, 11)],
)
async def test_special_timestamps_need_their_version(
    broker: UnitBroker, timestamp: int, known_from: int
) -> None:
    for version in range(1, 12):
        expected = 0 if version >= known_from else UnsupportedVersion.code
        assert await error_of(broker, timestamp, version=version) == expected


@pytest.mark.parametrize("timestamp", [-7, -100])
async def test_other_negative_timestamps_are_rejected(broker: UnitBroker, timestamp: int) -> None:
    assert await error_of(broker, timestamp) == UnsupportedVersion.code


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, None), (0, None), (1, UnknownLeaderEpoch), (-2, FencedLeaderEpoch)]
)
async def test_the_clients_leader_epoch_is_checked(
    broker: UnitBroker, epoch: int, error: type[KafkaError] | None
) -> None:
    assert await error_of(broker, LATEST, epoch=epoch) == (error.code if error else 0)


async def test_unknown_partitions_have_their_errors(broker: UnitBroker) -> None:
    unknown = UnknownTopicOrPartition.code
    assert await error_of(broker, LATEST, index=9) == unknown
    assert await error_of(broker, LATEST, index=-1) == unknown
    assert await error_of(broker, LATEST, topic="nope") == unknown
    assert await error_of(broker, LATEST, topic="") == unknown


async def test_a_partition_named_twice_is_rejected_once(broker: UnitBroker) -> None:
    twice = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    other = ListOffsetsPartition(partition_index=1, timestamp=LATEST)
    answer = await list_offsets(broker, twice, twice, other)
    assert {index: one.error_code for index, one in answer.items()} == {
        0: InvalidRequest.code,
        1: 0,
    }


async def test_consumers_read_committed_records_and_replicas_read_all(broker: UnitBroker) -> None:
    broker.log("r", 0).high_watermark = 3
    assert await find(broker, LATEST) == (-1, 3, 0)
    assert await find(broker, LATEST, isolation_level=1) == (-1, 3, 0)
    assert await find(broker, LATEST, replica_id=2) == (-1, 5, 0)
    assert await find(broker, 4500) == NOTHING
    assert await find(broker, MAX_TIMESTAMP) == NOTHING


async def test_an_unknown_isolation_level_is_refused(broker: UnitBroker) -> None:
    assert await error_of(broker, LATEST, isolation_level=7) == InvalidRequest.code


async def test_a_failed_disk_is_answered(broker: UnitBroker) -> None:
    broker.partitions.led("r", 0).log = None
    assert await error_of(broker, LATEST) == KafkaStorageError.code


async def test_a_disk_that_fails_in_a_search_takes_the_log_offline(
    broker: UnitBroker,
) -> None:
    with failing("pread"):
        assert await error_of(broker, 1500) == KafkaStorageError.code
    with pytest.raises(KafkaStorageError, match="the disk refuses"):
        broker.log("r", 0)


class TestNewLeader:
    """Between an election and the first fetches of the followers."""

    @pytest.fixture
    async def elected(self, tmp_path: Path) -> ReplicatedNode:
        node = ReplicatedNode(tmp_path)
        node.append(b"a", b"b")
        for one in (SECOND, THIRD):
            FollowerClient(node, one).fetch((0, 1))
        node.change(leader_epoch=1, partition_epoch=1)
        assert node.ends() == (1, 2)
        return node

    @pytest.mark.parametrize(
        ("version", "error"), [(4, LeaderNotAvailable), (5, OffsetNotAvailable)]
    )
    async def test_a_consumer_gets_no_end_that_may_go_back(
        self, elected: ReplicatedNode, version: int, error: type[KafkaError]
    ) -> None:
        for isolation_level in (0, 1):
            assert (
                await error_of(
                    elected.broker,
                    LATEST,
                    version=version,
                    topic="t",
                    isolation_level=isolation_level,
                )
                == error.code
            )

    async def test_other_offsets_are_found(self, elected: ReplicatedNode) -> None:
        assert await find(elected.broker, EARLIEST, topic="t") == (-1, 0, 0)
        assert (await find(elected.broker, 0, topic="t"))[1] == 0
        late = await error_of(elected.broker, 1 << 62, topic="t")
        assert late == OffsetNotAvailable.code

    async def test_a_replica_gets_the_end_of_the_log(self, elected: ReplicatedNode) -> None:
        assert await find(elected.broker, LATEST, topic="t", replica_id=SECOND) == (-1, 2, 1)

    async def test_the_end_is_found_once_the_followers_have_fetched(
        self, elected: ReplicatedNode
    ) -> None:
        for one in (SECOND, THIRD):
            FollowerClient(elected, one).fetch((0, 2), epoch=1)
        assert await find(elected.broker, LATEST, topic="t") == (-1, 2, 1)

    async def test_a_follower_answers_no_one(self, elected: ReplicatedNode) -> None:
        """REP-2"""
        elected.change(leader=SECOND, leader_epoch=2)
        for replica in (-1, THIRD):
            error = await error_of(elected.broker, LATEST, topic="t", replica_id=replica)
            assert error == NotLeaderOrFollower.code


class TestOffsetForLeaderEpoch:
    async def end(
        self,
        broker: UnitBroker,
        epoch: int,
        index: int = 0,
        current: int = -1,
        version: int = 4,
        topic: str = "r",
    ) -> tuple[int, int, int]:
        asked = OffsetForLeaderPartition(
            partition=index, leader_epoch=epoch, current_leader_epoch=current
        )
        named = OffsetForLeaderTopic(topic=topic, partitions=[asked])
        request = OffsetForLeaderEpochRequest(replica_id=SECOND, topics=[named])
        response = await ask(broker, ApiKey.OFFSET_FOR_LEADER_EPOCH, request, version)
        answer = response.topics[0].partitions[0]
        return answer.error_code, answer.leader_epoch, answer.end_offset

    @pytest.mark.parametrize("version", range(2, 5))
    async def test_the_current_epoch_ends_at_the_end(
        self, broker: UnitBroker, version: int
    ) -> None:
        assert await self.end(broker, 0, version=version) == (0, 0, 5)

    async def test_an_earlier_epoch_ends_where_the_next_began(self, broker: UnitBroker) -> None:
        broker.partitions.led("r", 0).leader_epoch = 3
        append(broker, 6000)
        assert await self.end(broker, 0) == (0, 0, 5)
        assert await self.end(broker, 2) == (0, 0, 5)

    async def test_a_follower_asks_for_the_end_of_an_epoch(self, tmp_path: Path) -> None:
        """Its own last epoch may not be the leader's, which is beyond the high watermark."""
        node = ReplicatedNode(tmp_path)
        node.append(b"a", b"b")
        node.change(leader_epoch=2, partition_epoch=1)
        node.partitions[0].enter_epoch()
        node.append(b"c")
        ends = [await self.end(node.broker, epoch, current=2, topic="t") for epoch in (0, 1, 2)]
        assert ends == [(0, 0, 2), (0, 0, 2), (0, 2, 3)]

    async def test_unknown_epochs_and_partitions_are_rejected(self, broker: UnitBroker) -> None:
        assert await self.end(broker, 5) == (0, -1, -1)
        assert await self.end(broker, -1) == (0, -1, -1)
        assert await self.end(broker, 0, current=1) == (UnknownLeaderEpoch.code, -1, -1)
        assert await self.end(broker, 0, index=9) == (UnknownTopicOrPartition.code, -1, -1)


async def delete(
    broker: UnitBroker,
    *offsets: tuple[int, int],
    topic: str = "r",
    version: int = 2,
    timeout_ms: int = 1000,
) -> list[tuple[int, int, int]]:
    partitions = [
        DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets
    ]
    asked = DeleteRecordsTopic(name=topic, partitions=partitions)
    request = DeleteRecordsRequest(topics=[asked], timeout_ms=timeout_ms)
    response = await ask(broker, ApiKey.DELETE_RECORDS, request, version)
    return [
        (one.partition_index, one.low_watermark, one.error_code)
        for answer in response.topics
        for one in answer.partitions
    ]


class TestDeleteRecords:
    @pytest.mark.parametrize("version", range(3))
    async def test_deletion_moves_the_start_of_the_log(
        self, broker: UnitBroker, version: int
    ) -> None:
        assert await delete(broker, (0, 2), version=version) == [(0, 2, 0)]
        assert await find(broker, EARLIEST) == (-1, 2, 0)
        assert await find(broker, 0) == (2000, 2, 0)

    async def test_the_start_never_moves_back(self, broker: UnitBroker) -> None:
        await delete(broker, (0, 3))
        assert await delete(broker, (0, 1)) == [(0, 3, 0)]

    async def test_minus_one_deletes_everything(self, broker: UnitBroker) -> None:
        assert await delete(broker, (0, -1)) == [(0, 5, 0)]
        assert await find(broker, EARLIEST) == (-1, 5, 0)
        assert await find(broker, 0) == NOTHING

    async def test_the_last_of_two_offsets_counts(self, broker: UnitBroker) -> None:
        assert await delete(broker, (0, 2), (0, 3)) == [(0, 3, 0)]

    @pytest.mark.parametrize(
        ("topic", "index", "offset", "error"),
        [
            ("r", 0, 6, OffsetOutOfRange),
            ("r", 0, -2, OffsetOutOfRange),
            ("r", 9, 0, UnknownTopicOrPartition),
            ("nope", 0, 0, UnknownTopicOrPartition),
            ("c", 0, 0, PolicyViolation),
        ],
    )
    async def test_impossible_deletions_are_rejected(
        self, broker: UnitBroker, topic: str, index: int, offset: int, error: type[KafkaError]
    ) -> None:
        answer = await delete(broker, (index, offset), topic=topic)
        assert answer == [(index, -1, error.code)]

    async def test_records_of_internal_topics_are_not_deleted(self, broker: UnitBroker) -> None:
        topics = [CreatableTopic(name="__consumer_offsets", num_partitions=1, replication_factor=1)]
        await ask(broker, ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=topics))
        answer = await delete(broker, (0, 0), topic="__consumer_offsets")
        assert answer == [(0, -1, InvalidTopicException.code)]


class TestDeleteRecordsWithFollowers:
    """The answer waits until every live replica has moved the start of its log."""

    @pytest.fixture
    async def node(self, tmp_path: Path) -> ReplicatedNode:
        node = ReplicatedNode(tmp_path)
        node.append(b"a", b"b")
        for one in (SECOND, THIRD):
            FollowerClient(node, one).fetch((0, 2))
        return node

    def deletion(
        self, node: ReplicatedNode, offset: int = 2
    ) -> "asyncio.Task[list[tuple[int, int, int]]]":
        return asyncio.ensure_future(delete(node.broker, (0, offset), topic="t"))

    async def test_the_answer_waits_for_the_followers(self, node: ReplicatedNode) -> None:
        waiting = self.deletion(node)
        for one, start in ((SECOND, 2), (THIRD, 1), (THIRD, 2)):
            await turns()
            assert not waiting.done()
            FollowerClient(node, one).fetch((0, 2), log_start_offset=start)
        assert await waiting == [(0, 2, 0)]

    async def test_a_fenced_replica_is_not_waited_for(self, node: ReplicatedNode) -> None:
        image = node.broker.image
        fenced = msgspec.structs.replace(image.brokers[THIRD], fenced=True)
        node.broker.controller.image = msgspec.structs.replace(
            image, brokers={**image.brokers, THIRD: fenced}
        )
        waiting = self.deletion(node)
        await turns()
        FollowerClient(node, SECOND).fetch((0, 2), log_start_offset=2)
        assert await waiting == [(0, 2, 0)]

    async def test_a_lost_leadership_ends_the_wait(self, node: ReplicatedNode) -> None:
        waiting = self.deletion(node)
        await turns()
        node.change(leader=SECOND, leader_epoch=1)
        assert await waiting == [(0, -1, NotLeaderOrFollower.code)]

    async def test_the_time_of_the_request_limits_the_wait(self, node: ReplicatedNode) -> None:
        assert await delete(node.broker, (0, 1), topic="t", timeout_ms=1) == [
            (0, -1, RequestTimedOut.code)
        ]
        assert node.broker.log("t", 0).log_start_offset == 1

    async def test_a_sole_replica_does_not_wait(self, node: ReplicatedNode) -> None:
        node.change(replicas=(LEADER,), isr=(LEADER,), partition_epoch=1)
        assert await delete(node.broker, (0, 2), topic="t") == [(0, 2, 0)]


async def turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


class TestDescribeProducers:
    async def describe(self, broker: UnitBroker, topic: str, index: int) -> Any:
        request = DescribeProducersRequest(
            topics=[TopicRequest(name=topic, partition_indexes=[index])]
        )
        response = await ask(broker, ApiKey.DESCRIBE_PRODUCERS, request)
        return response.topics[0].partitions[0]

    async def test_idempotent_producers_are_remembered(self, broker: UnitBroker) -> None:
        append(broker, 1000, index=1, producer_id=77, producer_epoch=2, base_sequence=0)
        append(broker, 2000, 2000, index=1, producer_id=77, producer_epoch=2, base_sequence=1)
        answer = (await self.describe(broker, "r", 1)).active_producers[0]
        assert (answer.producer_id, answer.producer_epoch, answer.last_sequence) == (77, 2, 2)
        assert (answer.last_timestamp, answer.coordinator_epoch) == (2000, -1)
        assert answer.current_txn_start_offset == -1

    async def test_a_follower_describes_its_own_log(self, tmp_path: Path) -> None:
        """kafka-transactions find-hanging asks one broker for all of its partitions."""
        node = ReplicatedNode(tmp_path)
        batch = batch_of(b"a", producer_id=77, producer_epoch=0, base_sequence=0)
        node.partitions[0].append(batch, NOW)
        node.change(leader=SECOND, leader_epoch=1)
        (producer,) = (await self.describe(node.broker, "t", 0)).active_producers
        assert producer.producer_id == 77

    async def test_producers_that_are_not_idempotent_are_not_described(
        self, broker: UnitBroker
    ) -> None:
        assert (await self.describe(broker, "r", 0)).active_producers == []

    @pytest.mark.parametrize(
        ("topic", "index", "error"),
        [
            ("r", 9, UnknownTopicOrPartition),
            ("nope", 0, UnknownTopicOrPartition),
            ("", 0, InvalidTopicException),
            ("a b", 0, InvalidTopicException),
        ],
    )
    async def test_unknown_partitions_have_their_errors(
        self, broker: UnitBroker, topic: str, index: int, error: type[KafkaError]
    ) -> None:
        assert (await self.describe(broker, topic, index)).error_code == error.code
