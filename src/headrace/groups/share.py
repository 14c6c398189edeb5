"""The share group protocol (KIP-932): members send heartbeats, the coordinator shares out work.

As in a consumer group a change of members, subscriptions or topics raises the group epoch, and
a target assignment is computed for it (`assignors/simple.py`). Members may share partitions, so
each goes to its target at once with its next heartbeat. Only partitions whose state has been
begun are shared out (`share_states.py`); the shell begins those that a heartbeat finds missing
and then has the same heartbeat decided on again.

Decisions only; `share_group.apply` changes a group, live and on replay.
"""

from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING, cast

import msgspec

from headrace.coordination.effects import Effects, TimerKey
from headrace.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
)
from headrace.groups import share_records as records
from headrace.groups.assignors import Assignment, MemberSpecification
from headrace.groups.assignors.simple import assign_simply
from headrace.groups.consumer_context import Client
from headrace.groups.consumer_members import JOINING, LEAVING
from headrace.groups.group import Replay
from headrace.groups.share_group import (
    NO_ASSIGNMENT,
    SESSION,
    Note,
    ShareGroup,
    ShareMember,
    ShareSettings,
    apply,
    subscribed_topics,
)
from headrace.groups.share_states import (
    Partitions,
    missing_states,
    note_initializing,
    with_initializing,
    without_topics,
)
from headrace.groups.subscriptions import metadata_hash
from headrace.metadata.image import MetadataImage, ResourceType
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.groups import ShareGroupMetadataKey
from headrace.protocol.schemas.share_group_heartbeat import (
    Assignment as SentAssignment,
)
from headrace.protocol.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from headrace.protocol.uuids import Uuid
from headrace.settings import group as group_settings

if TYPE_CHECKING:
    from headrace.groups.shard import GroupShard


class Answer(msgspec.Struct, frozen=True):
    """The answer to a heartbeat, and the states that are to be begun before it is given."""

    response: ShareGroupHeartbeatResponse
    missing: Partitions = {}
    state_epoch: int = 0


def replay(shard: "GroupShard", key: Message, value: Message | None) -> None:
    """Take a record of a share group into its shard."""
    group_id: str = key.group_id  # type: ignore[attr-defined]
    group = shard.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        if value is None:
            return
        group = shard.groups[group_id] = new_group(shard, group_id)
    if value is None and isinstance(key, ShareGroupMetadataKey):
        del shard.groups[group_id]
    else:
        apply(group, key, value)


REPLAYS: dict[int, Replay] = dict.fromkeys((10, 11, 12, 13, 14, 15), replay)
"""The record types of share groups."""


def new_group(shard: "GroupShard", group_id: str) -> ShareGroup:
    return ShareGroup(group_id, lambda: settings_in(shard, group_id))


def settings_in(shard: "GroupShard", group_id: str) -> ShareSettings:
    """What is set for a group now."""
    configs = shard.image().configs_of(ResourceType.GROUP, group_id)
    broker = shard.settings()

    def number(name: str) -> int:
        return cast(int, group_settings.value_of(f"share.{name}", configs, broker))

    return ShareSettings(
        session_timeout_ms=number("session.timeout.ms"),
        heartbeat_interval_ms=number("heartbeat.interval.ms"),
        assignment_interval_ms=number("assignment.interval.ms"),
        initialize_retry_interval_ms=broker.group_share_initialize_retry_interval_ms,
        max_size=broker.group_share_max_size,
    )


def share_group(shard: "GroupShard", group_id: str) -> ShareGroup:
    """The group, which must be there and be a share group."""
    group = shard.find(group_id)
    if not isinstance(group, ShareGroup):
        raise GroupIdNotFound(f"Group {group_id} is not a share group.")
    return group


def share_group_or_new(shard: "GroupShard", group_id: str) -> ShareGroup:
    """The group, or one that no record speaks of yet."""
    group = shard.groups.get(group_id)
    if group is None:
        return new_group(shard, group_id)
    return share_group(shard, group_id)


def on_timer(shard: "GroupShard", key: TimerKey, now_ms: int) -> Effects[None]:
    """A member was silent for too long."""
    group = shard.groups.get(key[1])
    if not isinstance(group, ShareGroup) or key[2] not in group.members:
        return Effects()
    return _remove(group, group.members[key[2]], shard.image())


