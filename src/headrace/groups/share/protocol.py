"""The share group protocol (KIP-932): members send heartbeats, the coordinator assigns partitions.

As in a consumer group a change of members, subscriptions or topics raises the group epoch, and
a target assignment is computed for it (`assignors/simple.py`). Members may share partitions, so
each moves to its target at once with its next heartbeat. Only partitions whose states are
initialized are assigned (`states.py`); the shell initializes the missing states that a heartbeat
reports, and then decides on the same heartbeat again.
"""

from collections.abc import Iterator, Set
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from headrace.coordination.effects import Effects, TimerKey
from headrace.errors import InvalidRequest
from headrace.groups.assignors import Assignment, MemberSpecification
from headrace.groups.assignors.simple import assign_simply
from headrace.groups.epochs import group as epochs
from headrace.groups.epochs.draft import Draft, context_of
from headrace.groups.epochs.group import MetadataNote, find_group, new_group, overdue_member
from headrace.groups.epochs.heartbeat import (
    Answer,
    Client,
    check_epoch,
    check_not_empty,
    check_room,
)
from headrace.groups.epochs.members import JOINING, LEAVING
from headrace.groups.share import records
from headrace.groups.share.group import ShareContext, ShareGroup, ShareMemory, subscribed_topics
from headrace.groups.share.records import NO_ASSIGNMENT, ShareMember
from headrace.groups.share.states import (
    Partitions,
    initializing_since,
    missing_states,
    with_initializing,
    without_topics,
)
from headrace.groups.subscriptions import metadata_hash
from headrace.protocol.schemas.share_group_heartbeat import Assignment as SentAssignment
from headrace.protocol.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from headrace.protocol.uuids import Uuid

if TYPE_CHECKING:
    from headrace.groups.state import GroupsState


class MissingStates(msgspec.Struct, frozen=True):
    """The partitions whose states the shell initializes, and their state epoch."""

    partitions: Partitions = {}
    state_epoch: int = 0

    def __bool__(self) -> bool:
        return bool(self.partitions)


_NOTHING_MISSING = MissingStates()

ShareAnswer = Answer[ShareGroupHeartbeatResponse, MissingStates]


replay = partial(epochs.replay, ShareGroup)
"""Applies a record to its share group."""


def share_group(shard: "GroupsState", group_id: str) -> ShareGroup:
    """Return the group, which must exist and be a share group."""
    return find_group(shard, group_id, ShareGroup)


def share_group_or_new(shard: "GroupsState", group_id: str) -> ShareGroup:
    """Return the group, or a new one that has no records yet."""
    if group_id in shard.groups:
        return share_group(shard, group_id)
    return new_group(shard, group_id, ShareGroup)


def on_timer(shard: "GroupsState", key: TimerKey, now_ms: int) -> Effects[None]:
    """Remove a member that was silent for too long."""
    group = shard.groups.get(key[1])
    if not isinstance(group, ShareGroup) or (member := overdue_member(group, key)) is None:
        return Effects()
    return _remove(group, member, context_of(shard, group, now_ms)).effects(None)


def on_topics_deleted(shard: "GroupsState", topic_ids: Set[Uuid]) -> Iterator[Effects[None]]:
    """Remove deleted topics from all groups; the share coordinator deletes their states itself."""
    for group in list(shard.groups.values()):
        if isinstance(group, ShareGroup):
            effects = without_topics(group, topic_ids)
            if effects.records:
                yield effects


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """Raise if the fields of a heartbeat are inconsistent."""
    check_not_empty(MemberId=request.member_id, GroupId=request.group_id, RackId=request.rack_id)
    if request.member_epoch == JOINING and not request.subscribed_topic_names:
        raise InvalidRequest("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVING:
        raise InvalidRequest("MemberEpoch is invalid.")


def serve_heartbeat(
    shard: "GroupsState", request: ShareGroupHeartbeatRequest, client: Client, now_ms: int
) -> Effects[ShareAnswer]:
    """Decide on a heartbeat that `check_request` has passed."""
    is_joining = request.member_epoch == JOINING
    find = share_group_or_new if is_joining else share_group
    group = find(shard, request.group_id)
    context = context_of(shard, group, now_ms)
    if request.member_epoch == LEAVING:
        return leave(group, request, context)
    return heartbeat(group, request, client, context)


def leave(
    group: ShareGroup, request: ShareGroupHeartbeatRequest, context: ShareContext
) -> Effects[ShareAnswer]:
    """Decide on a member's last heartbeat."""
    draft = _remove(group, group.member(request.member_id), context)
    response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVING)
    return draft.effects(Answer(response, _NOTHING_MISSING))


