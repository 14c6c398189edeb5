"""Rights to groups, and to the topics that their offsets, members and descriptions name."""

from typing import Any

import pytest

from headrace.broker.api.groups.heartbeat import heartbeat
from headrace.broker.api.registry import Call
from headrace.errors import (
    GroupAuthorizationFailed,
    InvalidGroupId,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas import offset_fetch as fetch_schema
from headrace.protocol.schemas.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.protocol.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.protocol.schemas.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schemas.heartbeat import HeartbeatRequest
from headrace.protocol.schemas.list_groups import ListGroupsRequest
from headrace.protocol.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.schemas.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from headrace.security.acls import CLUSTER_NAME, Operation, ResourceType
from tests.builders.authorizers import Right
from tests.builders.guarded_nodes import GuardedNode

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
FORBIDDEN_TOPIC = TopicAuthorizationFailed.code
FORBIDDEN_GROUP = GroupAuthorizationFailed.code
BY_NAME = 9
USE: Right = (Operation.READ, GROUP, "readers")
SEE: Right = (Operation.DESCRIBE, GROUP, "readers")
READ_ORDERS: Right = (Operation.READ, TOPIC, "orders")
SEE_ORDERS: Right = (Operation.DESCRIBE, TOPIC, "orders")
SEE_USERS: Right = (Operation.DESCRIBE, TOPIC, "users")


async def commit(guarded: GuardedNode, *topics: str) -> dict[str, int]:
    partitions = [OffsetCommitRequestPartition(0, 5)]
    asked = OffsetCommitRequest(
        group_id="readers",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(one, partitions=partitions) for one in topics],
    )
    answer = await guarded.ask(ApiKey.OFFSET_COMMIT, asked, BY_NAME)
    return {one.name: one.partitions[0].error_code for one in answer.topics}


async def committed(guarded: GuardedNode, *topics: str) -> dict[str, tuple[int, int]]:
    """The error code and the offset of each topic; of all topics if none is named."""
    group = fetch_schema.OffsetFetchRequestGroup("readers", topics=None)
    if topics:
        group.topics = [
            fetch_schema.OffsetFetchRequestTopics(one, partition_indexes=[0]) for one in topics
        ]
    asked = fetch_schema.OffsetFetchRequest(groups=[group])
    (found,) = (await guarded.ask(ApiKey.OFFSET_FETCH, asked, BY_NAME)).groups
    if found.error_code:
        return {"": (found.error_code, -1)}
    rows = {one.name: one.partitions[0] for one in found.topics}
    return {name: (row.error_code, row.committed_offset) for name, row in rows.items()}


async def test_offsets_of_forbidden_topics_are_not_stored(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(USE, READ_ORDERS)
    codes = await commit(guarded, "orders", "users", "nothing")
    assert codes == {"orders": 0, "users": FORBIDDEN_TOPIC, "nothing": FORBIDDEN_TOPIC}
    guarded.grant(SEE, SEE_ORDERS, SEE_USERS)
    assert await committed(guarded, "users") == {"users": (0, -1)}


async def test_a_commit_of_forbidden_topics_only_creates_no_group(guarded: GuardedNode) -> None:
    guarded.grant(USE)
    assert await commit(guarded, "orders") == {"orders": FORBIDDEN_TOPIC}
    guarded.grant((Operation.DESCRIBE, CLUSTER, CLUSTER_NAME))
    assert (await guarded.ask(ApiKey.LIST_GROUPS, ListGroupsRequest())).groups == []


async def test_all_offsets_of_a_group_leave_out_hidden_topics(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(USE, READ_ORDERS, (Operation.READ, TOPIC, "users"))
    await commit(guarded, "orders", "users")
    guarded.grant(SEE, SEE_ORDERS)
    assert await committed(guarded) == {"orders": (0, 5)}
    hidden = await committed(guarded, "orders", "users")
    assert hidden == {"orders": (0, 5), "users": (FORBIDDEN_TOPIC, -1)}


async def test_offsets_of_a_forbidden_group_are_refused_for_the_group(guarded: GuardedNode) -> None:
    guarded.grant(SEE_ORDERS)
    assert await committed(guarded, "orders") == {"": (FORBIDDEN_GROUP, -1)}


async def test_offsets_are_deleted_for_topics_that_the_client_may_read(
    guarded: GuardedNode,
) -> None:
    guarded.grant(USE, READ_ORDERS)
    await commit(guarded, "orders")
    guarded.grant((Operation.DELETE, GROUP, "readers"))
    topics = [OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(0)])]
    asked = OffsetDeleteRequest(group_id="readers", topics=topics)
    answer = await guarded.ask(ApiKey.OFFSET_DELETE, asked)
    assert answer.topics[0].partitions[0].error_code == FORBIDDEN_TOPIC
    guarded.grant(SEE, SEE_ORDERS)
    assert await committed(guarded) == {"orders": (0, 5)}


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ((Operation.DESCRIBE, CLUSTER, CLUSTER_NAME), ["readers"]),
        (SEE, ["readers"]),
        ((Operation.DESCRIBE, GROUP, "others"), []),
    ],
    ids=["cluster", "group", "another group"],
)
async def test_lists_have_the_groups_that_the_client_may_see(
    guarded: GuardedNode, right: Right, expected: list[str]
) -> None:
    guarded.grant(USE, READ_ORDERS)
    await commit(guarded, "orders")
    guarded.grant(right)
    answer = await guarded.ask(ApiKey.LIST_GROUPS, ListGroupsRequest())
    assert [one.group_id for one in answer.groups] == expected


