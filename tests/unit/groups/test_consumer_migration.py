"""A group changes from the classic protocol to the consumer protocol and back, while it works."""

from typing import Any

import pytest

from headrace.errors import (
    GroupIdNotFound,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from headrace.groups import classic_requests as classic
from headrace.groups.classic.group import ClassicGroup, State
from headrace.groups.classic.protocol import Joining
from headrace.groups.consumer.embedded_protocol import read_assignment, read_subscription
from headrace.groups.consumer.group import ConsumerGroup
from headrace.protocol.codec import encode_into
from headrace.protocol.schemas.join_group import JoinGroupResponse
from headrace.protocol.schemas.leave_group import MemberIdentity
from headrace.protocol.schemas.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from headrace.protocol.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.builders.consumer_groups import GROUP, GroupsInMemory, assigned_by, settle
from tests.builders.metadata_images import topic_id

ORDERS = topic_id("orders")
SIX = set(range(6))


def subscription(owned: set[int] | None = None) -> bytes:
    out = bytearray(b"\x00\x03")
    parts = [ConsumerProtocolSubscriptionTopicPartition("orders", sorted(owned or ()))]
    encode_into(ConsumerProtocolSubscription(["orders"], None, parts), 3, out)
    return bytes(out)


def share(numbers: set[int], user_data: bytes | None = None) -> bytes:
    out = bytearray(b"\x00\x03")
    parts = [ConsumerProtocolAssignmentTopicPartition("orders", sorted(numbers))]
    encode_into(ConsumerProtocolAssignment(parts, user_data), 3, out)
    return bytes(out)


def join(
    groups: GroupsInMemory,
    member_id: str,
    *,
    owned: set[int] | None = None,
    instance_id: str | None = None,
    new_id: str = "new",
) -> JoinGroupResponse | None:
    joining = Joining(
        GROUP,
        member_id,
        instance_id,
        "client",
        "/127.0.0.1",
        "consumer",
        (("range", subscription(owned)),),
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        new_id=new_id,
        needs_known_id=True,
        can_skip_assignment=True,
    )
    reply: JoinGroupResponse | None = groups.apply(
        classic.join(groups.state, joining, object(), groups.now_ms)
    )
    return reply


def sync(groups: GroupsInMemory, member_id: str, generation: int, **assignments: bytes) -> Any:
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        assignments=[SyncGroupRequestAssignment(one, data) for one, data in assignments.items()],
    )
    return groups.apply(classic.sync(groups.state, request, object(), groups.now_ms))


def beat(groups: GroupsInMemory, member_id: str, generation: int) -> int:
    code: int = groups.apply(classic.heartbeat(groups.state, GROUP, member_id, None, generation))
    return code


def classic_group(given: bytes | None = None, **settings: Any) -> GroupsInMemory:
    """A stable classic group of one member, `client-new`, that has all partitions."""
    groups = GroupsInMemory(**settings)
    first = join(groups, "")
    assert first is not None
    assert first.error_code == MemberIdRequired.code
    join(groups, first.member_id)
    groups.wait(3_001)
    sync(groups, first.member_id, 1, **{first.member_id: given or share(SIX)})
    group = groups.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.state is State.STABLE
    return groups


OLD = "client-new"


def mixed_group() -> GroupsInMemory:
    """Ada speaks the new protocol, the other the old one; each has three partitions."""
    groups = classic_group()
    ada = groups.join("ada")
    assert beat(groups, OLD, 1) == RebalanceInProgress.code
    again = join(groups, OLD, owned=SIX)
    assert again is not None
    kept = read_assignment(sync(groups, OLD, again.generation_id).assignment)
    (part,) = kept.assigned_partitions
    assert beat(groups, OLD, again.generation_id) == RebalanceInProgress.code
    done = join(groups, OLD, owned=set(part.partitions))
    assert done is not None
    sync(groups, OLD, done.generation_id)
    groups.heartbeat("ada", ada.member_epoch)
    return groups


def test_a_member_of_the_new_protocol_upgrades_the_group() -> None:
    groups = classic_group()
    answer = groups.join("ada")
    assert isinstance(groups.state.groups[GROUP], ConsumerGroup)
    assert assigned_by(answer) == {}
    assert set(groups.group.members[OLD].assigned[ORDERS]) == SIX
    assert groups.group.members[OLD].speaks_classic


