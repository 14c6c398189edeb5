"""Members of a consumer group that speak the classic protocol, while the group migrates.

To such a member the group looks like a classic group with another leader: its generation is its
member epoch, its rebalances are its own steps of reconciliation. JoinGroup acts as a heartbeat of
the new protocol, SyncGroup returns the assignment, and Heartbeat signals when to rejoin.
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
from headrace.groups.consumer.draft import ConsumerDraft
from headrace.groups.consumer.embedded_protocol import (
    owned_by_id,
    read_subscription,
    version_of,
    write_assignment,
)
from headrace.groups.consumer.group import (
    JOIN,
    SYNC,
    ConsumerContext,
    ConsumerGroup,
    ConsumerMemory,
)
from headrace.groups.consumer.migration import ALL_CLASSIC
from headrace.groups.consumer.protocol import known_member, remove_members
from headrace.groups.consumer.records import ClassicProtocolSupport, Member
from headrace.groups.epochs.heartbeat import check_room
from headrace.groups.epochs.members import MemberState
from headrace.metadata.image import MetadataImage
from headrace.protocol.codec import DecodeError
from headrace.protocol.schemas.join_group import JoinGroupResponse
from headrace.protocol.schemas.leave_group import MemberIdentity, MemberResponse
from headrace.protocol.schemas.records.consumer_protocol import ConsumerProtocolSubscription
from headrace.protocol.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from headrace.groups.classic.protocol import Joining
    from headrace.groups.state import GroupsState

_CONSUMER = "consumer"


def join(
    group: ConsumerGroup, joining: "Joining", context: ConsumerContext
) -> Effects[JoinGroupResponse]:
    """Add a member by JoinGroup, and reconcile it one step towards its target."""
    member_id = joining.member_id or joining.new_id
    if context.settings.migration_policy.lower() == "disabled":
        raise InconsistentGroupProtocol(
            f"Cannot join the consumer group {group.group_id} with the classic protocol because "
            f"the group migration is disabled."
        )
    check_room(group, member_id, context.settings.max_size)
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
    draft = ConsumerDraft(group, context, joining.may_describe)
    return _join(draft, joining, member_id, subscription)


def _supports(group: ConsumerGroup, joining: "Joining") -> bool:
    """Return whether all members of the classic protocol have a common assignor."""
    if joining.protocol_type != _CONSUMER or not joining.protocols:
        return False
    others = [set(dict(one.classic.protocols)) for one in group.members.values() if one.classic]
    return any(all(name in other for other in others) for name, _ in joining.protocols)


def _join(
    draft: ConsumerDraft,
    joining: "Joining",
    member_id: str,
    subscription: ConsumerProtocolSubscription,
) -> Effects[JoinGroupResponse]:
    group, image = draft.group, draft.context.image
    member = _member_of(draft, joining, member_id)
    described = _described(member, joining, subscription)
    updated = draft.heartbeat(member, described, owned_by_id(subscription, image))
    if updated.id in draft.memory.joining:
        note = draft.memory.note if draft.epoch == group.epoch else None
        draft.memory = ConsumerMemory(note, draft.memory.joining - {updated.id})
    draft.timers |= {
        (group.session, group.group_id, updated.id): joining.session_timeout_ms,
        (JOIN, group.group_id, updated.id): None,
        (SYNC, group.group_id, updated.id): joining.rebalance_timeout_ms,
    }
    if all(one.speaks_classic for one in draft.members.values()):
        draft.timers[ALL_CLASSIC, group.group_id] = 0
    reply = JoinGroupResponse(
        generation_id=updated.epoch,
        protocol_type=_CONSUMER,
        protocol_name=joining.protocols[0][0],
        member_id=updated.id,
    )
    return draft.effects(reply)


def _member_of(draft: ConsumerDraft, joining: "Joining", member_id: str) -> Member:
    group = draft.group
    if joining.instance_id is None:
        return group.members.get(member_id) or Member(member_id)
    if joining.member_id:
        return known_member(group, member_id, joining.instance_id)
    old = group.static_member(joining.instance_id)
    return Member(member_id) if old is None else draft.replace_static(old, member_id)


def _described(
    member: Member, joining: "Joining", subscription: ConsumerProtocolSubscription
) -> Member:
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
    group: ConsumerGroup, request: SyncGroupRequest, image: MetadataImage
) -> Effects[SyncGroupResponse]:
    """A member comes for its assignment."""
    member, support = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    name, metadata = support.protocols[0]
    for given, actual in ((request.protocol_type, _CONSUMER), (request.protocol_name, name)):
        if given is not None and given != actual:
            raise InconsistentGroupProtocol(f"The protocol is {actual}, not {given}.")
    revokes = member.state is MemberState.UNREVOKED
    if group.epoch > member.epoch and not revokes and group.epoch == group.assignment_epoch:
        raise RebalanceInProgress(f"Member {member.id} should rejoin to catch up.")
    reply = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(member.assigned, version_of(metadata), image),
    )
    timers: dict[TimerKey, int | None] = {
        (SYNC, group.group_id, member.id): None,
        (group.session, group.group_id, member.id): support.session_timeout_ms,
    }
    return Effects(reply, timers=timers)


def heartbeat(
    shard: "GroupsState",
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
) -> Effects[int]:
    """Renew a member's session; request a rejoin if its reconciliation can proceed."""
    member, support = _classic_member(group, member_id, instance_id)
    _check_generation(member, generation)
    timers: dict[TimerKey, int | None] = {
        (group.session, group.group_id, member_id): support.session_timeout_ms
    }
    if not _should_rejoin(group, member):
        return Effects(0, timers=timers)
    effects = Effects(RebalanceInProgress.code, timers=timers)
    if member_id not in group.memory.joining:
        memory = ConsumerMemory(group.memory.note, group.memory.joining | {member_id})
        timers[JOIN, group.group_id, member_id] = member.rebalance_timeout_ms
        effects.on_written = lambda: shard.set_memory(group.group_id, memory)
    return effects


def _should_rejoin(group: ConsumerGroup, member: Member) -> bool:
    """Return whether the member is behind the group and can revoke or receive partitions."""
    match member.state:
        case MemberState.UNREVOKED:
            return True
        case MemberState.UNRELEASED if not _waits(group, member):
            return True
    return member.epoch < group.epoch


def _waits(group: ConsumerGroup, member: Member) -> bool:
    return any(
        number not in member.assigned.get(topic_id, {}) and not group.is_free(topic_id, number)
        for topic_id, numbers in group.target_of(member).items()
        for number in numbers
    )


def leave(
    group: ConsumerGroup, identities: list[MemberIdentity], context: ConsumerContext
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
