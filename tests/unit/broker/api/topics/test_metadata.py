"""Metadata: leaders and brokers in fourteen versions."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.errors import (
    InvalidRequest,
    InvalidTopicException,
    LeaderNotAvailable,
    ListenerNotFound,
    ReplicaNotAvailable,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from headrace.protocol.uuids import ZERO, random_uuid
from tests.unit.broker.api.builders import (
    LISTENER,
    NODE_ID,
    FixedPeer,
    UnitBroker,
    a_broker,
    a_topic,
    ask,
    image_with,
)

NOT_REQUESTED = -(2**31)


def asking_for(*names: str | None, **fields: Any) -> MetadataRequest:
    fields.setdefault("allow_auto_topic_creation", False)
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, **fields)


def broker_with(directory: Path, *topics: Any, **settings: Any) -> UnitBroker:
    broker = a_broker(directory, **settings)
    broker.controller.image = image_with(*topics)
    return broker


async def metadata(
    broker: UnitBroker, request: MetadataRequest, version: int = 13, peer: FixedPeer | None = None
) -> MetadataResponse:
    response = await ask(broker, ApiKey.METADATA, request, version, peer)
    assert isinstance(response, MetadataResponse)
    return response


async def created(broker: UnitBroker) -> None:
    """Wait until what clients asked for is there."""
    while broker.topic_creation.under_way:
        await asyncio.sleep(0)


def by_name(response: MetadataResponse) -> dict[str | None, MetadataResponseTopic]:
    return {topic.name: topic for topic in response.topics}


@pytest.mark.parametrize("version", range(14))
async def test_every_version_has_brokers_and_leaders(tmp_path: Path, version: int) -> None:
    """PRD-7: every broker reports the leaders, so clients send records to the leader directly."""
    topic = a_topic("orders", 3, leader_epoch=4)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    response = await metadata(broker_with(tmp_path, topic), request, version)
    assert [(one.node_id, one.host, one.port) for one in response.brokers] == [
        (NODE_ID, "broker.example", 9092)
    ]
    answer = response.topics[0]
    assert (answer.error_code, answer.name) == (0, "orders")
    assert [one.partition_index for one in answer.partitions] == [0, 1, 2]
    assert {one.leader_id for one in answer.partitions} == {NODE_ID}
    assert {one.leader_epoch for one in answer.partitions} == {4 if version >= 7 else -1}
    assert answer.topic_id == (topic.id if version >= 10 else ZERO)
    assert response.cluster_id == ("unit-test-cluster-id-0" if version >= 2 else None)
    assert response.controller_id == (NODE_ID if version >= 1 else -1)


async def test_null_asks_for_all_topics_and_an_empty_list_for_none(tmp_path: Path) -> None:
    broker = broker_with(tmp_path, a_topic("a"), a_topic("b"))
    everything = await metadata(broker, MetadataRequest(topics=None))
    nothing = await metadata(broker, MetadataRequest(topics=[]))
    assert sorted(topic.name or "" for topic in everything.topics) == ["a", "b"]
    assert nothing.topics == []
    assert len(nothing.brokers) == 1


async def test_in_version_0_an_empty_list_asks_for_all_topics(tmp_path: Path) -> None:
    broker = broker_with(tmp_path, a_topic("a"))
    response = await metadata(broker, MetadataRequest(topics=[]), version=0)
    assert [topic.name for topic in response.topics] == ["a"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nope", UnknownTopicOrPartition),
        ("", InvalidTopicException),
        ("..", InvalidTopicException),
        ("a/b", InvalidTopicException),
        ("x" * 250, InvalidTopicException),
        ("__cluster_metadata", UnknownTopicOrPartition),
    ],
)
async def test_a_missing_topic_has_an_error_of_its_own(
    tmp_path: Path, name: str, error: type[Exception]
) -> None:
    response = await metadata(broker_with(tmp_path, a_topic("there")), asking_for(name, "there"))
    answer = by_name(response)
    assert answer[name].error_code == error.code  # type: ignore[attr-defined]
    assert answer["there"].error_code == 0


async def test_a_topic_named_twice_is_described_once(tmp_path: Path) -> None:
    response = await metadata(broker_with(tmp_path, a_topic("a")), asking_for("a", "a"))
    assert [topic.name for topic in response.topics] == ["a"]


async def test_topics_are_found_by_id(tmp_path: Path) -> None:
    topic, unknown = a_topic("a"), random_uuid()
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(name=None, topic_id=topic.id),
            MetadataRequestTopic(name=None, topic_id=unknown),
        ]
    )
    answer = {
        one.topic_id: one for one in (await metadata(broker_with(tmp_path, topic), request)).topics
    }
    assert (answer[topic.id].name, answer[topic.id].error_code) == ("a", 0)
    assert (answer[unknown].name, answer[unknown].error_code) == (None, UnknownTopicId.code)


@pytest.mark.parametrize("version", [10, 11])
async def test_ids_are_refused_before_version_12(tmp_path: Path, version: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a", topic_id=random_uuid())])
    response = await metadata(broker_with(tmp_path, a_topic("a")), request, version)
    assert [topic.error_code for topic in response.topics] == [InvalidRequest.code]
    assert response.brokers == []


async def test_a_topic_without_name_and_id_is_an_invalid_request(tmp_path: Path) -> None:
    response = await metadata(broker_with(tmp_path), asking_for(None))
    assert [topic.error_code for topic in response.topics] == [InvalidRequest.code]


async def test_authorized_operations_are_included_on_request(tmp_path: Path) -> None:
    broker = broker_with(tmp_path, a_topic("a"))
    request = asking_for("a", include_topic_authorized_operations=True)
    request.include_cluster_authorized_operations = True
    asked = await metadata(broker, request, version=10)
    silent = await metadata(broker, asking_for("a"), version=10)
    assert asked.topics[0].topic_authorized_operations == 3576
    assert asked.cluster_authorized_operations == 8096
    assert silent.topics[0].topic_authorized_operations == NOT_REQUESTED
    assert silent.cluster_authorized_operations == NOT_REQUESTED


async def test_internal_topics_are_marked(tmp_path: Path) -> None:
    broker = broker_with(tmp_path, a_topic("__consumer_offsets"), a_topic("__mine"))
    answer = by_name(await metadata(broker, MetadataRequest(topics=None)))
    assert answer["__consumer_offsets"].is_internal
    assert not answer["__mine"].is_internal


async def test_a_partition_without_leader_has_an_error(tmp_path: Path) -> None:
    broker = broker_with(tmp_path, a_topic("a", leader=-1))
    partition = (await metadata(broker, asking_for("a"))).topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (LeaderNotAvailable.code, -1)
    assert partition.replica_nodes == [NODE_ID]


async def test_partitions_without_leader_are_counted_with_every_answer(tmp_path: Path) -> None:
    """Also with those that are kept as bytes and sent again."""
    broker = broker_with(tmp_path, a_topic("t", 2, leader=-1))
    for _ in range(3):
        await metadata(broker, asking_for("t"))
    assert broker.metrics.requests.api(ApiKey.METADATA).errors == {LeaderNotAvailable.code: 6}


@pytest.mark.parametrize(
    ("version", "error"), [(5, LeaderNotAvailable), (6, ListenerNotFound), (13, ListenerNotFound)]
)
async def test_a_leader_without_this_listener_is_left_out(
    tmp_path: Path, version: int, error: type[Exception]
) -> None:
    peer = FixedPeer()
    peer.listener = "OTHER"
    response = await metadata(broker_with(tmp_path, a_topic("a")), asking_for("a"), version, peer)
    partition = response.topics[0].partitions[0]
    assert response.brokers == []
    assert (partition.error_code, partition.leader_id) == (error.code, -1)  # type: ignore[attr-defined]
    assert partition.offline_replicas == [NODE_ID]


async def test_replicas_on_absent_brokers_are_offline(tmp_path: Path) -> None:
    broker = broker_with(tmp_path, a_topic("a", replicas=(NODE_ID, 9), directories=()))
    partition = (await metadata(broker, asking_for("a"))).topics[0].partitions[0]
    assert partition.replica_nodes == [NODE_ID, 9]
    assert partition.offline_replicas == [9]


async def test_a_replica_on_a_failed_disk_is_offline(tmp_path: Path) -> None:
    broker = broker_with(tmp_path, a_topic("a", directories=(b"x" * 16,)))
    partition = (await metadata(broker, asking_for("a"))).topics[0].partitions[0]
    assert partition.offline_replicas == [NODE_ID]


async def test_version_0_hides_absent_replicas_and_complains(tmp_path: Path) -> None:
    broker = broker_with(tmp_path, a_topic("a", replicas=(NODE_ID, 9), isr=(NODE_ID, 9)))
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    partition = (await metadata(broker, request, version=0)).topics[0].partitions[0]
    assert partition.error_code == ReplicaNotAvailable.code
    assert partition.replica_nodes == partition.isr_nodes == [NODE_ID]


async def test_fenced_brokers_are_left_out(tmp_path: Path) -> None:
    broker = broker_with(tmp_path)
    this = broker.image.brokers[NODE_ID]
    fenced = {NODE_ID: msgspec.structs.replace(this, fenced=True)}
    broker.controller.image = image_with(brokers=fenced)
    response = await metadata(broker, MetadataRequest(topics=[]))
    assert response.brokers == []
    assert response.controller_id == -1


class TestTopicsCreatedByAsking:
    """LOG-6: asking for a topic creates it when auto-create is on, and is refused when off."""

    async def test_a_missing_topic_is_created_for_the_next_request(self, tmp_path: Path) -> None:
        broker = a_broker(tmp_path, num_partitions=4)
        request = asking_for("new", allow_auto_topic_creation=True)
        assert by_name(await metadata(broker, request))["new"].error_code == (
            UnknownTopicOrPartition.code
        )
        await created(broker)
        answer = by_name(await metadata(broker, request))
        assert (answer["new"].error_code, len(answer["new"].partitions)) == (0, 4)

    async def test_many_requests_create_the_topic_once(self, tmp_path: Path) -> None:
        broker = a_broker(tmp_path)
        request = asking_for("new", allow_auto_topic_creation=True)
        for _ in range(3):
            await metadata(broker, request)
        await created(broker)
        assert broker.controller.decisions == 1

    async def test_the_client_can_forbid_it(self, tmp_path: Path) -> None:
        broker = a_broker(tmp_path)
        answer = by_name(await metadata(broker, asking_for("new")))
        assert answer["new"].error_code == UnknownTopicOrPartition.code
        assert broker.image.topics == {}

    async def test_the_broker_can_forbid_it(self, tmp_path: Path) -> None:
        broker = a_broker(tmp_path, auto_create_topics_enable=False)
        request = asking_for("new", allow_auto_topic_creation=True)
        answer = by_name(await metadata(broker, request))
        assert answer["new"].error_code == UnknownTopicOrPartition.code

    async def test_before_version_4_clients_cannot_forbid_it(self, tmp_path: Path) -> None:
        broker = a_broker(tmp_path)
        request = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
        await metadata(broker, request, version=3)
        await created(broker)
        assert set(broker.image.topics) == {"new"}

    async def test_bad_names_create_nothing_and_spoil_nothing(self, tmp_path: Path) -> None:
        broker = a_broker(tmp_path)
        request = asking_for("a/b", "fine", allow_auto_topic_creation=True)
        answer = by_name(await metadata(broker, request))
        assert answer["a/b"].error_code == InvalidTopicException.code
        assert answer["fine"].error_code == UnknownTopicOrPartition.code
        await created(broker)
        assert set(broker.image.topics) == {"fine"}

    async def test_internal_topics_get_the_shape_that_their_owners_give_them(
        self, tmp_path: Path
    ) -> None:
        broker = a_broker(tmp_path, offsets_topic_num_partitions=7)
        request = asking_for("__consumer_offsets", allow_auto_topic_creation=True)
        answer = (await metadata(broker, request)).topics[0]
        assert (answer.error_code, answer.is_internal) == (UnknownTopicOrPartition.code, True)
        await created(broker)
        assert len(broker.image.topics["__consumer_offsets"].partitions) == 7

    async def test_a_factor_that_cannot_be_leaves_the_topic_unknown(self, tmp_path: Path) -> None:
        broker = a_broker(tmp_path)
        broker.controller.defaults = msgspec.structs.replace(
            broker.controller.defaults, default_replication_factor=3
        )
        request = asking_for("new", allow_auto_topic_creation=True)
        await metadata(broker, request)
        await created(broker)
        answer = (await metadata(broker, request)).topics[0]
        assert answer.error_code == UnknownTopicOrPartition.code
        await created(broker)

    async def test_ids_and_lists_of_all_topics_create_nothing(self, tmp_path: Path) -> None:
        broker = a_broker(tmp_path)
        by_id = [MetadataRequestTopic(name=None, topic_id=random_uuid())]
        await metadata(broker, MetadataRequest(topics=by_id))
        await metadata(broker, MetadataRequest(topics=None))
        assert broker.controller.decisions == 0


class TestAnswersKeptAsBytes:
    """The second answer to a question is the first one, until something in it has changed."""

    async def test_an_answer_is_the_same_the_second_time(self, tmp_path: Path) -> None:
        broker = broker_with(tmp_path, a_topic("a", 2))
        first = await metadata(broker, asking_for("a"))
        assert await metadata(broker, asking_for("a")) == first

    async def test_a_new_leader_changes_the_cached_answer(self, tmp_path: Path) -> None:
        broker = broker_with(tmp_path, topic := a_topic("a"))
        await metadata(broker, asking_for("a"))
        moved = msgspec.structs.replace(
            topic, partitions=(msgspec.structs.replace(topic.partitions[0], leader=-1),)
        )
        broker.controller.image = image_with(moved, brokers=broker.image.brokers)
        partition = (await metadata(broker, asking_for("a"))).topics[0].partitions[0]
        assert partition.leader_id == -1

    async def test_a_deleted_topic_is_gone(self, tmp_path: Path) -> None:
        broker = broker_with(tmp_path, a_topic("a"))
        await metadata(broker, asking_for("a"))
        broker.controller.image = image_with(brokers=broker.image.brokers)
        answer = (await metadata(broker, asking_for("a"))).topics[0]
        assert answer.error_code == UnknownTopicOrPartition.code

    async def test_a_removed_broker_leaves_the_cached_answer(self, tmp_path: Path) -> None:
        broker = broker_with(tmp_path, topic := a_topic("a"))
        await metadata(broker, asking_for("a"))
        broker.controller.image = image_with(topic, brokers={})
        assert (await metadata(broker, asking_for("a"))).brokers == []

    async def test_a_new_topic_is_in_the_list_of_all(self, tmp_path: Path) -> None:
        broker = broker_with(tmp_path, topic := a_topic("a"))
        everything = MetadataRequest(topics=None)
        await metadata(broker, everything)
        image = image_with(topic, a_topic("b"), brokers=broker.image.brokers)
        broker.controller.image = image
        assert len((await metadata(broker, everything)).topics) == 2

    async def test_a_request_that_is_larger_than_its_answer_is_not_kept(
        self, tmp_path: Path
    ) -> None:
        """SEC-7: requests that name a topic 50,000 times would fill the memory."""
        topic = a_topic("a")
        broker = broker_with(tmp_path, topic)
        await metadata(broker, asking_for("a", "a"))
        named = MetadataRequestTopic(topic_id=topic.id, name="n" * 30_000)
        await metadata(broker, MetadataRequest(topics=[named]))
        assert not broker.metadata_answers._kept
        await metadata(broker, asking_for("a"))
        assert len(broker.metadata_answers._kept) == 1

    async def test_cached_answers_are_kept_by_options_and_listener(self, tmp_path: Path) -> None:
        broker = broker_with(tmp_path, a_topic("a"))
        await metadata(broker, asking_for("a"))
        request = asking_for("a", include_topic_authorized_operations=True)
        assert (await metadata(broker, request)).topics[0].topic_authorized_operations == 3576
        peer = FixedPeer()
        peer.listener = f"NOT_{LISTENER}"
        assert (await metadata(broker, asking_for("a"), peer=peer)).brokers == []