def on_topics_deleted(shard: "GroupShard", topic_ids: Set[Uuid]) -> Iterator[Effects[None]]:
    """Groups forget the topics that are gone; the share coordinator does so by itself."""
    for group in list(shard.groups.values()):
        if isinstance(group, ShareGroup):
            effects = without_topics(group, topic_ids)
            if effects.records:
                yield effects


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """Raise unless a heartbeat makes sense by itself."""
    for value, name in (
        (request.member_id, "MemberId"),
        (request.group_id, "GroupId"),
        (request.rack_id, "RackId"),
    ):
        if value is not None and not value.strip():
            raise InvalidRequest(f"{name} can't be empty.")
    if request.member_epoch == JOINING and not request.subscribed_topic_names:
        raise InvalidRequest("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVING:
        raise InvalidRequest("MemberEpoch is invalid.")


def serve_heartbeat(
    shard: "GroupShard", request: ShareGroupHeartbeatRequest, client: Client, now_ms: int
) -> Effects[Answer]:
    """Decide on a heartbeat that `check_request` has passed."""
    if request.member_epoch == JOINING:
        group = share_group_or_new(shard, request.group_id)
    else:
        group = share_group(shard, request.group_id)
    if request.member_epoch == LEAVING:
        return leave(group, request, shard.image())
    effects = heartbeat(group, request, client, shard.image(), now_ms)
    missing = effects.reply.missing if effects.reply is not None else {}
    if missing:
        effects.on_written = lambda: note_initializing(shard, request.group_id, missing, now_ms)
    return effects


def leave(
    group: ShareGroup, request: ShareGroupHeartbeatRequest, image: MetadataImage
) -> Effects[Answer]:
    """A member goes."""
    effects = _remove(group, group.known(request.member_id), image)
    reply = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVING)
    return Effects(Answer(reply), effects.records, timers=effects.timers)


def _remove(group: ShareGroup, member: ShareMember, image: MetadataImage) -> Effects[None]:
    """Take a member out; what it had is shared out anew with the next heartbeat of another."""
    left = {one: found for one, found in group.members.items() if one != member.id}
    hash_now = metadata_hash(subscribed_topics(left), image)
    gone = list(records.no_member(group.group_id, member.id))
    gone.append(records.group_epoch(group.group_id, group.epoch + 1, hash_now))
    return Effects(records=gone, timers={(SESSION, group.group_id, member.id): None})


def heartbeat(
    group: ShareGroup,
    request: ShareGroupHeartbeatRequest,
    client: Client,
    image: MetadataImage,
    now_ms: int,
) -> Effects[Answer]:
    """A member says that it is there, and perhaps what it wants."""
    settings = group.settings()
    member = _member_of(group, request, settings)
    told = _told(member, request, client)
    session: TimerKey = (SESSION, group.group_id, member.id)
    timers: dict[TimerKey, int | None] = {session: settings.session_timeout_ms}
    if told is member and _is_settled(group, member, image):
        response = _response(member, settings.heartbeat_interval_ms)
        if request.member_epoch == JOINING or request.subscribed_topic_names is not None:
            response.assignment = _sent(member)
        return Effects(Answer(response), timers=timers)
    draft = Draft(group, image, settings, now_ms)
    updated = draft.take_in(member, told)
    response = _response(updated, draft.interval_ms)
    whole = request.member_epoch == JOINING or request.subscribed_topic_names is not None
    if whole or updated.assigned != member.assigned:
        response.assignment = _sent(updated)
    answer = Answer(response, draft.missing, draft.epoch)
    return Effects(answer, draft.records, timers=timers)


def _member_of(
    group: ShareGroup, request: ShareGroupHeartbeatRequest, settings: ShareSettings
) -> ShareMember:
    member = group.members.get(request.member_id)
    if member is None:
        if len(group.members) >= settings.max_size:
            raise GroupMaxSizeReached(
                f"The share group has reached its maximum capacity of {settings.max_size} members."
            )
        if request.member_epoch == JOINING:
            return ShareMember(request.member_id)
        return group.known(request.member_id)  # Raises.
    _check_epoch(member, request.member_epoch)
    return member


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """Fence a member whose epoch is not its own; the one before is good, its answer was lost."""
    if epoch in (JOINING, member.epoch):
        return
    if epoch == member.previous_epoch and epoch < member.epoch:
        return
    comparison = "greater" if epoch > member.epoch else "smaller"
    raise FencedMemberEpoch(
        f"The share group member has a {comparison} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({member.epoch}). The member must abandon all its partitions and "
        f"rejoin."
    )


def _told(member: ShareMember, request: ShareGroupHeartbeatRequest, client: Client) -> ShareMember:
    """The member with what a heartbeat says; the same object if that is nothing new."""
    names = request.subscribed_topic_names
    told = msgspec.structs.replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.id,
        client_host=client.host,
        topic_names=member.topic_names if names is None else frozenset(names),
    )
    return member if told == member else told