def _remove(group: ShareGroup, member: ShareMember, context: ShareContext) -> "ShareDraft":
    """Remove a member; the next heartbeat of another member brings the new target."""
    draft = ShareDraft(group, context)
    draft.remove(member)
    draft.bump_epoch(metadata_hash(subscribed_topics(draft.members), context.image))
    draft.timers[group.session, group.group_id, member.id] = None
    return draft


def heartbeat(
    group: ShareGroup,
    request: ShareGroupHeartbeatRequest,
    client: Client,
    context: ShareContext,
) -> Effects[ShareAnswer]:
    """Decide on a heartbeat of a member that joins or stays."""
    member = _member_of(group, request, context)
    described = _described(member, request, client)
    is_full = request.member_epoch == JOINING or request.subscribed_topic_names is not None
    if described is member and _is_settled(group, member, context):
        settings = context.settings
        response = _response(member, settings.heartbeat_interval_ms, with_assignment=is_full)
        session = (group.session, group.group_id, member.id)
        timers: dict[TimerKey, int | None] = {session: settings.session_timeout_ms}
        return Effects(Answer(response, _NOTHING_MISSING), timers=timers)
    draft = ShareDraft(group, context)
    updated = draft.heartbeat(member, described)
    draft.keep_alive(updated)
    missing = MissingStates(draft.missing, draft.epoch) if draft.missing else _NOTHING_MISSING
    interval_ms = (
        context.settings.heartbeat_interval_ms if missing else draft.heartbeat_interval_ms()
    )
    with_assignment = is_full or updated.assigned != member.assigned
    response = _response(updated, interval_ms, with_assignment=with_assignment)
    return draft.effects(Answer(response, missing))


def _member_of(
    group: ShareGroup, request: ShareGroupHeartbeatRequest, context: ShareContext
) -> ShareMember:
    check_room(group, request.member_id, context.settings.max_size)
    if request.member_epoch == JOINING:
        return group.members.get(request.member_id) or ShareMember(request.member_id)
    member = group.member(request.member_id)
    check_epoch(group, member, request.member_epoch, lambda: True)
    return member


def _described(
    member: ShareMember, request: ShareGroupHeartbeatRequest, client: Client
) -> ShareMember:
    """The member as a heartbeat describes it; the same object if nothing is new."""
    names = request.subscribed_topic_names
    described = msgspec.structs.replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.id,
        client_host=client.host,
        topic_names=member.topic_names if names is None else frozenset(names),
    )
    return member if described == member else described


def _is_settled(group: ShareGroup, member: ShareMember, context: ShareContext) -> bool:
    """Return whether no change is due, as in the usual heartbeat: a few comparisons."""
    note = group.memory.note
    return (
        note is not None
        and note.topics is context.image.topics
        and note.hash == group.metadata_hash
        and group.epoch == group.assignment_epoch == member.epoch
    )


