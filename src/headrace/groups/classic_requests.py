"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: the requests of the classic protocol, by group.

They are for classic groups, and for the members of consumer groups that still speak the classic
protocol while their group migrates (KIP-848).
"""

from typing import TYPE_CHECKING, cast

from headrace.coordination.effects import Effects, Ticket
from headrace.errors import InconsistentGroupProtocol, KafkaError, UnknownMemberId
from headrace.groups.classic import protocol as classic
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.protocol import Joining, refuse_join
from headrace.groups.epochs.draft import context_of
from headrace.groups.group import GroupType
from headrace.protocol.schemas.join_group import JoinGroupResponse
from headrace.protocol.schemas.leave_group import MemberResponse
from headrace.protocol.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from headrace.groups.consumer.group import ConsumerGroup
    from headrace.groups.group import Group
    from headrace.groups.state import GroupsState
    from headrace.protocol.schemas.leave_group import MemberIdentity


def join(
    shard: "GroupsState", joining: Joining, ticket: Ticket, now_ms: int
) -> Effects[JoinGroupResponse]:
    """Decide on a JoinGroup; an empty consumer group becomes classic by it."""
    group = shard.groups.get(joining.group_id)
    if isinstance(group, ClassicGroup | None):
        return classic.join(shard, group, joining, ticket, now_ms)
    if (consumers := _consumer_group(group)) is None:
        return refuse_join("", InconsistentGroupProtocol())
    from headrace.groups.consumer import classic_members

    if consumers.members:
        try:
            return classic_members.join(consumers, joining, context_of(shard, consumers, now_ms))
        except KafkaError as error:
            return refuse_join(joining.member_id, error)
    effects = classic.join(shard, None, joining, ticket, now_ms)
    if effects.on_written is not None:
        effects.records[:0] = consumers.tombstones()
    return effects


def sync(
    shard: "GroupsState", request: SyncGroupRequest, ticket: Ticket, now_ms: int
) -> Effects[SyncGroupResponse]:
    """Decide on a SyncGroup."""
    group = shard.groups.get(request.group_id)
    if isinstance(group, ClassicGroup):
        return classic.sync(shard, group, request, ticket, now_ms)
    if (consumers := _consumer_group(group)) is None:
        raise UnknownMemberId(f"group {request.group_id} has no members")
    from headrace.groups.consumer import classic_members

    return classic_members.sync(consumers, request, shard.image())


def heartbeat(
    shard: "GroupsState", group_id: str, member_id: str, instance_id: str | None, generation: int
) -> Effects[int]:
    """Decide on a Heartbeat; the reply is an error code, which may ask the member to rejoin."""
    group = shard.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return classic.heartbeat(group, member_id, instance_id, generation)
    if (consumers := _consumer_group(group)) is None:
        raise UnknownMemberId(f"there is no group {group_id}")
    from headrace.groups.consumer import classic_members

    return classic_members.heartbeat(shard, consumers, member_id, instance_id, generation)


def leave(
    shard: "GroupsState", group_id: str, identities: "list[MemberIdentity]", now_ms: int
) -> Effects[list[MemberResponse]]:
    """Decide on a LeaveGroup."""
    group = shard.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return classic.leave(shard, group, identities, now_ms)
    if (consumers := _consumer_group(group)) is None:
        raise UnknownMemberId(f"there is no group {group_id}")
    from headrace.groups.consumer import classic_members

    return classic_members.leave(consumers, identities, context_of(shard, consumers, now_ms))


def _consumer_group(group: "Group | None") -> "ConsumerGroup | None":
    """Return the group if it is a consumer group; its modules are imported only then."""
    if group is None or group.type is not GroupType.CONSUMER:
        return None
    return cast("ConsumerGroup", group)
