"""The consumer group protocol (KIP-848): members send heartbeats, the coordinator decides the rest.

One request does it all. A heartbeat may tell of a new or changed member; that raises the group
epoch. When the group epoch is ahead, a target assignment is computed for it. And with each
heartbeat its member takes one step towards its target (`reconciliation.py`), at its own pace:
there is no moment at which all members stop.

Decisions only; `consumer_group.apply` changes a group, live and on replay.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
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
from headrace.groups.assignors import ASSIGNORS, Assignment, MemberSpecification
from headrace.groups.consumer_group import (
    NO_ASSIGNMENT,
    ConsumerGroup,
    MetadataNote,
    ResolvedRegex,
    subscribed_topics,
)
from headrace.groups.consumer_members import (
    JOINING,
    LEAVING,
    LEAVING_FOR_NOW,
    Member,
    MemberState,
    is_within,
)
from headrace.groups.reconciliation import Reported, Target, reconcile
from headrace.groups.regular_expressions import compiled
from headrace.groups.subscriptions import (
    metadata_hash,
    resolve,
    topic_specifications,
    wanted_ids,
)
from headrace.metadata.image import MetadataImage
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.schemas.consumer_group_heartbeat import (
    Assignment as SentAssignment,
)
from headrace.protocol.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

SESSION, REBALANCE = "consumer session", "consumer rebalance"
"""The timers of a member: until its next heartbeat, and until it has given up partitions."""

_SOON_MS = 500
_REFRESH_MS_MIN = 1_000
"""How often at most a group's patterns are matched anew against all topics."""