async def test_rights_come_before_the_validity_of_a_group_id(guarded: GuardedNode) -> None:
    asked = HeartbeatRequest(group_id="", member_id="m")
    assert (await guarded.ask(ApiKey.HEARTBEAT, asked)).error_code == FORBIDDEN_GROUP
    guarded.grant((Operation.READ, GROUP, ""))
    assert (await guarded.ask(ApiKey.HEARTBEAT, asked)).error_code == InvalidGroupId.code


async def test_a_repeated_heartbeat_asks_again_when_rules_change(guarded: GuardedNode) -> None:
    call = Call(guarded.broker, guarded.peer, 4, "unit")
    asked = HeartbeatRequest(group_id="readers", member_id="m")
    guarded.grant(USE)
    for _ in range(2):
        heartbeat(asked, call)
    assert guarded.rights.asked == [USE]
    guarded.grant()
    with pytest.raises(GroupAuthorizationFailed):
        heartbeat(asked, call)


async def test_coordinators_are_found_for_the_keys_that_the_client_may_see(
    guarded: GuardedNode,
) -> None:
    guarded.grant(SEE)
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["readers", "others"])
    answer = await guarded.ask(ApiKey.FIND_COORDINATOR, asked)
    codes = {one.key: one.error_code for one in answer.coordinators}
    assert codes == {"readers": 0, "others": FORBIDDEN_GROUP}


async def test_older_clients_get_the_error_of_their_only_key(guarded: GuardedNode) -> None:
    asked = FindCoordinatorRequest(key="tx", key_type=1)
    answer = await guarded.ask(ApiKey.FIND_COORDINATOR, asked, 3)
    assert answer.error_code == TransactionalIdAuthorizationFailed.code


# --- consumer groups ------------------------------------------------------------------------------


async def join(guarded: GuardedNode, member_id: str = "m", **subscription: Any) -> Any:
    asked = ConsumerGroupHeartbeatRequest(
        group_id="readers",
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=1000,
        topic_partitions=[],
        **subscription,
    )
    return await guarded.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, asked)


def topics_in(guarded: GuardedNode, answer: Any) -> set[str]:
    by_id = guarded.broker.image.topics_by_id
    return {by_id[one.topic_id].name for one in answer.assignment.topic_partitions}


async def test_a_member_must_be_allowed_to_see_all_topics_that_it_names(
    guarded: GuardedNode,
) -> None:
    guarded.grant(USE, SEE_ORDERS)
    refused = await join(guarded, subscribed_topic_names=["orders", "users"])
    assert refused.error_code == FORBIDDEN_TOPIC
    joined = await join(guarded, subscribed_topic_names=["orders"])
    assert topics_in(guarded, joined) == {"orders"}


async def test_a_pattern_finds_only_topics_that_the_member_may_see(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(USE, SEE_ORDERS)
    joined = await join(guarded, subscribed_topic_regex=".*")
    assert topics_in(guarded, joined) == {"orders"}


async def test_a_description_with_hidden_topics_is_refused_for_its_group(
    guarded: GuardedNode,
) -> None:
    guarded.grant(USE, SEE_ORDERS)
    await join(guarded, subscribed_topic_names=["orders"])
    asked = ConsumerGroupDescribeRequest(["readers"], include_authorized_operations=True)
    guarded.grant(SEE)
    (hidden,) = (await guarded.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, asked)).groups
    assert (hidden.error_code, hidden.members) == (FORBIDDEN_TOPIC, [])
    guarded.grant(SEE, SEE_ORDERS)
    (shown,) = (await guarded.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, asked)).groups
    assert (shown.error_code, len(shown.members)) == (0, 1)
    assert shown.authorized_operations == 1 << Operation.DESCRIBE


# --- streams groups -------------------------------------------------------------------------------


async def join_streams(guarded: GuardedNode) -> Any:
    topology = Topology(1, [Subtopology("0", ["orders"], [], [TopicInfo("app-changelog")])])
    asked = StreamsGroupHeartbeatRequest(
        group_id="app",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        topology=topology,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
    )
    return await guarded.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, asked)


STREAMS: tuple[Right, ...] = (
    (Operation.READ, GROUP, "app"),
    SEE_ORDERS,
    (Operation.DESCRIBE, TOPIC, "app-changelog"),
)


async def test_a_topology_with_hidden_topics_is_refused(guarded: GuardedNode) -> None:
    guarded.grant(*STREAMS[:2])
    assert (await join_streams(guarded)).error_code == FORBIDDEN_TOPIC


async def test_internal_topics_are_not_created_without_the_right(guarded: GuardedNode) -> None:
    guarded.grant(*STREAMS)
    answer = await join_streams(guarded)
    details = [one.status_detail for one in answer.status]
    assert any("Unauthorized to CREATE on topics app-changelog." in one for one in details)
    assert "app-changelog" not in guarded.broker.image.topics


@pytest.mark.parametrize(
    "right",
    [(Operation.CREATE, TOPIC, "app-changelog"), (Operation.CREATE, CLUSTER, CLUSTER_NAME)],
    ids=["topic", "cluster"],
)
async def test_internal_topics_are_created_with_the_right(
    guarded: GuardedNode, right: Right
) -> None:
    guarded.grant(*STREAMS, right)
    assert (await join_streams(guarded)).error_code == 0
    assert "app-changelog" in guarded.broker.image.topics
