"""The APIs of classic groups and offsets, in every version, through their wire form."""

from pathlib import Path
from typing import Any

import pytest

from headrace.broker.api.registry import APIS
from headrace.errors import (
    GroupIdNotFound,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    MemberIdRequired,
    NonEmptyGroup,
    UnknownMemberId,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.delete_groups import DeleteGroupsRequest
from headrace.protocol.schemas.describe_groups import DescribeGroupsRequest
from headrace.protocol.schemas.heartbeat import HeartbeatRequest
from headrace.protocol.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.schemas.leave_group import LeaveGroupRequest, MemberIdentity
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
from headrace.protocol.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headrace.protocol.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from headrace.protocol.uuids import ZERO, random_uuid
from tests.unit.broker.api.builders import UnitBroker, a_broker, a_topic, ask, image_with

GROUP = "readers"
TOPIC = a_topic("orders", 2)


def versions(key: ApiKey) -> range:
    return APIS[key].versions


@pytest.fixture
async def broker(tmp_path: Path) -> UnitBroker:
    made = a_broker(tmp_path, offsets_topic_num_partitions=1, group_initial_rebalance_delay_ms=0)
    made.controller.image = image_with(TOPIC)
    await made.groups.ensure_topic()
    return made


async def joined(broker: UnitBroker, version: int = 9, **changes: Any) -> Any:
    """A member that has joined, as a client does it."""
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"\x00\x00\x00\x00\x00\x00")],
    )
    if version >= 1:
        request.rebalance_timeout_ms = 10_000
    for name, value in changes.items():
        setattr(request, name, value)
    answer = await ask(broker, ApiKey.JOIN_GROUP, request, version)
    if answer.error_code == MemberIdRequired.code:
        request.member_id = answer.member_id
        answer = await ask(broker, ApiKey.JOIN_GROUP, request, version)
    return answer


async def stable(broker: UnitBroker, version: int = 5) -> Any:
    member = await joined(broker)
    assignments = [SyncGroupRequestAssignment(member.member_id, b"all")]
    request = SyncGroupRequest(GROUP, 1, member.member_id, assignments=assignments)
    if version >= 5:
        request.protocol_type, request.protocol_name = "consumer", "range"
    share = await ask(broker, ApiKey.SYNC_GROUP, request, version)
    assert (share.error_code, share.assignment) == (0, b"all")
    return member


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
async def test_a_member_joins(broker: UnitBroker, version: int) -> None:
    """CON-3"""
    answer = await joined(broker, version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.leader == answer.member_id == answer.members[0].member_id
    assert answer.member_id.startswith("unit-")


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"group_id": ""}, InvalidGroupId),
        ({"session_timeout_ms": 5}, InvalidSessionTimeout),
        ({"member_id": "ghost"}, UnknownMemberId),
        ({"protocols": []}, InconsistentGroupProtocol),
    ],
)
async def test_an_invalid_join_is_rejected(
    broker: UnitBroker, version: int, changes: dict[str, Any], error: type[InvalidGroupId]
) -> None:
    assert (await joined(broker, version, **changes)).error_code == error.code


@pytest.mark.parametrize("version", versions(ApiKey.SYNC_GROUP))
async def test_a_member_gets_its_assignment_by_a_sync(broker: UnitBroker, version: int) -> None:
    """CON-3"""
    await stable(broker, version)


async def test_a_sync_has_to_name_the_protocol(broker: UnitBroker) -> None:
    member = await joined(broker)
    request = SyncGroupRequest(GROUP, 1, member.member_id)
    answer = await ask(broker, ApiKey.SYNC_GROUP, request, 5)
    assert answer.error_code == InconsistentGroupProtocol.code