def test_members_of_both_protocols_share_the_partitions() -> None:
    """CON-3."""
    groups = mixed_group()
    shares = [set(one.assigned[ORDERS]) for one in groups.group.members.values()]
    assert [len(numbers) for numbers in shares] == [3, 3]
    assert set().union(*shares) == SIX
    assert beat(groups, OLD, groups.group.members[OLD].epoch) == 0
    assert groups.group.state_name == "Stable"


def test_the_group_is_classic_again_when_the_last_new_member_has_left() -> None:
    groups = mixed_group()
    groups.heartbeat("ada", -1)
    groups.wait(1)
    group = groups.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert set(group.members) == {OLD}
    assert group.state is State.PREPARING_REBALANCE
    (part,) = read_assignment(group.members[OLD].assignment).assigned_partitions
    assert len(part.partitions) == 3


def test_a_group_that_migrated_is_the_same_after_a_restart() -> None:
    groups = mixed_group()
    before = groups.group
    groups.reload()
    assert groups.group.members == before.members
    groups.heartbeat("ada", -1)
    groups.reload()
    assert isinstance(groups.state.groups[GROUP], ClassicGroup)


def test_an_empty_classic_group_is_replaced() -> None:
    groups = classic_group()
    leaving = [MemberIdentity(OLD)]
    groups.apply(classic.leave(groups.state, GROUP, leaving, groups.now_ms))
    assert assigned_by(groups.join("ada")) == {ORDERS: SIX}


def test_an_empty_consumer_group_is_replaced() -> None:
    groups = GroupsInMemory()
    groups.join("ada")
    groups.heartbeat("ada", -1)
    assert join(groups, "") is not None
    assert isinstance(groups.state.groups[GROUP], ClassicGroup)
    groups.reload()
    assert GROUP not in groups.state.groups


def test_a_classic_member_leaves_a_consumer_group() -> None:
    groups = mixed_group()
    leaving = [MemberIdentity(OLD), MemberIdentity("nobody")]
    answers = groups.apply(classic.leave(groups.state, GROUP, leaving, groups.now_ms))
    assert [one.error_code for one in answers] == [0, UnknownMemberId.code]
    groups.wait(1_001)
    settle(groups)
    assert set(groups.group.members) == {"ada"}


def test_a_classic_member_that_does_not_rejoin_is_removed() -> None:
    groups = classic_group()
    groups.join("ada")
    for _ in range(8):
        groups.wait(9_000)
        if OLD in groups.group.members:
            beat(groups, OLD, 1)
        groups.heartbeat("ada", groups.group.members["ada"].epoch)
    assert set(groups.group.members) == {"ada"}


def test_a_static_member_takes_its_place_with_the_old_protocol() -> None:
    """The last member of the new protocol is gone with that, and so is the consumer group."""
    groups = GroupsInMemory()
    groups.join("ada", instance_id="desk-1")
    back = join(groups, "", instance_id="desk-1", new_id="bea")
    assert back is not None
    assert back.error_code == 0
    groups.wait(1)
    assert isinstance(groups.state.groups[GROUP], ClassicGroup)


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_an_upgrade_may_be_forbidden(policy: str) -> None:
    groups = classic_group(group_consumer_migration_policy=policy)
    with pytest.raises(GroupIdNotFound):
        groups.join("ada")


def test_a_group_with_a_custom_assignor_is_not_migrated() -> None:
    groups = classic_group(share(SIX, b"state of its own"))
    with pytest.raises(GroupIdNotFound, match="custom assignor"):
        groups.join("ada")


def test_classic_members_may_be_forbidden() -> None:
    groups = GroupsInMemory(group_consumer_migration_policy="disabled")
    groups.join("ada")
    refused = join(groups, "")
    assert refused is not None
    assert refused.error_code == InconsistentGroupProtocol.code


def test_a_stale_generation_is_refused() -> None:
    groups = mixed_group()
    with pytest.raises(IllegalGeneration):
        beat(groups, OLD, 1)
    with pytest.raises(UnknownMemberId, match="classic"):
        beat(groups, "ada", groups.group.members["ada"].epoch)


def test_subscriptions_of_any_version_are_read() -> None:
    newer = b"\x00\x63" + subscription({1})[2:] + b"something new"
    assert read_subscription(newer).topics == ["orders"]
