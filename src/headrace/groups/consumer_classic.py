"""Members of a consumer group that speak the classic protocol, while the group migrates.

To such a member the group looks like a classic group whose leader is somebody else: its
generation is its member epoch, its rebalances are its own steps of reconciliation. JoinGroup does
what a heartbeat of the new protocol does, SyncGroup brings the assignment, and Heartbeat tells
it when to join again.
"""

from typing import TYPE_CHECKING

import msgspec

from headrace.coordination.effects import Effects, TimerKey
from headrace.errors import (
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from headrace.groups.consumer import check_room, known_member, remove_members
from headrace.groups.consumer_context import JOIN, SESSION, SYNC, Context
from headrace.groups.consumer_draft import Draft
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_members import ClassicProtocolSupport, Member, MemberState
from headrace.groups.consumer_migration import ALL_CLASSIC
from headrace.groups.consumer_protocol import (
    owned_by_id,
    read_subscription,
    version_of,
    write_assignment,
)
from headrace.protocol.codec import DecodeError
from headrace.protocol.schemas.join_group import JoinGroupResponse
from headrace.protocol.schemas.leave_group import MemberIdentity, MemberResponse
from headrace.protocol.schemas.records.consumer_protocol import ConsumerProtocolSubscription
from headrace.protocol.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from headrace.groups.classic import Joining

_CONSUMER = "consumer"


def join(group: ConsumerGroup, joining: "Joining", context: Context) -> Effects[JoinGroupResponse]:
    """A member joins with JoinGroup: it is taken in, and takes a step towards its target."""
    member_id = joining.member_id or joining.new_id
    if context.settings.migration_policy.lower() == "disabled":
        raise InconsistentGroupProtocol(
            f"Cannot join the consumer group {group.group_id} with the classic protocol because "
            f"the group migration is disabled."
        )
    check_room(group, member_id, context.settings)
    if not _supports(group, joining):
        raise InconsistentGroupProtocol(f"Member {member_id}'s protocols are not supported.")
    if joining.needs_known_id and not joining.member_id and joining.instance_id is None:
        return Effects(
            JoinGroupResponse(
                error_code=MemberIdRequired.code,
                generation_id=-1,
                member_id=member_id,
                protocol_name=None,
            )
        )
    try:
        subscription = read_subscription(joining.protocols[0][1])
    except DecodeError as error:
        raise InconsistentGroupProtocol(f"Member {member_id}'s subscription: {error}") from None
    return _take_in(Draft(group, context), joining, member_id, subscription)


def _supports(group: ConsumerGroup, joining: "Joining") -> bool:
    """Whether some protocol is known to all members that speak the classic one."""
    if joining.protocol_type != _CONSUMER or not joining.protocols:
        return False
    others = [set(dict(one.classic.protocols)) for one in group.members.values() if one.classic]
    return any(all(name in other for other in others) for name, _ in joining.protocols)


def _take_in(
    draft: Draft, joining: "Joining", member_id: str, subscription: ConsumerProtocolSubscription
) -> Effects[JoinGroupResponse]:
    group, image = draft.group, draft.context.image
    member = _member_of(draft, joining, member_id)
    change = draft.take_in(member, _told(member, joining, subscription))
    updated = draft.advance(change, owned_by_id(subscription, image))
    group.joining.discard(updated.id)
    timers: dict[TimerKey, int | None] = {
        (SESSION, group.group_id, updated.id): joining.session_timeout_ms,
        (JOIN, group.group_id, updated.id): None,
        (SYNC, group.group_id, updated.id): joining.rebalance_timeout_ms,
    }
    if all(one.speaks_classic for one in draft.members.values()):
        timers[ALL_CLASSIC, group.group_id] = 0
    reply = JoinGroupResponse(
        generation_id=updated.epoch,
        protocol_type=_CONSUMER,
        protocol_name=joining.protocols[0][0],
        member_id=updated.id,
    )
    return Effects(reply, draft.records, timers=timers)


def _member_of(draft: Draft, joining: "Joining", member_id: str) -> Member:
    group = draft.group
    if joining.instance_id is None:
        return group.members.get(member_id) or Member(member_id)
    if joining.member_id:
        return known_member(group, member_id, joining.instance_id)
    old = group.static_member(joining.instance_id)
    return Member(member_id) if old is None else draft.replace_static(old, member_id)


def _told(member: Member, joining: "Joining", subscription: ConsumerProtocolSubscription) -> Member:
    return msgspec.structs.replace(
        member,
        instance_id=joining.instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=joining.client_id,
        client_host=joining.client_host,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        classic=ClassicProtocolSupport(joining.session_timeout_ms, joining.protocols),
    )


def sync(
    group: ConsumerGroup, request: SyncGroupRequest, context: Context
) -> Effects[SyncGroupResponse]:
    """A member comes for its assignment."""
    member, support = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    name, metadata = support.protocols[0]
    for given, actual in ((request.protocol_type, _CONSUMER), (request.protocol_name, name)):
        if given is not None and given != actual:
            raise InconsistentGroupProtocol(f"The protocol is {actual}, not {given}.")
    revokes = member.state is MemberState.UNREVOKED_PARTITIONS
    if group.epoch > member.epoch and not revokes and group.epoch == group.assignment_epoch:
        raise RebalanceInProgress(f"Member {member.id} should rejoin to catch up.")
    reply = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(member.assigned, version_of(metadata), context.image),
    )
    timers: dict[TimerKey, int | None] = {
        (SYNC, group.group_id, member.id): None,
        (SESSION, group.group_id, member.id): support.session_timeout_ms,
    }
    return Effects(reply, timers=timers)


