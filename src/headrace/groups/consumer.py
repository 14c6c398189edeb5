"""The consumer group protocol (KIP-848): members send heartbeats, the coordinator decides the rest.

One request does it all. A heartbeat may tell of a new or changed member; that raises the group
epoch. When the group epoch is ahead, a target assignment is computed for it. And with each
heartbeat its member takes one step towards its target (`reconciliation.py`), at its own pace:
there is no moment at which all members stop.

Decisions only; `consumer_group.apply` changes a group, live and on replay.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from headrace.coordination.effects import Effects, TimerKey
from headrace.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from headrace.groups import consumer_records as records
from headrace.groups.classic import rebalance
from headrace.groups.classic_group import ClassicGroup
from headrace.groups.consumer_context import (
    REBALANCE,
    SESSION,
    Client,
    ConsumerSettings,
    Context,
    settings_of,
    timers_of_member,
)
from headrace.groups.consumer_draft import Draft
from headrace.groups.consumer_group import ConsumerGroup, apply
from headrace.groups.consumer_members import (
    JOINING,
    LEAVING,
    LEAVING_FOR_NOW,
    Member,
    MemberState,
    is_within,
)
from headrace.groups.consumer_migration import (
    ALL_CLASSIC,
    DOWNGRADED,
    downgrade,
    may_downgrade,
    upgrade,
)
from headrace.groups.group import Replay
from headrace.groups.reconciliation import Reported
from headrace.metadata.image import ResourceType
from headrace.protocol.message import Message
from headrace.protocol.schemas.consumer_group_heartbeat import (
    Assignment as SentAssignment,
)
from headrace.protocol.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from headrace.protocol.schemas.records.groups import ConsumerGroupMetadataKey

if TYPE_CHECKING:
    from headrace.groups.shard import GroupShard

_SOON_MS = 500


def replay(shard: "GroupShard", key: Message, value: Message | None) -> None:
    """Take a record of a consumer group into its shard."""
    group_id: str = key.group_id  # type: ignore[attr-defined]
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return
        group = ConsumerGroup(group_id, LiveSettings(shard, group_id))
        shard.groups[group_id] = group
    if value is None and isinstance(key, ConsumerGroupMetadataKey):
        del shard.groups[group_id]
    else:
        apply(group, key, value)


REPLAYS: dict[int, Replay] = dict.fromkeys((3, 4, 5, 6, 7, 8, 16), replay)
"""The record types of consumer groups."""


def on_timer(shard: "GroupShard", key: TimerKey, now_ms: int) -> Effects[None]:
    """A member was silent or slow for too long."""
    group = shard.groups.get(key[1])
    if isinstance(group, ClassicGroup) and key[0] == DOWNGRADED:
        return rebalance(shard, group, now_ms)
    if not isinstance(group, ConsumerGroup):
        return Effects()
    context = Context(shard.image(), group.settings(), now_ms)
    if key[0] == ALL_CLASSIC:
        members = list(group.members.values())
        may = may_downgrade(members, context.settings)
        return downgrade(group, members, context) if may else Effects()
    return expire(group, key, context)


def serve_heartbeat(
    shard: "GroupShard", request: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int
) -> Effects[ConsumerGroupHeartbeatResponse]:
    """Decide on a heartbeat that `check_request` has passed."""
    group = shard.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        context = Context(shard.image(), group.settings(), now_ms)
        if request.member_epoch < 0:
            return leave(group, request, context)
        return heartbeat(group, request, client, context)
    if request.member_epoch != JOINING or not isinstance(group, ClassicGroup | None):
        what = "not found" if group is None else "not a consumer group"
        raise GroupIdNotFound(f"Group {request.group_id} is {what}.")
    new = ConsumerGroup(request.group_id, LiveSettings(shard, request.group_id))
    context = Context(shard.image(), new.settings(), now_ms)
    if group is None:
        return heartbeat(new, request, client, context)
    upgraded = upgrade(group, new, context)
    return upgraded.followed_by(heartbeat(upgraded.group, request, client, context))


class LiveSettings:
    """What is set for a group now; worked out again when its configs or the broker's change."""

    __slots__ = ("_known", "_shard", "group_id")

    def __init__(self, shard: "GroupShard", group_id: str) -> None:
        self._shard = shard
        self.group_id = group_id
        self._known: tuple[object, object, ConsumerSettings] | None = None

    def __call__(self) -> ConsumerSettings:
        configs = self._shard.image().configs_of(ResourceType.GROUP, self.group_id)
        broker = self._shard.settings()
        known = self._known
        if known is None or known[0] != configs or known[1] is not broker:
            known = self._known = (configs, broker, settings_of(configs, broker))
        return known[2]


def check_request(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]
) -> None:
    """Raise unless a heartbeat makes sense by itself."""
    epoch = request.member_epoch
    if version >= 1 or epoch > 0 or epoch == LEAVING:
        _check_not_empty(request.member_id, "MemberId can't be empty.")
    _check_not_empty(request.group_id, "GroupId can't be empty.")
    _check_not_empty(request.instance_id, "InstanceId can't be empty.")
    _check_not_empty(request.rack_id, "RackId can't be empty.")
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


def _check_not_empty(value: str | None, message: str) -> None:
    if value is not None and not value.strip():
        raise InvalidRequest(message)