def _is_settled(group: ShareGroup, member: ShareMember, image: MetadataImage) -> bool:
    """Whether nothing is due: the usual heartbeat, which costs a few comparisons."""
    return (
        group.note is not None
        and group.note.topics is image.topics
        and group.note.hash == group.metadata_hash
        and group.epoch == group.assignment_epoch == member.epoch
    )


class Draft:
    """A share group as it would be after what was decided so far."""

    def __init__(
        self, group: ShareGroup, image: MetadataImage, settings: ShareSettings, now_ms: int
    ) -> None:
        self.group = group
        self.image = image
        self.settings = settings
        self.now_ms = now_ms
        self.epoch = group.epoch
        self.target_epoch = group.assignment_epoch
        self.target: Mapping[str, Assignment] = group.target
        self.members = dict(group.members)
        self.missing: Partitions = {}
        self.records: list[CoordinatorRecord] = []

    def take_in(self, member: ShareMember, told: ShareMember) -> ShareMember:
        """All that a heartbeat leads to; returns the member after it."""
        group_id = self.group.group_id
        self.members[told.id] = told
        if told != member:
            self.records.append(records.member_metadata(group_id, told))
        names = subscribed_topics(self.members)
        changed = told.topic_names != member.topic_names
        is_new_epoch = self._bump_epoch_if_due(names, changed=changed)
        self._begin_missing_states(names)
        if self.is_waiting and self.delay_ms <= 0 and not self.missing:
            self._compute_target(names)
        if not is_new_epoch and not self.missing and not self.group.states.initializing:
            self.group.note = Note(self.image.topics, self.group.metadata_hash)
        updated = self._reconciled(told, is_new_epoch=is_new_epoch)
        if updated != told:
            self.members[updated.id] = updated
            self.records.append(records.current_assignment(group_id, updated))
        return updated

    @property
    def is_waiting(self) -> bool:
        """Whether the group has changed since its partitions were shared out."""
        return self.epoch > self.target_epoch

    @property
    def delay_ms(self) -> int:
        """How long to wait before the next target, so that many changes share one."""
        last_ms, interval_ms = (
            self.group.assignment_timestamp_ms,
            self.settings.assignment_interval_ms,
        )
        return last_ms + interval_ms - self.now_ms if last_ms and interval_ms else 0

    @property
    def interval_ms(self) -> int:
        """When to send the next heartbeat: soon, if only that brings the member its share."""
        usual_ms = self.settings.heartbeat_interval_ms
        if self.is_waiting and not self.missing:
            return max(min(usual_ms, self.delay_ms + 1), 1)
        return usual_ms

    def _bump_epoch_if_due(self, names: Set[str], *, changed: bool) -> bool:
        """Raise the group epoch if members, topics or states are not what they were."""
        group = self.group
        hash_now = metadata_hash(names, self.image)
        is_due = (
            changed
            or hash_now != group.metadata_hash
            or (not self.is_waiting and self._has_unassigned_states(names))
        )
        if is_due:
            self.epoch += 1
            self.records.append(records.group_epoch(group.group_id, self.epoch, hash_now))
        return is_due

    def _has_unassigned_states(self, names: Set[str]) -> bool:
        """Whether states were begun or forgotten since the partitions were shared out."""
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

    def _begin_missing_states(self, names: Set[str]) -> None:
        group = self.group
        self.missing = missing_states(group, names, self.image, self.now_ms)
        if self.missing:
            states = with_initializing(group.states, self.missing, self.image)
            self.records.append(records.state_topics(group.group_id, states))

    def _compute_target(self, names: Set[str]) -> None:
        """Share out the partitions that have states, and note what is new."""
        group, topics = self.group, self.image.topics
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
        shares = assign_simply(specifications, assignable)
        for member_id, share in shares.items():
            if group.target.get(member_id) != share:
                self.records.append(records.target_assignment(group.group_id, member_id, share))
        self.target = shares
        self.target_epoch = self.epoch
        self.records.append(records.target_epoch(group.group_id, self.epoch, self.now_ms))

    def _reconciled(self, member: ShareMember, *, is_new_epoch: bool) -> ShareMember:
        """The member with its share, as far as it still wants the topics."""
        if member.epoch == self.target_epoch and not is_new_epoch:
            return member
        topics = self.image.topics_by_id
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


def _response(member: ShareMember, interval_ms: int) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        member_id=member.id, member_epoch=member.epoch, heartbeat_interval_ms=interval_ms
    )


def _sent(member: ShareMember) -> SentAssignment:
    return SentAssignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in member.assigned.items()
        ]
    )