@pytest.mark.parametrize("version", versions(ApiKey.HEARTBEAT))
async def test_only_members_send_heartbeats(broker: UnitBroker, version: int) -> None:
    """CON-5"""
    member = await stable(broker)
    for member_id, code in ((member.member_id, 0), ("ghost", UnknownMemberId.code)):
        request = HeartbeatRequest(GROUP, 1, member_id)
        assert (await ask(broker, ApiKey.HEARTBEAT, request, version)).error_code == code


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
async def test_a_member_leaves(broker: UnitBroker, version: int) -> None:
    """CON-3"""
    member = await stable(broker)
    for member_id, code in (("ghost", UnknownMemberId.code), (member.member_id, 0)):
        request = (
            LeaveGroupRequest(GROUP, members=[MemberIdentity(member_id)])
            if version >= 3
            else LeaveGroupRequest(GROUP, member_id)
        )
        answer = await ask(broker, ApiKey.LEAVE_GROUP, request, version)
        response = answer.members[0].error_code if version >= 3 else answer.error_code
        assert response == code


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
async def test_leaving_an_unknown_group_is_rejected(broker: UnitBroker, version: int) -> None:
    request = (
        LeaveGroupRequest("nowhere", members=[MemberIdentity("m")])
        if version >= 3
        else LeaveGroupRequest("nowhere", "m")
    )
    answer = await ask(broker, ApiKey.LEAVE_GROUP, request, version)
    response = answer.members[0].error_code if version >= 3 else answer.error_code
    assert response == UnknownMemberId.code


async def committed(broker: UnitBroker, version: int = 9, offset: int = 5) -> list[int]:
    """Commit for a partition that is there and one that is not; the codes."""
    name, topic_id = ("", TOPIC.id) if version >= 10 else (TOPIC.name, ZERO)
    partitions = [OffsetCommitRequestPartition(n, offset, -1, "note") for n in (1, 7)]
    unknown = OffsetCommitRequestTopic(
        "" if version >= 10 else "nowhere",
        random_uuid() if version >= 10 else ZERO,
        [OffsetCommitRequestPartition(0, 1)],
    )
    request = OffsetCommitRequest(
        GROUP, topics=[OffsetCommitRequestTopic(name, topic_id, partitions), unknown]
    )
    answer = await ask(broker, ApiKey.OFFSET_COMMIT, request, version)
    return [one.error_code for topic in answer.topics for one in topic.partitions]


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
async def test_offsets_are_committed(broker: UnitBroker, version: int) -> None:
    """CON-6"""
    no_topic = UnknownTopicId.code if version >= 10 else UnknownTopicOrPartition.code
    assert await committed(broker, version) == [0, UnknownTopicOrPartition.code, no_topic]
    found = broker.groups.shard_for(GROUP).state.offsets.find(GROUP, "orders", 1)
    assert found is not None
    assert (found.offset, found.metadata, found.topic_id) == (5, "note", TOPIC.id)


async def test_a_group_without_a_name_commits_and_fetches_as_of_old(broker: UnitBroker) -> None:
    request = OffsetCommitRequest(
        "", topics=[OffsetCommitRequestTopic("orders", partitions=[OffsetCommitRequestPartition()])]
    )
    answer = await ask(broker, ApiKey.OFFSET_COMMIT, request, 9)
    assert answer.topics[0].partitions[0].error_code == 0
    groups = [OffsetFetchRequestGroup("", topics=None)]
    answer = await ask(broker, ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=groups), 9)
    assert answer.groups[0].topics[0].partitions[0].committed_offset == 0
    answer = await ask(broker, ApiKey.DELETE_GROUPS, DeleteGroupsRequest([""]))
    assert answer.results[0].error_code == 0


def fetch(version: int, *, everything: bool = False) -> OffsetFetchRequest:
    if version < 8:
        topics = None if everything else [OffsetFetchRequestTopic("orders", [0, 1])]
        return OffsetFetchRequest(GROUP, topics)
    named = OffsetFetchRequestTopics("orders", ZERO, [0, 1])
    if version >= 10:
        named = OffsetFetchRequestTopics("", TOPIC.id, [0, 1])
    group = OffsetFetchRequestGroup(GROUP, topics=None if everything else [named])
    return OffsetFetchRequest(groups=[group])