def heartbeat(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> Effects[int]:
    """A member is alive; it is told to join again when there is a step for it to take."""
    member, support = _classic_member(group, member_id, instance_id)
    _check_generation(member, generation)
    timers: dict[TimerKey, int | None] = {
        (SESSION, group.group_id, member_id): support.session_timeout_ms
    }
    if not _should_rejoin(group, member):
        return Effects(0, timers=timers)
    if member_id not in group.joining:
        group.joining.add(member_id)
        timers[JOIN, group.group_id, member_id] = member.rebalance_timeout_ms
    return Effects(RebalanceInProgress.code, timers=timers)


def _should_rejoin(group: ConsumerGroup, member: Member) -> bool:
    """Behind the group, with partitions to give up, or with partitions that are free by now."""
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS if not _waits(group, member):
            return True
    return member.epoch < group.epoch


def _waits(group: ConsumerGroup, member: Member) -> bool:
    return any(
        number not in member.assigned.get(topic_id, {}) and not group.is_free(topic_id, number)
        for topic_id, numbers in group.target_of(member).items()
        for number in numbers
    )


def leave(
    group: ConsumerGroup, identities: list[MemberIdentity], context: Context
) -> Effects[list[MemberResponse]]:
    """Members leave by LeaveGroup, or an administrator removes them, of either protocol."""
    leaving: dict[str, Member] = {}
    responses = []
    for one in identities:
        response = MemberResponse(one.member_id, one.group_instance_id)
        try:
            member = _leaver(group, one)
            leaving[member.id] = member
        except KafkaError as error:
            response.error_code = error.code
        responses.append(response)
    if not leaving:
        return Effects(responses)
    effects = remove_members(group, leaving.values(), context)
    return Effects(responses, effects.records, timers=effects.timers)


def _leaver(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    if identity.group_instance_id is not None and not identity.member_id:
        member = group.static_member(identity.group_instance_id)
        if member is None:
            raise UnknownMemberId(f"Instance id {identity.group_instance_id} is unknown.")
        return member
    return known_member(group, identity.member_id, identity.group_instance_id)


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[Member, ClassicProtocolSupport]:
    member = known_member(group, member_id, instance_id)
    if member.classic is None:
        raise UnknownMemberId(f"Member {member_id} does not use the classic protocol.")
    return member, member.classic


def _check_generation(member: Member, generation: int) -> None:
    if generation != member.epoch:
        raise IllegalGeneration(
            f"The request generation id {generation} is not equal to the member epoch "
            f"{member.epoch} of member {member.id}."
        )
