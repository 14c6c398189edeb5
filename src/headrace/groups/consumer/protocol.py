"""The consumer group protocol (KIP-848): members send heartbeats, the coordinator decides the rest.

One request does it all. A heartbeat may describe a new or changed member; that raises the group
epoch. When the group epoch is ahead, a target assignment is computed for it. With each heartbeat
its member takes one step towards its target (`reconciliation.py`), at its own pace: there is no
moment at which all members stop.
"""

from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from headrace.coordination.effects import Effects, TimerKey
from headrace.errors import (
    FencedInstanceId,
    InvalidRequest,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.protocol import rebalance
from headrace.groups.consumer.draft import ConsumerDraft
from headrace.groups.consumer.group import ConsumerContext, ConsumerGroup, timers_of_member
from headrace.groups.consumer.migration import (
    ALL_CLASSIC,
    DOWNGRADED,
    downgrade,
    may_downgrade,
    upgrade,
)
from headrace.groups.consumer.reconciliation import Reported, is_within
from headrace.groups.consumer.records import Member
from headrace.groups.epochs import group as epochs
from headrace.groups.epochs.draft import context_of
from headrace.groups.epochs.group import find_group, new_group, overdue_member
from headrace.groups.epochs.heartbeat import Client, check_epoch, check_not_empty, check_room
from headrace.groups.epochs.members import JOINING, LEAVING, LEAVING_FOR_NOW, MemberState
from headrace.protocol.schemas.consumer_group_heartbeat import Assignment as SentAssignment
from headrace.protocol.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

if TYPE_CHECKING:
    from headrace.groups.state import GroupsState


replay = partial(epochs.replay, ConsumerGroup)
"""Applies a record to its consumer group."""


def on_timer(shard: "GroupsState", key: TimerKey, now_ms: int) -> Effects[None]:
    """Remove a member that was silent or slow for too long, or continue a migration."""
    group = shard.groups.get(key[1])
    if isinstance(group, ClassicGroup) and key[0] == DOWNGRADED:
        return rebalance(shard, group, now_ms)
    if not isinstance(group, ConsumerGroup):
        return Effects()
    context = context_of(shard, group, now_ms)
    if key[0] == ALL_CLASSIC:
        members = list(group.members.values())
        may = may_downgrade(members, context.settings)
        return downgrade(group, members, context) if may else Effects()
    member = overdue_member(group, key)
    return Effects() if member is None else remove_members(group, [member], context)


def serve_heartbeat(
    shard: "GroupsState", request: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int
) -> Effects[ConsumerGroupHeartbeatResponse]:
    """Decide on a heartbeat that `check_request` has passed."""
    group = shard.groups.get(request.group_id)
    if request.member_epoch != JOINING or not isinstance(group, ClassicGroup | None):
        found = find_group(shard, request.group_id, ConsumerGroup)
        context = context_of(shard, found, now_ms)
        if request.member_epoch < 0:
            return leave(found, request, context)
        return heartbeat(found, request, client, context)
    new = new_group(shard, request.group_id, ConsumerGroup)
    context = context_of(shard, new, now_ms)
    if group is None:
        return heartbeat(new, request, client, context)
    upgraded = upgrade(group, new, context)
    return upgraded.followed_by(heartbeat(upgraded.group, request, client, context))


def check_request(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]
) -> None:
    """Raise if the fields of a heartbeat are inconsistent."""
    epoch = request.member_epoch
    if version >= 1 or epoch > 0 or epoch == LEAVING:
        check_not_empty(MemberId=request.member_id)
    check_not_empty(
        GroupId=request.group_id, InstanceId=request.instance_id, RackId=request.rack_id
    )
    if epoch == JOINING:
        _check_join(request)
    elif epoch == LEAVING_FOR_NOW and request.instance_id is None:
        raise InvalidRequest("InstanceId can't be null.")
    elif epoch < LEAVING_FOR_NOW:
        raise InvalidRequest("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}."
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise InvalidRequest(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )


def heartbeat(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    client: Client,
    context: ConsumerContext,
) -> Effects[ConsumerGroupHeartbeatResponse]:
    """Decide on a heartbeat of a member that joins or stays."""
    epoch = request.member_epoch
    if epoch > 0 and (settled := _settled(group, request, context)) is not None:
        return settled
    check_room(group, request.member_id, context.settings.max_size)
    draft = ConsumerDraft(group, context, client.may_describe)
    member = _member_of(draft, request)
    updated = draft.heartbeat(
        member, _described(member, request, client), reported_partitions(request)
    )
    draft.keep_alive(updated)
    is_full = epoch == JOINING or _is_full(request)
    response = ConsumerGroupHeartbeatResponse(
        member_id=updated.id,
        member_epoch=updated.epoch,
        heartbeat_interval_ms=draft.heartbeat_interval_ms(
            is_soon=updated.state is MemberState.UNRELEASED
        ),
        assignment=_sent(updated) if is_full or updated.assigned != member.assigned else None,
    )
    return draft.effects(response)


def _settled(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, context: ConsumerContext
) -> Effects[ConsumerGroupHeartbeatResponse] | None:
    """Answer the usual heartbeat: nothing is new, and nothing is under way."""
    note = group.memory.note
    member = group.members.get(request.member_id)
    if (
        member is None
        or member.epoch != request.member_epoch
        or request.subscribed_topic_names is not None
        or request.subscribed_topic_regex is not None
        or request.rebalance_timeout_ms != -1
        or request.instance_id != member.instance_id
        or request.rack_id is not None
        or request.server_assignor is not None
        or group.epoch != group.assignment_epoch
        or not member.is_reconciled_to(group.assignment_epoch)
        or member.classic is not None
        or note is None
        or note.topics is not context.image.topics
        or note.hash != group.metadata_hash
        or (
            group.regexes
            and context.now_ms - note.at_ms >= context.settings.regex_refresh_interval_ms
        )
    ):
        return None
    reply = ConsumerGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=context.settings.heartbeat_interval_ms,
    )
    session = (group.session, group.group_id, member.id)
    return Effects(reply, timers={session: context.settings.session_timeout_ms})


