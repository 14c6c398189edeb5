"""Topics that a client may not see, in Metadata and DescribeTopicPartitions."""

from typing import Any

import pytest

from headrace.broker.authorized_operations import NOT_REQUESTED
from headrace.errors import TopicAuthorizationFailed, UnknownTopicId, UnknownTopicOrPartition
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_cluster import DescribeClusterRequest
from headrace.protocol.schemas.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.uuids import ZERO, random_uuid
from headrace.security.acls import CLUSTER_NAME, Operation, ResourceType
from tests.builders.authorizers import Right
from tests.builders.guarded_nodes import GuardedNode

TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER
FORBIDDEN, UNKNOWN = TopicAuthorizationFailed.code, UnknownTopicOrPartition.code
SEE_ORDERS: Right = (Operation.DESCRIBE, TOPIC, "orders")
SEE_NEWS: Right = (Operation.DESCRIBE, TOPIC, "news")


async def metadata(node: GuardedNode, *names: str, **fields: Any) -> Any:
    topics = [MetadataRequestTopic(name=name) for name in names] if names else None
    asked = MetadataRequest(topics=topics, **fields)
    return await node.ask(ApiKey.METADATA, asked, fields.get("version"))


async def codes(node: GuardedNode, *names: str, **fields: Any) -> dict[str, int]:
    answer = await metadata(node, *names, **fields)
    return {topic.name: topic.error_code for topic in answer.topics}


async def test_a_list_of_all_topics_leaves_out_hidden_ones(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(SEE_ORDERS)
    assert await codes(guarded) == {"orders": 0}


async def test_hidden_topics_look_the_same_whether_they_exist_or_not(guarded: GuardedNode) -> None:
    answer = await metadata(guarded, "orders", "nothing")
    shown = {(one.error_code, one.topic_id, len(one.partitions)) for one in answer.topics}
    assert shown == {(FORBIDDEN, ZERO, 0)}
    assert {topic.name for topic in answer.topics} == {"orders", "nothing"}


async def test_a_hidden_topic_that_is_named_by_id_keeps_its_name(guarded: GuardedNode) -> None:
    topic_id, unknown = guarded.broker.image.topics["orders"].id, random_uuid()
    topics = [MetadataRequestTopic(topic_id=one, name=None) for one in (topic_id, unknown)]
    answer = await guarded.ask(ApiKey.METADATA, MetadataRequest(topics=topics))
    found = {one.topic_id: (one.name, one.error_code) for one in answer.topics}
    assert found == {topic_id: (None, FORBIDDEN), unknown: (None, UnknownTopicId.code)}


@pytest.mark.parametrize(
    "right",
    [(Operation.CREATE, TOPIC, "news"), (Operation.CREATE, CLUSTER, CLUSTER_NAME)],
    ids=["topic", "cluster"],
)
async def test_topics_are_created_for_clients_that_may(guarded: GuardedNode, right: Right) -> None:
    guarded.grant(SEE_NEWS, right)
    assert await codes(guarded, "news") == {"news": UNKNOWN}
    assert await guarded.creates("news")


async def test_no_topic_is_created_for_a_client_without_the_right(guarded: GuardedNode) -> None:
    guarded.grant(SEE_NEWS)
    assert await codes(guarded, "news") == {"news": FORBIDDEN}
    assert not await guarded.creates("news")


async def test_a_client_that_wants_no_creation_needs_no_right_to_it(guarded: GuardedNode) -> None:
    guarded.grant(SEE_NEWS)
    assert await codes(guarded, "news", allow_auto_topic_creation=False) == {"news": UNKNOWN}


async def test_a_cached_answer_ends_with_the_rules(guarded: GuardedNode) -> None:
    guarded.grant(SEE_ORDERS)
    assert await codes(guarded, "orders") == {"orders": 0}
    guarded.grant()
    assert await codes(guarded, "orders") == {"orders": FORBIDDEN}


async def test_a_cached_answer_is_not_for_others(guarded: GuardedNode) -> None:
    guarded.grant(SEE_ORDERS)
    assert await codes(guarded, "orders") == {"orders": 0}
    guarded.rights.refused = "eve"
    with guarded.client("eve"):
        assert await codes(guarded, "orders") == {"orders": FORBIDDEN}
    assert await codes(guarded, "orders") == {"orders": 0}


async def test_authorized_operations_are_those_of_the_client(guarded: GuardedNode) -> None:
    guarded.grant(SEE_ORDERS, (Operation.READ, TOPIC, "orders"))
    answer = await metadata(guarded, "orders", include_topic_authorized_operations=True)
    bits = 1 << Operation.DESCRIBE | 1 << Operation.READ
    assert [one.topic_authorized_operations for one in answer.topics] == [bits]


async def test_a_hidden_topic_has_no_authorized_operations(guarded: GuardedNode) -> None:
    answer = await metadata(guarded, "orders", include_topic_authorized_operations=True)
    assert [one.topic_authorized_operations for one in answer.topics] == [NOT_REQUESTED]


@pytest.mark.parametrize(
    ("rights", "bits"),
    [
        ([], 0),
        ([(Operation.ALTER, CLUSTER, CLUSTER_NAME)], 0),
        ([(Operation.DESCRIBE, CLUSTER, CLUSTER_NAME)], 1 << Operation.DESCRIBE),
    ],
)
async def test_operations_on_the_cluster_are_shown_to_clients_that_may_describe_it(
    guarded: GuardedNode, rights: list[Right], bits: int
) -> None:
    guarded.grant(*rights)
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer = await guarded.ask(ApiKey.DESCRIBE_CLUSTER, asked)
    assert answer.cluster_authorized_operations == bits
    assert answer.brokers


async def test_pages_of_partitions_leave_out_hidden_topics(guarded: GuardedNode) -> None:
    for name in ("hidden", "news"):
        await guarded.create_topic(name)
    guarded.grant(SEE_ORDERS, SEE_NEWS)
    first = await guarded.ask(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        DescribeTopicPartitionsRequest(response_partition_limit=1),
    )
    assert [topic.name for topic in first.topics] == ["news"]
    cursor = DescribeTopicPartitionsRequestCursor(first.next_cursor.topic_name, 0)
    second = await guarded.ask(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, DescribeTopicPartitionsRequest(cursor=cursor)
    )
    assert [topic.name for topic in second.topics] == ["orders"]


async def test_hidden_topics_that_are_named_come_last_with_an_error(guarded: GuardedNode) -> None:
    guarded.grant(SEE_ORDERS)
    names = ["hidden", "orders"]
    asked = DescribeTopicPartitionsRequest(topics=[TopicRequest(name) for name in names])
    answer = await guarded.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, asked)
    found = [(topic.name, topic.error_code) for topic in answer.topics]
    assert found == [("orders", 0), ("hidden", FORBIDDEN)]
