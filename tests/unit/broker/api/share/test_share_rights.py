"""Rights of members and administrators of share groups."""

from typing import Any

from headrace.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas import share_acknowledge, share_fetch
from headrace.protocol.schemas.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from headrace.protocol.schemas.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from headrace.protocol.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from headrace.protocol.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest
from headrace.security.acls import Operation, ResourceType
from tests.builders.authorizers import Right
from tests.builders.guarded_nodes import GuardedNode

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
FORBIDDEN, FORBIDDEN_GROUP = TopicAuthorizationFailed.code, GroupAuthorizationFailed.code
USE: Right = (Operation.READ, GROUP, "workers")
SEE: Right = (Operation.DESCRIBE, GROUP, "workers")
READ_ORDERS: Right = (Operation.READ, TOPIC, "orders")
SEE_ORDERS: Right = (Operation.DESCRIBE, TOPIC, "orders")


def ids(guarded: GuardedNode, *names: str) -> list[bytes]:
    return [guarded.broker.image.topics[one].id for one in names]


async def test_a_member_must_be_allowed_to_see_its_topics(guarded: GuardedNode) -> None:
    guarded.grant(USE)
    asked = ShareGroupHeartbeatRequest("workers", "m", 0, subscribed_topic_names=["orders"])
    answer = await guarded.ask(ApiKey.SHARE_GROUP_HEARTBEAT, asked)
    assert answer.error_code == FORBIDDEN


async def fetched(guarded: GuardedNode, *topics: str) -> dict[bytes, tuple[int, str | None]]:
    asked = share_fetch.ShareFetchRequest(
        group_id="workers",
        member_id="m",
        share_session_epoch=0,
        max_records=1,
        max_bytes=1000,
        topics=[
            share_fetch.FetchTopic(one, [share_fetch.FetchPartition(0)])
            for one in ids(guarded, *topics)
        ],
    )
    answer = await guarded.ask(ApiKey.SHARE_FETCH, asked)
    rows = {one.topic_id: one.partitions[0] for one in answer.responses}
    return {topic_id: (row.error_code, row.error_message) for topic_id, row in rows.items()}


async def test_records_of_forbidden_topics_are_refused(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(USE, READ_ORDERS)
    await altered(guarded, "orders")
    orders, users = ids(guarded, "orders", "users")
    answer = await fetched(guarded, "orders", "users")
    assert answer == {
        orders: (0, None),
        users: (FORBIDDEN, "the client may not read the topic"),
    }


async def test_acknowledgements_need_the_right_to_the_topic(guarded: GuardedNode) -> None:
    guarded.grant(USE, READ_ORDERS)
    await fetched(guarded, "orders")
    guarded.grant(USE)
    batches = [share_acknowledge.AcknowledgementBatch(0, 0, [1])]
    asked = share_acknowledge.ShareAcknowledgeRequest(
        group_id="workers",
        member_id="m",
        share_session_epoch=1,
        topics=[
            share_acknowledge.AcknowledgeTopic(
                one, [share_acknowledge.AcknowledgePartition(0, batches)]
            )
            for one in ids(guarded, "orders")
        ],
    )
    answer = await guarded.ask(ApiKey.SHARE_ACKNOWLEDGE, asked)
    assert answer.responses[0].partitions[0].error_code == FORBIDDEN


async def altered(guarded: GuardedNode, *topics: str) -> dict[str, int]:
    partitions = [AlterShareGroupOffsetsRequestPartition(0, 0)]
    asked = AlterShareGroupOffsetsRequest(
        "workers", [AlterShareGroupOffsetsRequestTopic(one, partitions) for one in topics]
    )
    answer = await guarded.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, asked)
    return {one.topic_name: one.partitions[0].error_code for one in answer.responses}


async def test_offsets_of_forbidden_topics_are_not_altered(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(USE, READ_ORDERS)
    codes = await altered(guarded, "orders", "users", "nothing")
    assert codes == {"orders": 0, "users": FORBIDDEN, "nothing": FORBIDDEN}


async def test_altering_only_forbidden_topics_creates_no_group(guarded: GuardedNode) -> None:
    guarded.grant(USE)
    before = guarded.state
    assert await altered(guarded, "orders") == {"orders": FORBIDDEN}
    assert guarded.state == before


async def test_offsets_are_deleted_for_topics_that_the_client_may_read(
    guarded: GuardedNode,
) -> None:
    await guarded.create_topic("users")
    guarded.grant(USE, READ_ORDERS, (Operation.READ, TOPIC, "users"))
    await altered(guarded, "orders", "users")
    guarded.grant((Operation.DELETE, GROUP, "workers"), READ_ORDERS)
    asked = DeleteShareGroupOffsetsRequest(
        "workers", [DeleteShareGroupOffsetsRequestTopic(one) for one in ("orders", "users")]
    )
    answer = await guarded.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, asked)
    codes = {one.topic_name: one.error_code for one in answer.responses}
    assert codes == {"orders": 0, "users": FORBIDDEN}


async def described(guarded: GuardedNode, *topics: str) -> Any:
    group = DescribeShareGroupOffsetsRequestGroup("workers", topics=None)
    if topics:
        group.topics = [DescribeShareGroupOffsetsRequestTopic(one, [0]) for one in topics]
    asked = DescribeShareGroupOffsetsRequest([group])
    (found,) = (await guarded.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, asked)).groups
    return found


async def test_all_offsets_of_a_group_leave_out_hidden_topics(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(USE, READ_ORDERS, (Operation.READ, TOPIC, "users"))
    await altered(guarded, "orders", "users")
    guarded.grant(SEE, SEE_ORDERS)
    assert [one.topic_name for one in (await described(guarded)).topics] == ["orders"]


async def test_offsets_of_hidden_topics_that_are_named_are_refused(guarded: GuardedNode) -> None:
    guarded.grant(SEE, SEE_ORDERS)
    found = await described(guarded, "orders", "users")
    codes = {one.topic_name: one.partitions[0].error_code for one in found.topics}
    assert codes == {"orders": 0, "users": FORBIDDEN}


async def test_offsets_of_a_forbidden_group_are_refused_for_the_group(guarded: GuardedNode) -> None:
    guarded.grant(SEE_ORDERS)
    assert (await described(guarded, "orders")).error_code == FORBIDDEN_GROUP