def fetched(answer: Any, version: int) -> dict[int, tuple[int, str, int]]:
    part = answer.groups[0] if version >= 8 else answer
    assert part.error_code == 0
    return {
        one.partition_index: (one.committed_offset, one.metadata, one.error_code)
        for topic in part.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
async def test_committed_offsets_are_fetched(broker: UnitBroker, version: int) -> None:
    """CON-6"""
    nothing = (-1, "", 0)
    answer = await ask(broker, ApiKey.OFFSET_FETCH, fetch(version), version)
    assert fetched(answer, version) == {0: nothing, 1: nothing}
    await committed(broker)
    answer = await ask(broker, ApiKey.OFFSET_FETCH, fetch(version), version)
    assert fetched(answer, version) == {0: nothing, 1: (5, "note", 0)}
    if version >= 2:
        answer = await ask(broker, ApiKey.OFFSET_FETCH, fetch(version, everything=True), version)
        assert fetched(answer, version) == {1: (5, "note", 0)}


async def test_an_offset_that_may_still_change_is_unstable(broker: UnitBroker) -> None:
    """DEL-4: KIP-447."""
    from headrace.coordination.effects import Producer
    from headrace.groups.offsets import commit

    shard = broker.groups.shard_for(GROUP)
    pending = commit(
        shard.state, GROUP, [("orders", TOPIC.id, 0, 9, -1, None)], 1, producer=Producer(7, 0)
    )
    shard.apply(pending)
    request = fetch(9)
    request.require_stable = True
    answer = await ask(broker, ApiKey.OFFSET_FETCH, request, 9)
    assert fetched(answer, 9)[0] == (-1, "", UnstableOffsetCommit.code)
    broker.groups.transaction_ended(shard.partition, 7, 0, committed=True)
    answer = await ask(broker, ApiKey.OFFSET_FETCH, request, 9)
    assert fetched(answer, 9)[0] == (9, "", 0)


async def test_several_groups_are_fetched_at_once(broker: UnitBroker) -> None:
    """KIP-709"""
    await committed(broker)
    groups = [OffsetFetchRequestGroup(name, topics=None) for name in (GROUP, "nowhere")]
    answer = await ask(broker, ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=groups), 9)
    assert [(one.error_code, len(one.topics)) for one in answer.groups] == [
        (0, 1),
        (0, 0),
    ]


async def test_committed_offsets_are_deleted(broker: UnitBroker) -> None:
    """CON-13: KIP-496."""
    await committed(broker)
    request = OffsetDeleteRequest(
        GROUP,
        [
            OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(n) for n in (0, 1)]),
            OffsetDeleteRequestTopic("nowhere", [OffsetDeleteRequestPartition(0)]),
        ],
    )
    answer = await ask(broker, ApiKey.OFFSET_DELETE, request)
    codes = [one.error_code for topic in answer.topics for one in topic.partitions]
    assert codes == [0, 0, UnknownTopicOrPartition.code]
    assert not broker.groups.shard_for(GROUP).state.offsets.by_group
    gone = await ask(broker, ApiKey.OFFSET_DELETE, OffsetDeleteRequest("nowhere"))
    assert gone.error_code == GroupIdNotFound.code


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
async def test_groups_are_described(broker: UnitBroker, version: int) -> None:
    """CON-13"""
    member = await stable(broker)
    request = DescribeGroupsRequest([GROUP, "nowhere"])
    there, missing = (await ask(broker, ApiKey.DESCRIBE_GROUPS, request, version)).groups
    assert (there.group_state, there.protocol_type, there.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (one,) = there.members
    assert (one.member_id, one.client_host) == (member.member_id, "/10.0.0.7")
    assert one.member_assignment == b"all"
    assert missing.group_state == "Dead"
    assert missing.error_code == (GroupIdNotFound.code if version >= 6 else 0)


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
async def test_groups_are_listed_by_state_and_type(broker: UnitBroker, version: int) -> None:
    """CON-13: KIP-518, KIP-848."""
    await stable(broker)

    async def listed(states: list[str], types: list[str]) -> list[str]:
        request = ListGroupsRequest(states, types)
        answer = await ask(broker, ApiKey.LIST_GROUPS, request, version)
        return [one.group_id for one in answer.groups]

    assert await listed([], []) == [GROUP]
    if version >= 4:
        assert await listed(["stable"], []) == [GROUP]
        assert await listed(["Empty"], []) == []
    if version >= 5:
        assert await listed([], ["Classic"]) == [GROUP]
        assert await listed([], ["consumer"]) == []


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
async def test_groups_are_deleted(broker: UnitBroker, version: int) -> None:
    """CON-13"""
    member = await stable(broker)

    async def deleted(*names: str) -> list[int]:
        request = DeleteGroupsRequest(list(names))
        answer = await ask(broker, ApiKey.DELETE_GROUPS, request, version)
        return [one.error_code for one in answer.results]

    assert await deleted(GROUP, "nowhere") == [NonEmptyGroup.code, GroupIdNotFound.code]
    leaving = LeaveGroupRequest(GROUP, members=[MemberIdentity(member.member_id)])
    await ask(broker, ApiKey.LEAVE_GROUP, leaving, 5)
    assert await deleted(GROUP) == [0]
    assert not broker.groups.shard_for(GROUP).state.groups
