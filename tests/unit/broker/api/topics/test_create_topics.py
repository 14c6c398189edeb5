"""CreateTopics, CreatePartitions and DeleteTopics, as clients see them."""

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    PolicyViolation,
    RequestTimedOut,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.schemas.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.schemas.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headrace.protocol.uuids import random_uuid
from tests.unit.broker.api.builders import UnitBroker, a_broker, ask


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    return a_broker(tmp_path)


def a_new(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


async def create(
    broker: UnitBroker, *topics: CreatableTopic, version: int = 7, **fields: Any
) -> CreateTopicsResponse:
    request = CreateTopicsRequest(topics=list(topics), **fields)
    response = await ask(broker, ApiKey.CREATE_TOPICS, request, version)
    assert isinstance(response, CreateTopicsResponse)
    return response


@pytest.mark.parametrize("version", range(2, 8))
async def test_every_version_creates(broker: UnitBroker, version: int) -> None:
    """LOG-5: a topic is created with partitions, replication factor and configs."""
    response = await create(broker, a_new("orders", 3, retention_ms="1000"), version=version)
    created = response.topics[0]
    assert (created.name, created.error_code) == ("orders", 0)
    assert len(broker.image.topics["orders"].partitions) == 3
    assert broker.log("orders", 2).config.retention_ms == 1000
    if version >= 5:
        configs = {one.name: one for one in created.configs or []}
        assert (created.num_partitions, created.replication_factor) == (3, 1)
        assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("1000", 1)
        assert configs["cleanup.policy"].config_source == 5
    if version >= 7:
        assert created.topic_id == broker.image.topics["orders"].id


async def test_minus_one_takes_the_defaults(tmp_path: Path) -> None:
    broker = a_broker(tmp_path, num_partitions=5)
    response = await create(broker, a_new("a", -1, -1))
    assert (response.topics[0].num_partitions, response.topics[0].replication_factor) == (5, 1)


async def test_validate_only_answers_and_creates_nothing(broker: UnitBroker) -> None:
    response = await create(broker, a_new("a", 2), validate_only=True)
    assert (response.topics[0].error_code, response.topics[0].num_partitions) == (0, 2)
    assert broker.image.topics == {}


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (a_new("a", 0), InvalidPartitions),
        (a_new("a", -2), InvalidPartitions),
        (a_new("a", 1, 0), InvalidReplicationFactor),
        (a_new("a", 1, 5), InvalidReplicationFactor),
        (a_new(""), InvalidTopicException),
        (a_new(".."), InvalidTopicException),
        (a_new("a b"), InvalidTopicException),
        (a_new("x" * 250), InvalidTopicException),
        (a_new("__cluster_metadata"), InvalidRequest),
        (a_new("a", no_such="1"), InvalidConfig),
        (a_new("a", retention_ms="abc"), InvalidConfig),
        (a_new("a", retention_ms=None), InvalidConfig),
        (a_new("a", segment_bytes="1"), InvalidConfig),
        (a_new("a", cleanup_policy="shred"), InvalidConfig),
    ],
)
async def test_an_invalid_topic_has_an_error_and_spoils_no_other(
    broker: UnitBroker, topic: CreatableTopic, error: type[KafkaError]
) -> None:
    response = await create(broker, topic, a_new("fine"))
    answer = {one.name: one for one in response.topics}
    assert answer[topic.name].error_code == error.code
    assert answer[topic.name].error_message
    assert answer["fine"].error_code == 0


async def test_existing_and_colliding_names_are_rejected(broker: UnitBroker) -> None:
    await create(broker, a_new("a.b"))
    taken = await create(broker, a_new("a.b"))
    alike = await create(broker, a_new("a_b"))
    assert taken.topics[0].error_code == TopicAlreadyExists.code
    assert alike.topics[0].error_code == InvalidTopicException.code


async def test_a_topic_named_twice_is_refused_once(broker: UnitBroker) -> None:
    response = await create(broker, a_new("a"), a_new("a", 2))
    assert [one.error_code for one in response.topics] == [InvalidRequest.code]


async def test_too_many_partitions_fail_the_whole_request(broker: UnitBroker) -> None:
    response = await create(broker, a_new("big", 100_000), a_new("small"))
    assert {one.error_code for one in response.topics} == {PolicyViolation.code}
    assert broker.image.topics == {}


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_no_topic_is_created_without_a_positive_timeout(
    broker: UnitBroker, timeout_ms: int
) -> None:
    response = await create(broker, a_new("a"), timeout_ms=timeout_ms)
    assert response.topics[0].error_code == RequestTimedOut.code
    assert broker.image.topics == {}


@pytest.mark.parametrize(
    ("assigned", "error"),
    [
        ({0: [1], 1: [1]}, None),
        ({0: [1], 2: [1]}, InvalidReplicaAssignment),
        ({0: [1, 1]}, InvalidReplicaAssignment),
        ({0: [99]}, InvalidReplicaAssignment),
        ({0: []}, InvalidReplicaAssignment),
    ],
)
async def test_replicas_can_be_assigned_by_hand(
    broker: UnitBroker, assigned: dict[int, list[int]], error: type[KafkaError] | None
) -> None:
    topic = a_new("a", -1, -1)
    topic.assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in assigned.items()
    ]
    response = await create(broker, topic)
    assert response.topics[0].error_code == (error.code if error else 0)