def leave(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, context: ConsumerContext
) -> Effects[ConsumerGroupHeartbeatResponse]:
    """Decide on a member's last heartbeat; a static one may return, and keeps its partitions."""
    member = known_member(group, request.member_id, request.instance_id)
    reply = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    if request.member_epoch == LEAVING_FOR_NOW:
        away = msgspec.structs.replace(
            member,
            epoch=LEAVING_FOR_NOW,
            pending_revocation={},
            assigned={one: dict.fromkeys(found, 0) for one, found in member.assigned.items()},
        )
        return Effects(reply, [group.records.current(group.group_id, away)])
    effects = remove_members(group, [member], context)
    return Effects(reply, effects.records, timers=effects.timers)


def remove_members(
    group: ConsumerGroup, members: Iterable[Member], context: ConsumerContext
) -> Effects[None]:
    """Remove members, and raise the group epoch for the others.

    If all remaining members use the classic protocol, the group becomes classic again.
    """
    gone = {member.id: member for member in members}
    left = [member for member in group.members.values() if member.id not in gone]
    if may_downgrade(left, context.settings):
        return downgrade(group, left, context)
    draft = ConsumerDraft(group, context)
    for member in gone.values():
        draft.remove(member)
        draft.timers |= dict.fromkeys(timers_of_member(group.group_id, member.id))
    draft.members_left()
    return draft.effects(None)


def known_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """Return the member with this id; a static one must still own its instance id."""
    if instance_id is None:
        return group.member(member_id)
    member = group.static_member(instance_id)
    if member is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
    if member.id != member_id:
        raise FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.id}."
        )
    return member


def _member_of(draft: ConsumerDraft, request: ConsumerGroupHeartbeatRequest) -> Member:
    """The sender of a heartbeat: a known member, a new one, or a static one's next incarnation."""
    group = draft.group
    member_id = request.member_id or str(uuid4())
    if request.member_epoch != JOINING:
        member = known_member(group, member_id, request.instance_id)
        check_epoch(group, member, request.member_epoch, lambda: _owns_no_more(member, request))
        return member
    old = group.static_member(request.instance_id)
    if old is None:
        return group.members.get(member_id) or Member(member_id)
    if old.epoch != LEAVING_FOR_NOW and not old.speaks_classic:
        raise UnreleasedInstanceId(
            f"Static member {member_id} with instance id {request.instance_id} cannot join the "
            f"group because the instance id is owned by {old.id} member."
        )
    return draft.replace_static(old, member_id)


def _owns_no_more(member: Member, request: ConsumerGroupHeartbeatRequest) -> bool:
    reported = reported_partitions(request)
    return reported is not None and is_within(reported, member.assigned)


def reported_partitions(request: ConsumerGroupHeartbeatRequest) -> Reported:
    if request.topic_partitions is None:
        return None
    return {one.topic_id: one.partitions for one in request.topic_partitions}


def _described(member: Member, request: ConsumerGroupHeartbeatRequest, client: Client) -> Member:
    """The member with a heartbeat's fields; missing fields keep their value."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return msgspec.structs.replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        client_id=client.id,
        client_host=client.host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if regex is None else regex,
        server_assignor=request.server_assignor or member.server_assignor,
        classic=None,
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat has all fields, as after a lost response."""
    has_subscription = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    has_timeout = request.rebalance_timeout_ms != -1
    return has_timeout and has_subscription and request.topic_partitions is not None


def _sent(member: Member) -> SentAssignment:
    return SentAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id, list(numbers))
            for topic_id, numbers in member.assigned.items()
        ]
    )