class ShareDraft(Draft[ShareMember, Assignment]):
    """The next state of a share group."""

    group: ShareGroup
    context: ShareContext
    memory: ShareMemory

    def __init__(self, group: ShareGroup, context: ShareContext) -> None:
        super().__init__(group, context)
        self.missing: Partitions = {}

    def heartbeat(self, before: ShareMember, after: ShareMember) -> ShareMember:
        """Put a member in as it describes itself, and move it to its target."""
        group, context = self.group, self.context
        self.describe(before, after)
        names = subscribed_topics(self.members)
        is_new_epoch = self._bump_epoch_if_due(
            names, subscription_changed=after.topic_names != before.topic_names
        )
        self._initialize_missing_states(names)
        if self.waits_for_assignment and self.assignment_delay_ms <= 0 and not self.missing:
            self._compute_target(names)
        if not is_new_epoch and not self.missing and not group.states.initializing:
            note = MetadataNote(context.image.topics, group.metadata_hash)
            self.memory = ShareMemory(note, self.memory.initializing_since_ms)
        return self.advance(after, self._reconciled(after, is_new_epoch=is_new_epoch))

    def _bump_epoch_if_due(self, names: Set[str], *, subscription_changed: bool) -> bool:
        """Raise the group epoch if members, topics or states have changed."""
        hash_now = metadata_hash(names, self.context.image)
        is_due = (
            subscription_changed
            or hash_now != self.group.metadata_hash
            or (not self.waits_for_assignment and self._has_unassigned_states(names))
        )
        if is_due:
            self.bump_epoch(hash_now)
        return is_due

    def _has_unassigned_states(self, names: Set[str]) -> bool:
        """Return whether states were initialized or deleted since the target was computed."""
        if not self.group.members:
            return False
        assigned: dict[Uuid, set[int]] = {}
        for share in self.group.target.values():
            for topic_id, partitions in share.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            assigned.get(topic_id, set()) != topic.partitions
            for topic_id, topic in self.group.states.initialized.items()
            if topic.name in names
        )

    def _initialize_missing_states(self, names: Set[str]) -> None:
        group, image, now_ms = self.group, self.context.image, self.context.now_ms
        self.missing = missing_states(group, names, image, now_ms)
        if self.missing:
            states = with_initializing(group.states, self.missing, image)
            self.records.append(records.state_topics(group.group_id, states))
            self.memory = initializing_since(self.memory, self.missing, now_ms)

    def _compute_target(self, names: Set[str]) -> None:
        """Assign the partitions that have states."""
        group, topics = self.group, self.context.image.topics
        ids = {name: topics[name].id for name in names if name in topics}
        specifications = {
            one.id: MemberSpecification(
                topics=frozenset(ids[name] for name in one.topic_names if name in ids),
                previous=group.target.get(one.id, NO_ASSIGNMENT),
            )
            for one in self.members.values()
        }
        assignable = {
            topic_id: topic.partitions for topic_id, topic in group.states.initialized.items()
        }
        self.set_target(assign_simply(specifications, assignable))

    def _reconciled(self, member: ShareMember, *, is_new_epoch: bool) -> ShareMember:
        """The member with its target, as far as it still subscribes to the topics."""
        if member.epoch == self.target_epoch and not is_new_epoch:
            return member
        topics = self.context.image.topics_by_id
        share = {
            topic_id: partitions
            for topic_id, partitions in self.target.get(member.id, NO_ASSIGNMENT).items()
            if topic_id in topics and topics[topic_id].name in member.topic_names
        }
        if member.epoch == self.target_epoch:
            return msgspec.structs.replace(member, assigned=share)
        return msgspec.structs.replace(
            member, epoch=self.target_epoch, previous_epoch=member.epoch, assigned=share
        )


def _response(
    member: ShareMember, interval_ms: int, *, with_assignment: bool
) -> ShareGroupHeartbeatResponse:
    response = ShareGroupHeartbeatResponse(
        member_id=member.id, member_epoch=member.epoch, heartbeat_interval_ms=interval_ms
    )
    if with_assignment:
        response.assignment = SentAssignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in member.assigned.items()
            ]
        )
    return response
