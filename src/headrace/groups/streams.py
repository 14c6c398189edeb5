"""The streams group protocol (KIP-1071): the broker shares out the tasks of an application.

Members tell their topology when they join; the broker sees to the internal topics that it needs,
computes who runs which task, and has each member take its steps (`streams_reconciliation.py`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import msgspec

from headrace.coordination.effects import Effects, TimerKey
from headrace.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    StreamsInvalidTopology,
)
from headrace.groups import streams_records as records
from headrace.groups.classic_group import ClassicGroup, State
from headrace.groups.consumer_context import Client
from headrace.groups.consumer_members import JOINING, LEAVING, LEAVING_FOR_NOW
from headrace.groups.group import Replay
from headrace.groups.streams_group import (
    INITIAL,
    REBALANCE,
    SESSION,
    UNREVOKED,
    Configured,
    StreamsGroup,
    StreamsMember,
    StreamsSettings,
    apply,
)
from headrace.groups.streams_reconciliation import reconcile
from headrace.groups.streams_replies import Answer, reply_to
from headrace.groups.streams_tasks import NO_TASKS, Tasks, TaskTaker, assign_tasks
from headrace.groups.streams_topology import (
    ConfiguredTopology,
    Topology,
    configure,
    is_same,
    required_topics,
    topology_from,
)
from headrace.groups.subscriptions import metadata_hash
from headrace.metadata.image import MetadataImage, ResourceType
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.groups import StreamsGroupMetadataKey
from headrace.protocol.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestTaskIds,
    StreamsGroupHeartbeatResponse,
)
from headrace.settings import group as group_settings

if TYPE_CHECKING:
    from headrace.groups.shard import GroupShard


def replay(shard: "GroupShard", key: Message, value: Message | None) -> None:
    """Take a record of a streams group into its shard."""
    group_id: str = key.group_id  # type: ignore[attr-defined]
    group = shard.groups.get(group_id)
    if not isinstance(group, StreamsGroup):
        if value is None:
            return
        group = shard.groups[group_id] = new_group(shard, group_id)
    if value is None and isinstance(key, StreamsGroupMetadataKey):
        del shard.groups[group_id]
    else:
        apply(group, key, value)


REPLAYS: dict[int, Replay] = dict.fromkeys((17, 19, 20, 21, 22, 23), replay)
"""The record types of streams groups."""


def new_group(shard: "GroupShard", group_id: str) -> StreamsGroup:
    return StreamsGroup(group_id, lambda: settings_in(shard, group_id))


def settings_in(shard: "GroupShard", group_id: str) -> StreamsSettings:
    """What is set for a group now."""
    configs = shard.image().configs_of(ResourceType.GROUP, group_id)
    broker = shard.settings()

    def number(name: str) -> int:
        return cast(int, group_settings.value_of(f"streams.{name}", configs, broker))

    return StreamsSettings(
        session_timeout_ms=number("session.timeout.ms"),
        heartbeat_interval_ms=number("heartbeat.interval.ms"),
        assignment_interval_ms=number("assignment.interval.ms"),
        initial_rebalance_delay_ms=number("initial.rebalance.delay.ms"),
        num_standby_replicas=number("num.standby.replicas"),
        max_size=broker.group_streams_max_size,
    )


def on_timer(shard: "GroupShard", key: TimerKey, now_ms: int) -> Effects[None]:
    """A member was silent or slow for too long, or a new group has waited long enough."""
    group = shard.groups.get(key[1])
    if not isinstance(group, StreamsGroup):
        return Effects()
    if key[0] == INITIAL:
        group.delayed_until_ms = 0
        draft = Draft(group, shard.image(), now_ms)
        if group.members and group.topology is not None:
            draft.update_target(draft.configure(group.topology))
        return Effects(records=draft.records)
    member = group.members.get(key[2])
    if member is None or (key[0] == REBALANCE and member.state != UNREVOKED):
        return Effects()
    return _remove(group, member)


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise unless a heartbeat makes sense by itself."""
    for value, name in ((request.member_id, "MemberId"), (request.group_id, "GroupId")):
        if not value.strip():
            raise InvalidRequest(f"{name} can't be empty.")
    if request.instance_id is not None:
        raise InvalidRequest("Static membership is not yet supported.")
    if request.warmup_tasks:
        raise InvalidRequest("WarmupTasks are not supported yet.")
    epoch = request.member_epoch
    if epoch < LEAVING_FOR_NOW:
        raise InvalidRequest(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    if epoch == JOINING:
        _check_join(request)
    elif request.topology is not None:
        raise InvalidRequest("Topology can only be provided when (re-)joining.")
    told = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(one is not None for one in told) and any(one is None for one in told):
        raise InvalidRequest("If one task-type is non-null, all must be non-null.")


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    if request.active_tasks or request.standby_tasks:
        raise InvalidRequest("Tasks must be empty when (re-)joining.")
    if request.topology is None:
        raise InvalidRequest("Topology must be non-null when (re-)joining.")
    for one in request.topology.subtopologies:
        if one.source_topic_regex:
            raise InvalidRequest("Regular expressions for source topics are not supported yet.")
        if any(topic.partitions for topic in one.state_changelog_topics):
            raise StreamsInvalidTopology("Changelog topics must not have a partition count.")


def serve_heartbeat(
    shard: "GroupShard", request: StreamsGroupHeartbeatRequest, client: Client, now_ms: int
) -> Effects[Answer]:
    """Decide on a heartbeat that `check_request` has passed."""
    group = shard.groups.get(request.group_id)
    before: list[CoordinatorRecord] = []
    if request.member_epoch == JOINING and (group is None or _is_empty_classic(group)):
        before = [] if group is None else group.tombstones()
        group = shard.groups[request.group_id] = new_group(shard, request.group_id)
    if not isinstance(group, StreamsGroup):
        what = "not found" if group is None else "not a streams group"
        raise GroupIdNotFound(f"Group {request.group_id} is {what}.")
    if request.member_epoch < 0:
        return leave(group, request)
    effects = heartbeat(group, request, client, shard.image(), now_ms)
    effects.records[:0] = before
    return effects


def _is_empty_classic(group: object) -> bool:
    return isinstance(group, ClassicGroup) and group.state is State.EMPTY


def leave(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> Effects[Answer]:
    """A member goes; it may ask all others to stop as well."""
    member = group.known(request.member_id)
    if request.shutdown_application:
        group.shutdown_requested_by = member.id
    effects = _remove(group, member)
    reply = StreamsGroupHeartbeatResponse(
        member_id=member.id, member_epoch=request.member_epoch or LEAVING
    )
    return Effects(Answer(reply), effects.records, timers=effects.timers)


def _remove(group: StreamsGroup, member: StreamsMember) -> Effects[None]:
    """Take a member out, and have its tasks shared out anew."""
    gone = list(records.no_member(group.group_id, member.id))
    gone.append(
        records.group_metadata(
            group.group_id,
            group.epoch + 1,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        )
    )
    kinds = (SESSION, REBALANCE)
    timers: dict[TimerKey, int | None] = {(kind, group.group_id, member.id): None for kind in kinds}
    return Effects(records=gone, timers=timers)


def heartbeat(
    group: StreamsGroup,
    request: StreamsGroupHeartbeatRequest,
    client: Client,
    image: MetadataImage,
    now_ms: int,
) -> Effects[Answer]:
    """A member says that it is there, and perhaps what it is and has."""
    draft = Draft(group, image, now_ms)
    member = _member_of(group, request)
    reported = reported_tasks(request)
    updated = draft.take_in(member, _told(member, request, client))
    topology = draft.take_topology(request)
    configured = draft.configure(topology)
    _check_tasks(configured, reported)
    draft.bump_epoch_if_due(topology, configured, changed=updated != member)
    timers = draft.delay_first_assignment()
    draft.update_target(configured)
    updated = draft.advance(updated, reported)
    timers[SESSION, group.group_id, member.id] = draft.settings.session_timeout_ms
    if (updated.state, updated.epoch) != (member.state, member.epoch):
        revokes = updated.state == UNREVOKED
        timers[REBALANCE, group.group_id, member.id] = (
            updated.rebalance_timeout_ms if revokes else None
        )
    if request.shutdown_application:
        group.shutdown_requested_by = member.id
    # One that has other tasks than it shall have did not hear the answer that told it, and says
    # what it has just because of that; Kafka would leave it without them for good.
    is_unaware = reported is not None and reported != updated.assigned
    has_news = request.member_epoch == JOINING or updated.assigned != member.assigned or is_unaware
    answer = reply_to(draft, request, updated, topology, configured, has_news=has_news)
    return Effects(answer, draft.records, timers=timers)


def _member_of(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsMember:
    if request.member_epoch == JOINING:
        member = group.members.get(request.member_id)
        if member is None and len(group.members) >= group.settings().max_size:
            raise GroupMaxSizeReached("The streams group has reached its maximum capacity.")
        return member or StreamsMember(request.member_id)
    member = group.known(request.member_id)
    _check_epoch(member, request)
    return member


def _check_epoch(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> None:
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    reported = reported_tasks(request)
    is_previous = epoch == member.previous_epoch and epoch < member.epoch
    if is_previous and reported is not None and not reported - member.assigned:
        return
    raise FencedMemberEpoch(
        f"The streams group member has member epoch {epoch}, and the group coordinator knows "
        f"{member.epoch}. The member must abandon all its tasks and rejoin."
    )


def reported_tasks(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """The tasks that a member says it has; None if it said nothing this time."""
    if request.active_tasks is None or request.standby_tasks is None:
        return None
    return Tasks(_tasks(request.active_tasks), _tasks(request.standby_tasks))


def _tasks(rows: list[StreamsGroupHeartbeatRequestTaskIds]) -> frozenset[tuple[str, int]]:
    return frozenset((one.subtopology_id, number) for one in rows for number in one.partitions)


def _check_tasks(configured: ConfiguredTopology, reported: Tasks | None) -> None:
    if reported is None or not configured.is_ready or configured.tasks is None:
        return
    for subtopology, number in reported.active | reported.standby:
        if not 0 <= number < configured.tasks.get(subtopology, 0):
            raise InvalidRequest(f"There is no task {subtopology}_{number} in the topology.")


def _told(
    member: StreamsMember, request: StreamsGroupHeartbeatRequest, client: Client
) -> StreamsMember:
    """The member with what a heartbeat says; what it leaves out has not changed."""
    endpoint, tags, topology = request.user_endpoint, request.client_tags, request.topology
    timeout_ms = request.rebalance_timeout_ms
    return msgspec.structs.replace(
        member,
        rack_id=request.rack_id or member.rack_id,
        client_id=client.id,
        client_host=client.host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        process_id=request.process_id or member.process_id,
        endpoint=member.endpoint if endpoint is None else (endpoint.host, endpoint.port),
        tags=member.tags if tags is None else tuple((one.key, one.value) for one in tags),
    )


class Draft:
    """A streams group as it would be after what was decided so far."""

    def __init__(self, group: StreamsGroup, image: MetadataImage, now_ms: int) -> None:
        self.group = group
        self.image = image
        self.now_ms = now_ms
        self.settings = group.settings()
        self.epoch = group.epoch
        self.target_epoch = group.assignment_epoch
        self.members = dict(group.members)
        self.target: Mapping[str, Tasks] = group.target
        self.records: list[CoordinatorRecord] = []

    def take_in(self, member: StreamsMember, updated: StreamsMember) -> StreamsMember:
        self.members[updated.id] = updated
        if updated != member:
            self.records.append(records.member_metadata(self.group.group_id, updated))
        return updated

    def take_topology(self, request: StreamsGroupHeartbeatRequest) -> Topology:
        """The group's topology; the first member brings it, others must agree."""
        known = self.group.topology
        if request.topology is None:
            if known is None:
                raise InvalidRequest("The topology of the group is not known.")
            return known
        told = topology_from(request.topology)
        if known is None:
            self.records.append(records.topology_record(self.group.group_id, told))
            return told
        if known.epoch <= told.epoch and not is_same(known, told):
            raise InvalidRequest("Topology updates are not supported yet.")
        return known

    def configure(self, topology: Topology) -> ConfiguredTopology:
        """Work the topology out with the topics that there are, once for all members."""
        known = self.group.configured
        if known is None or known.topics is not self.image.topics or known.topology != topology:
            result = configure(topology, self.image)
            hash_now = metadata_hash(required_topics(topology), self.image)
            known = self.group.configured = Configured(
                self.image.topics, topology, result, hash_now
            )
        return known.result

    def bump_epoch_if_due(
        self, topology: Topology, configured: ConfiguredTopology, *, changed: bool
    ) -> None:
        """Raise the group epoch if members, topics, topology or configs are not what they were."""
        group = self.group
        assert group.configured is not None
        hash_now = group.configured.hash
        validated = topology.epoch if configured.is_ready else -1
        configs = {"num.standby.replicas": str(self.settings.num_standby_replicas)}
        if (
            changed
            or hash_now != group.metadata_hash
            or validated != group.validated_topology_epoch
            or configs != group.assignment_configs
        ):
            self.epoch += 1
            self.records.append(
                records.group_metadata(group.group_id, self.epoch, hash_now, validated, configs)
            )

    def delay_first_assignment(self) -> dict[TimerKey, int | None]:
        """A new group waits a little for more members, so that tasks do not move at once."""
        delay_ms = self.settings.initial_rebalance_delay_ms
        if self.group.members or not delay_ms:
            return {}
        self.group.delayed_until_ms = self.now_ms + delay_ms
        return {(INITIAL, self.group.group_id): delay_ms}

    @property
    def delay_ms(self) -> int:
        """How long the next assignment has to wait; 0 if it need not."""
        last_ms, interval_ms = (
            self.group.assignment_timestamp_ms,
            self.settings.assignment_interval_ms,
        )
        next_ms = last_ms + interval_ms if last_ms and interval_ms else 0
        return max(self.group.delayed_until_ms - self.now_ms, next_ms - self.now_ms, 0)

    @property
    def waits_for_assignment(self) -> bool:
        return self.epoch > self.target_epoch

    def update_target(self, configured: ConfiguredTopology) -> None:
        """Share the tasks out anew if that is due."""
        if not self.waits_for_assignment or self.delay_ms:
            return
        group = self.group
        tasks = configured.tasks if configured.is_ready else {}
        takers = {
            one.id: TaskTaker(one.process_id, group.target.get(one.id, NO_TASKS))
            for one in self.members.values()
        }
        shares = assign_tasks(
            takers, tasks or {}, configured.stateful, self.settings.num_standby_replicas
        )
        for member_id, share in shares.items():
            if group.target.get(member_id) != share:
                self.records.append(records.target_assignment(group.group_id, member_id, share))
        self.target = shares
        self.target_epoch = self.epoch
        self.records.append(records.target_epoch(group.group_id, self.epoch, self.now_ms))

    def advance(self, member: StreamsMember, reported: Tasks | None) -> StreamsMember:
        """Take a member a step towards its target."""
        target = self.target.get(member.id, NO_TASKS)
        if self.group.delayed_until_ms > self.now_ms:
            target = NO_TASKS
        others = self.members.values()
        updated = reconcile(member, self.target_epoch, target, reported, others)
        if updated != member:
            self.members[updated.id] = updated
            self.records.append(records.current_assignment(self.group.group_id, updated))
        return updated
