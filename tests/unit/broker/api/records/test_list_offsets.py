"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords and DescribeProducers on a real log."""

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import (
    FencedLeaderEpoch,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    KafkaStorageError,
    OffsetOutOfRange,
    PolicyViolation,
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
from tests.faults import failing
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
    broker.partitions.find("r", index).append(memoryview(batch), broker.clock.now_ms())


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
async def test_times_and_places(broker: UnitBroker, timestamp: int, found: Found) -> None:
    """LOG-13(b): start of the log, its end, and any time in between."""
    assert await find(broker, timestamp) == found


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [(LATEST, (-1, 0, 0)), (EARLIEST, (-1, 0, 0)), (MAX_TIMESTAMP, NOTHING), (0, NOTHING)],
)
async def test_an_empty_partition(broker: UnitBroker, timestamp: int, found: Found) -> None:
    assert await find(broker, timestamp, index=1) == found


@pytest.mark.parametrize(
    ("timestamp", "known_from"),
    [(LATEST, 1), (EARLIEST, 1), (MAX_TIMESTAMP, 7), (LOCAL, 8), (TIERED, 9), (PENDING, 11)],
)
async def test_places_are_known_from_some_version_on(
    broker: UnitBroker, timestamp: int, known_from: int
) -> None:
    for version in range(1, 12):
        expected = 0 if version >= known_from else UnsupportedVersion.code
        assert await error_of(broker, timestamp, version=version) == expected


@pytest.mark.parametrize("timestamp", [-7, -100])
async def test_other_negative_times_mean_nothing(broker: UnitBroker, timestamp: int) -> None:
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


async def test_a_partition_asked_for_twice_is_refused_once(broker: UnitBroker) -> None:
    twice = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    other = ListOffsetsPartition(partition_index=1, timestamp=LATEST)
    told = await list_offsets(broker, twice, twice, other)
    assert {index: one.error_code for index, one in told.items()} == {0: InvalidRequest.code, 1: 0}


async def test_consumers_see_what_is_committed_and_replicas_see_all(broker: UnitBroker) -> None:
    broker.log("r", 0).high_watermark = 3
    assert await find(broker, LATEST) == (-1, 3, 0)
    assert await find(broker, LATEST, isolation_level=1) == (-1, 3, 0)
    assert await find(broker, LATEST, replica_id=2) == (-1, 5, 0)
    assert await find(broker, 4500) == NOTHING
    assert await find(broker, MAX_TIMESTAMP) == NOTHING


async def test_an_unknown_isolation_level_is_refused(broker: UnitBroker) -> None:
    assert await error_of(broker, LATEST, isolation_level=7) == InvalidRequest.code


async def test_a_failed_disk_is_told(broker: UnitBroker) -> None:
    broker.partitions.find("r", 0).log = None
    assert await error_of(broker, LATEST) == KafkaStorageError.code


async def test_a_disk_that_fails_in_a_search_is_told_and_takes_the_log_offline(
    broker: UnitBroker,
) -> None:
    with failing("pread"):
        assert await error_of(broker, 1500) == KafkaStorageError.code
    with pytest.raises(KafkaStorageError, match="the disk says no"):
        broker.log("r", 0)


class TestOffsetForLeaderEpoch:
    async def end(
        self, broker: UnitBroker, epoch: int, index: int = 0, current: int = -1, version: int = 4
    ) -> tuple[int, int, int]:
        asked = OffsetForLeaderPartition(
            partition=index, leader_epoch=epoch, current_leader_epoch=current
        )
        topic = OffsetForLeaderTopic(topic="r", partitions=[asked])
        request = OffsetForLeaderEpochRequest(topics=[topic])
        response = await ask(broker, ApiKey.OFFSET_FOR_LEADER_EPOCH, request, version)
        told = response.topics[0].partitions[0]
        return told.error_code, told.leader_epoch, told.end_offset

    @pytest.mark.parametrize("version", range(2, 5))
    async def test_the_current_epoch_ends_at_the_end(
        self, broker: UnitBroker, version: int
    ) -> None:
        assert await self.end(broker, 0, version=version) == (0, 0, 5)

    async def test_an_earlier_epoch_ends_where_the_next_began(self, broker: UnitBroker) -> None:
        broker.partitions.find("r", 0).leader_epoch = 3
        append(broker, 6000)
        assert await self.end(broker, 0) == (0, 0, 5)
        assert await self.end(broker, 2) == (0, 0, 5)

    async def test_unknown_epochs_and_partitions(self, broker: UnitBroker) -> None:
        assert await self.end(broker, 5) == (0, -1, -1)
        assert await self.end(broker, -1) == (0, -1, -1)
        assert await self.end(broker, 0, current=1) == (UnknownLeaderEpoch.code, -1, -1)
        assert await self.end(broker, 0, index=9) == (UnknownTopicOrPartition.code, -1, -1)


class TestDeleteRecords:
    async def delete(
        self, broker: UnitBroker, *offsets: tuple[int, int], topic: str = "r", version: int = 2
    ) -> list[tuple[int, int, int]]:
        partitions = [
            DeleteRecordsPartition(partition_index=index, offset=offset)
            for index, offset in offsets
        ]
        asked = DeleteRecordsTopic(name=topic, partitions=partitions)
        request = DeleteRecordsRequest(topics=[asked], timeout_ms=1000)
        response = await ask(broker, ApiKey.DELETE_RECORDS, request, version)
        return [
            (one.partition_index, one.low_watermark, one.error_code)
            for told in response.topics
            for one in told.partitions
        ]

    @pytest.mark.parametrize("version", range(3))
    async def test_the_log_starts_later(self, broker: UnitBroker, version: int) -> None:
        assert await self.delete(broker, (0, 2), version=version) == [(0, 2, 0)]
        assert await find(broker, EARLIEST) == (-1, 2, 0)
        assert await find(broker, 0) == (2000, 2, 0)

    async def test_the_start_never_moves_back(self, broker: UnitBroker) -> None:
        await self.delete(broker, (0, 3))
        assert await self.delete(broker, (0, 1)) == [(0, 3, 0)]

    async def test_minus_one_deletes_everything(self, broker: UnitBroker) -> None:
        assert await self.delete(broker, (0, -1)) == [(0, 5, 0)]
        assert await find(broker, EARLIEST) == (-1, 5, 0)
        assert await find(broker, 0) == NOTHING

    async def test_the_last_of_two_offsets_counts(self, broker: UnitBroker) -> None:
        assert await self.delete(broker, (0, 2), (0, 3)) == [(0, 3, 0)]

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
    async def test_what_cannot_be_deleted(
        self, broker: UnitBroker, topic: str, index: int, offset: int, error: type[KafkaError]
    ) -> None:
        told = await self.delete(broker, (index, offset), topic=topic)
        assert told == [(index, -1, error.code)]

    async def test_the_brokers_own_topics_are_left_alone(self, broker: UnitBroker) -> None:
        topics = [CreatableTopic(name="__consumer_offsets", num_partitions=1, replication_factor=1)]
        await ask(broker, ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=topics))
        told = await self.delete(broker, (0, 0), topic="__consumer_offsets")
        assert told == [(0, -1, InvalidTopicException.code)]


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
        told = (await self.describe(broker, "r", 1)).active_producers[0]
        assert (told.producer_id, told.producer_epoch, told.last_sequence) == (77, 2, 2)
        assert (told.last_timestamp, told.coordinator_epoch) == (2000, -1)
        assert told.current_txn_start_offset == -1

    async def test_others_are_not(self, broker: UnitBroker) -> None:
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