class TestCreatePartitions:
    async def grow(
        self, broker: UnitBroker, name: str, count: int, version: int = 3, **fields: Any
    ) -> int:
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        fields = {"timeout_ms": 1000, **fields}
        request = CreatePartitionsRequest(topics=[topic], **fields)
        response = await ask(broker, ApiKey.CREATE_PARTITIONS, request, version)
        code = response.results[0].error_code
        assert isinstance(code, int)
        return code

    @pytest.mark.parametrize("version", range(4))
    async def test_every_version_adds(self, broker: UnitBroker, version: int) -> None:
        await create(broker, a_new("a"))
        assert await self.grow(broker, "a", 3, version) == 0
        assert len(broker.image.topics["a"].partitions) == 3
        assert broker.log("a", 2).log_end_offset == 0

    @pytest.mark.parametrize(
        ("name", "count", "error"),
        [
            ("a", 1, InvalidPartitions),
            ("a", 0, InvalidPartitions),
            ("a", -1, InvalidPartitions),
            ("nope", 2, UnknownTopicOrPartition),
            ("", 2, UnknownTopicOrPartition),
        ],
    )
    async def test_impossible_numbers_of_partitions_are_rejected(
        self, broker: UnitBroker, name: str, count: int, error: type[KafkaError]
    ) -> None:
        await create(broker, a_new("a"))
        assert await self.grow(broker, name, count) == error.code

    async def test_validate_only_adds_nothing(self, broker: UnitBroker) -> None:
        await create(broker, a_new("a"))
        assert await self.grow(broker, "a", 3, validate_only=True) == 0
        assert len(broker.image.topics["a"].partitions) == 1

    async def test_a_timeout_of_zero_adds_no_partitions(self, broker: UnitBroker) -> None:
        await create(broker, a_new("a"))
        assert await self.grow(broker, "a", 3, timeout_ms=0) == RequestTimedOut.code


class TestDeleteTopics:
    async def delete(
        self, broker: UnitBroker, *topics: DeleteTopicState, timeout_ms: int = 1000
    ) -> DeleteTopicsResponse:
        request = DeleteTopicsRequest(topics=list(topics), timeout_ms=timeout_ms)
        response = await ask(broker, ApiKey.DELETE_TOPICS, request)
        assert isinstance(response, DeleteTopicsResponse)
        return response

    @pytest.mark.parametrize("version", range(1, 6))
    async def test_older_versions_delete_by_name(self, broker: UnitBroker, version: int) -> None:
        await create(broker, a_new("a"))
        request = DeleteTopicsRequest(topic_names=["a", "nope"], timeout_ms=1000)
        response = await ask(broker, ApiKey.DELETE_TOPICS, request, version)
        assert {one.name: one.error_code for one in response.responses} == {
            "a": 0,
            "nope": UnknownTopicOrPartition.code,
        }
        assert broker.image.topics == {}

    async def test_topics_are_deleted_by_name_or_id(self, broker: UnitBroker) -> None:
        await create(broker, a_new("a"), a_new("b"))
        b_id = broker.image.topics["b"].id
        response = await self.delete(
            broker, DeleteTopicState(name="a"), DeleteTopicState(topic_id=b_id)
        )
        assert sorted((one.name or "", one.error_code) for one in response.responses) == [
            ("a", 0),
            ("b", 0),
        ]
        with pytest.raises(UnknownTopicOrPartition):
            broker.partitions.led("a", 0)

    async def test_unknown_names_and_ids_have_their_errors(self, broker: UnitBroker) -> None:
        unknown = random_uuid()
        response = await self.delete(
            broker, DeleteTopicState(name="nope"), DeleteTopicState(topic_id=unknown)
        )
        answer = {one.name: (one.topic_id, one.error_code) for one in response.responses}
        assert answer["nope"][1] == UnknownTopicOrPartition.code
        assert answer[None] == (unknown, UnknownTopicId.code)

    async def test_a_topic_with_neither_name_nor_id_is_refused(self, broker: UnitBroker) -> None:
        response = await self.delete(broker, DeleteTopicState())
        assert response.responses[0].error_code == InvalidRequest.code

    async def test_deleting_can_be_switched_off(self, tmp_path: Path) -> None:
        broker = a_broker(tmp_path, delete_topic_enable=False)
        await create(broker, a_new("a"))
        newer = await self.delete(broker, DeleteTopicState(name="a"))
        request = DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000)
        older = await ask(broker, ApiKey.DELETE_TOPICS, request, 2)
        assert newer.responses[0].error_code == TopicDeletionDisabled.code
        assert older.responses[0].error_code == InvalidRequest.code
        assert "a" in broker.image.topics