class ConsumerSettings(msgspec.Struct, frozen=True):
    """What is set for a group, by itself or for all of them."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = (1 << 31) - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: str = "bidirectional"
    classic_max_size: int = (1 << 31) - 1


class Client(msgspec.Struct, frozen=True):
    """Who sends a request, as it is shown to administrators."""

    id: str
    host: str


class Context(msgspec.Struct, frozen=True):
    """The circumstances of a decision."""

    image: MetadataImage
    settings: ConsumerSettings
    now_ms: int


def check_request(
    request: ConsumerGroupHeartbeatRequest, version: int, settings: ConsumerSettings
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
    if request.server_assignor is not None and request.server_assignor not in settings.assignors:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(settings.assignors)}."
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
    group: ConsumerGroup | None,
    request: ConsumerGroupHeartbeatRequest,
    client: Client,
    context: Context,
) -> Effects[ConsumerGroupHeartbeatResponse]:
    """A member says that it is there, and perhaps what it wants and has; `leave` is the rest."""
    epoch = request.member_epoch
    if group is None:
        if epoch != JOINING:
            raise GroupIdNotFound(f"Consumer group {request.group_id} not found.")
        group = ConsumerGroup(request.group_id)
    elif epoch > 0 and (settled := _settled(group, request, context)) is not None:
        return settled
    _check_room(group, request.member_id, context.settings)
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
    ):
        return None
    reply = ConsumerGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=context.settings.heartbeat_interval_ms,
    )
    session = (SESSION, group.id, member.id)
    return Effects(reply, timers={session: context.settings.session_timeout_ms})


def leave(
    group: ConsumerGroup | None, request: ConsumerGroupHeartbeatRequest, context: Context
) -> Effects[ConsumerGroupHeartbeatResponse]:
    """A member goes; a static one may do so for a while, and keeps its partitions meanwhile."""
    if group is None:
        raise GroupIdNotFound(f"Consumer group {request.group_id} not found.")
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
        return Effects(reply, [records.current_assignment(group.id, away)])
    effects = remove_members(group, [member], context)
    return Effects(reply, effects.records, timers=effects.timers)


def remove_members(
    group: ConsumerGroup, members: Iterable[Member], context: Context
) -> Effects[None]:
    """Take members out, and have what they had assigned anew."""
    draft = Draft(group, context)
    timers: dict[TimerKey, int | None] = {}
    for member in members:
        draft.remove(member)
        timers |= dict.fromkeys(timers_of_member(group.id, member.id))
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


def timers_on_load(group: ConsumerGroup, settings: ConsumerSettings) -> dict[TimerKey, int | None]:
    """The timers of a group that was read from the log: everyone has a whole session again."""
    timers: dict[TimerKey, int | None] = {}
    for member in group.members.values():
        classic = member.classic
        session_ms = settings.session_timeout_ms if classic is None else classic.session_timeout_ms
        timers[SESSION, group.id, member.id] = session_ms
        if member.state is MemberState.UNREVOKED_PARTITIONS and classic is None:
            timers[REBALANCE, group.id, member.id] = member.rebalance_timeout_ms
    return timers


def timers_of_member(group_id: str, member_id: str) -> list[TimerKey]:
    """All timers that a member may have."""
    kinds = (SESSION, REBALANCE, "consumer join", "consumer sync")
    return [(kind, group_id, member_id) for kind in kinds]


def known_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """The member that is named; a static one must still own its name."""
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {group.id}.")
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


class Draft:
    """A group as it would be after the records that were decided on so far."""

    __slots__ = ("_group", "context", "epoch", "members", "records", "regexes", "target_epoch")

    def __init__(self, group: ConsumerGroup, context: Context) -> None:
        self._group = group
        self.context = context
        self.epoch = group.epoch
        self.target_epoch = group.assignment_epoch
        self.members = dict(group.members)
        self.regexes: dict[str, ResolvedRegex] = group.regexes
        self.records: list[CoordinatorRecord] = []

    @property
    def group(self) -> ConsumerGroup:
        """The group as it is."""
        return self._group

    @property
    def waits_for_assignment(self) -> bool:
        return self.epoch > self.target_epoch

    def remove(self, member: Member) -> None:
        del self.members[member.id]
        self.records.extend(records.no_member(self._group.id, member.id))

    def replace_static(self, old: Member, member_id: str) -> Member:
        """Hand all that a static member has to its next incarnation."""
        group_id = self._group.id
        member = msgspec.structs.replace(old, id=member_id, epoch=0, previous_epoch=0)
        self.remove(old)
        self.members[member_id] = member
        target = self._group.target.get(old.id, NO_ASSIGNMENT)
        self.records.append(records.member_metadata(group_id, member))
        self.records.append(records.target_assignment(group_id, member_id, target))
        self.records.append(records.current_assignment(group_id, member))
        return member

    def take_in(self, member: Member, updated: Member) -> "Change":
        """Note what a member told of itself, and raise the group epoch if that concerns others."""
        self.members[updated.id] = updated
        if updated != member:
            self.records.append(records.member_metadata(self._group.id, updated))
        wishes_changed = updated.wishes != member.wishes
        if wishes_changed and updated.topic_regex:
            compiled(updated.topic_regex)  # Refuses one that is wrong.
        self._compare_with_topics(wishes_changed=wishes_changed)
        return Change(updated, wishes_changed)

    def _compare_with_topics(self, *, wishes_changed: bool) -> None:
        """Raise the group epoch if members or topics are not what they were."""
        group, image, note = self._group, self.context.image, self._group.note
        if not wishes_changed and note is not None and group.metadata_hash == note.hash:
            if note.topics is image.topics:
                return
            if self.regexes and self.context.now_ms - note.at_ms < _REFRESH_MS_MIN:
                return
        resolved_anew = self.resolve_regexes()
        hash_now = self.hash_now()
        if wishes_changed or resolved_anew or hash_now != group.metadata_hash:
            self.bump_epoch(hash_now)
        else:
            group.note = MetadataNote(image.topics, hash_now, self.context.now_ms)
        if group.has_partition_metadata:
            self.records.append(records.no_partition_metadata(group.id))

    def resolve_regexes(self) -> bool:
        """Match the members' patterns with the topics, and say whether any means others now."""
        changed = self.forget_unused_regexes()
        for regex in sorted({one.topic_regex for one in self.members.values() if one.topic_regex}):
            known = self.regexes.get(regex)
            if known is not None and known.version == self.context.image.offset:
                continue
            found = resolve(regex, self.context.image, self.context.now_ms)
            if known is None or known.topics != found.topics:
                changed = True
                self.regexes = {**self.regexes, regex: found}
                self.records.append(records.regular_expression(self._group.id, regex, found))
        return changed

    def forget_unused_regexes(self) -> bool:
        used = {member.topic_regex for member in self.members.values()}
        unused = self.regexes.keys() - used
        for regex in sorted(unused):
            self.records.append(records.no_regular_expression(self._group.id, regex))
        self.regexes = {one: topics for one, topics in self.regexes.items() if one in used}
        return bool(unused)

    def hash_now(self) -> int:
        return metadata_hash(subscribed_topics(self.members, self.regexes), self.context.image)

    def bump_epoch(self, hash_now: int) -> None:
        self.epoch += 1
        self.records.append(records.group_epoch(self._group.id, self.epoch, hash_now))

    def advance(self, change: "Change", reported: Reported) -> Member:
        """Compute a target if one is due, and take the member a step towards it."""
        member = change.member
        assignment = self._group.target_of(member)
        if self.waits_for_assignment and self.assignment_delay_ms <= 0:
            assignment = self.compute_target().get(member.id, NO_ASSIGNMENT)
        subscribed = wanted_ids(member, self.regexes, self.context.image)
        target = Target(self.target_epoch, assignment, subscribed, change.wishes_changed)
        updated = reconcile(member, target, reported, self._group.is_free)
        if updated != member:
            self.members[updated.id] = updated
            self.records.append(records.current_assignment(self._group.id, updated))
        return updated

    @property
    def assignment_delay_ms(self) -> int:
        """How long to wait before the next target, so that many changes share one."""
        last_ms, interval_ms = (
            self._group.assignment_timestamp_ms,
            self.context.settings.assignment_interval_ms,
        )
        return last_ms + interval_ms - self.context.now_ms if last_ms and interval_ms else 0

    def compute_target(self) -> Mapping[str, Assignment]:
        """Have the preferred assignor share out the partitions, and note what is new."""
        group, context = self._group, self.context
        names = subscribed_topics(self.members, self.regexes)
        shares = ASSIGNORS[self.preferred_assignor()](
            {one.id: self._specification(one) for one in self.members.values()},
            topic_specifications(names, context.image),
        )
        for member_id, share in shares.items():
            if group.target.get(member_id) != share:
                self.records.append(records.target_assignment(group.id, member_id, share))
        self.target_epoch = self.epoch
        self.records.append(records.target_epoch(group.id, self.epoch, context.now_ms))
        return shares

    def _specification(self, member: Member) -> MemberSpecification:
        return MemberSpecification(
            topics=wanted_ids(member, self.regexes, self.context.image),
            previous=self._group.target_of(member),
            instance_id=member.instance_id,
            rack=member.rack_id,
        )

    def preferred_assignor(self) -> str:
        return preferred_assignor(self.members.values(), self.context.settings)

    def timers_of(self, member: Member) -> dict[TimerKey, int | None]:
        """The timers of a member after its heartbeat."""
        group_id, settings = self._group.id, self.context.settings
        timers: dict[TimerKey, int | None] = {
            (SESSION, group_id, member.id): settings.session_timeout_ms
        }
        known = self._group.members.get(member.id)
        if known is None or _progress(known) != _progress(member):
            revokes = member.state is MemberState.UNREVOKED_PARTITIONS
            timers[REBALANCE, group_id, member.id] = (
                member.rebalance_timeout_ms if revokes else None
            )
        return timers


class Change(msgspec.Struct, frozen=True):
    """A member as it describes itself now, and whether it wants other topics than before."""

    member: Member
    wishes_changed: bool


def preferred_assignor(members: Iterable[Member], settings: ConsumerSettings) -> str:
    """What most members ask for, or the first that is set up."""
    counts = Counter(one.server_assignor for one in members if one.server_assignor in ASSIGNORS)
    for name, _ in counts.most_common(1):
        return name or settings.assignors[0]
    return settings.assignors[0]


def _progress(member: Member) -> tuple[object, ...]:
    return member.state, member.epoch, member.assigned, member.pending_revocation


def _check_room(group: ConsumerGroup, member_id: str, settings: ConsumerSettings) -> None:
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