def heartbeat(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    client: Client,
    context: Context,
) -> Effects[ConsumerGroupHeartbeatResponse]:
    """A member says that it is there, and perhaps what it wants and has; `leave` is the rest."""
    epoch = request.member_epoch
    if epoch > 0 and (settled := _settled(group, request, context)) is not None:
        return settled
    check_room(group, request.member_id, context.settings)
    draft = Draft(group, context)
    member = _member_of(draft, request)
    changed = draft.take_in(member, _told(member, request, client))
    reported = reported_partitions(request)
    updated = draft.advance(changed, reported)
    whole = epoch == JOINING or _is_whole(request)
    return Effects(
        _reply(updated, draft, with_assignment=whole or updated.assigned != member.assigned),
        draft.records,
        timers=draft.timers_of(updated),
    )


def _settled(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, context: Context
) -> Effects[ConsumerGroupHeartbeatResponse] | None:
    """The answer to the usual heartbeat: nothing is new, and nothing is under way."""
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
        or group.note is None
        or group.note.topics is not context.image.topics
        or group.note.hash != group.metadata_hash
        or (
            group.regexes
            and context.now_ms - group.note.at_ms >= context.settings.regex_refresh_interval_ms
        )
    ):
        return None
    reply = ConsumerGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=context.settings.heartbeat_interval_ms,
    )
    session = (SESSION, group.group_id, member.id)
    return Effects(reply, timers={session: context.settings.session_timeout_ms})


def leave(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, context: Context
) -> Effects[ConsumerGroupHeartbeatResponse]:
    """A member goes; a static one may do so for a while, and keeps its partitions meanwhile."""
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
        return Effects(reply, [records.current_assignment(group.group_id, away)])
    effects = remove_members(group, [member], context)
    return Effects(reply, effects.records, timers=effects.timers)


def remove_members(
    group: ConsumerGroup, members: Iterable[Member], context: Context
) -> Effects[None]:
    """Take members out, and have what they had assigned anew.

    If those who are left all speak the classic protocol, theirs is a classic group again.
    """
    gone = {member.id: member for member in members}
    left = [member for member in group.members.values() if member.id not in gone]
    if may_downgrade(left, context.settings):
        return downgrade(group, left, context)
    draft = Draft(group, context)
    timers: dict[TimerKey, int | None] = {}
    for member in gone.values():
        draft.remove(member)
        timers |= dict.fromkeys(timers_of_member(group.group_id, member.id))
    draft.forget_unused_regexes()
    draft.bump_epoch(draft.hash_now())
    return Effects(None, draft.records, timers=timers)


def expire(group: ConsumerGroup, key: TimerKey, context: Context) -> Effects[None]:
    """A member's session has ended, or it did not give up partitions in time: it is fenced."""
    member = group.members.get(key[2])
    if member is None:
        return Effects()
    if key[0] == REBALANCE and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return Effects()
    return remove_members(group, [member], context)


def known_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """The member that is named; a static one must still own its name."""
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {group.group_id}.")
        return member
    member = group.static_member(instance_id)
    if member is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
    if member.id != member_id:
        raise FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.id}."
        )
    return member


def check_room(group: ConsumerGroup, member_id: str, settings: ConsumerSettings) -> None:
    """Raise if a group is full and the member is not one of it already."""
    if len(group.members) >= settings.max_size and member_id not in group.members:
        raise GroupMaxSizeReached(
            f"The consumer group has reached its maximum capacity of {settings.max_size} members."
        )


def _member_of(draft: Draft, request: ConsumerGroupHeartbeatRequest) -> Member:
    """The member that a heartbeat is from: known, new, or a static member's next incarnation."""
    group = draft.group
    member_id = request.member_id or str(uuid4())
    if request.member_epoch != JOINING:
        member = known_member(group, member_id, request.instance_id)
        check_epoch(member, request)
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


def check_epoch(member: Member, request: ConsumerGroupHeartbeatRequest) -> None:
    """Fence a member whose epoch is not its own.

    The one before is good if the member owns no more than it should: then the answer that told
    it of its present epoch was lost.
    """
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    if epoch == member.previous_epoch and epoch < member.epoch:
        reported = reported_partitions(request)
        if reported is not None and is_within(reported, member.assigned):
            return
    comparison = "greater" if epoch > member.epoch else "smaller"
    raise FencedMemberEpoch(
        f"The consumer group member has a {comparison} member epoch ({epoch}) than the one known "
        f"by the group coordinator ({member.epoch}). The member must abandon all its partitions "
        f"and rejoin."
    )


def reported_partitions(request: ConsumerGroupHeartbeatRequest) -> Reported:
    if request.topic_partitions is None:
        return None
    return {one.topic_id: one.partitions for one in request.topic_partitions}


def _told(member: Member, request: ConsumerGroupHeartbeatRequest, client: Client) -> Member:
    """The member with what a heartbeat says; what it leaves out has not changed."""
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


def _is_whole(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a member told all it has to tell, which it does when it may have missed an answer."""
    tells_topics = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    return (
        request.rebalance_timeout_ms != -1 and tells_topics and request.topic_partitions is not None
    )


def _reply(
    member: Member, draft: Draft, *, with_assignment: bool
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=_interval_ms(member, draft),
        assignment=sent_assignment(member) if with_assignment else None,
    )


def _interval_ms(member: Member, draft: Draft) -> int:
    """When to send the next heartbeat: soon, if there will be news that only a heartbeat brings."""
    usual_ms = draft.context.settings.heartbeat_interval_ms
    if draft.waits_for_assignment:
        return max(min(usual_ms, draft.assignment_delay_ms + 1), 1)
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return min(usual_ms, _SOON_MS)
    return usual_ms


def sent_assignment(member: Member) -> SentAssignment:
    return SentAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(
                topic_id=topic_id, partitions=list(numbers)
            )
            for topic_id, numbers in member.assigned.items()
        ]
    )
