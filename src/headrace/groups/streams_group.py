"""A streams group (KIP-1071) as the log knows it, and the one place that changes it.

Much as a consumer group, with tasks for partitions; and the group knows the application's topology.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

import msgspec

from headrace.coordination.effects import Effects, Ticket, TimerKey
from headrace.errors import NonEmptyGroup, StaleMemberEpoch, UnknownMemberId
from headrace.groups.consumer_members import LEAVING
from headrace.groups.group import FIRST_EPOCH, GroupType
from headrace.groups.late_commits import LateCommit
from headrace.groups.streams_tasks import NO_TASKS, Task, Tasks
from headrace.groups.streams_topology import (
    ConfiguredTopology,
    Topology,
    required_topics,
    source_of,
)
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid

SESSION, REBALANCE, INITIAL = "streams.session", "streams.rebalance", "streams.initial"
"""Timers: until a member's next heartbeat, until it gave up tasks, and until the first sharing."""

STABLE, UNREVOKED, UNRELEASED, UNKNOWN = 1, 2, 3, 127
"""The states of a member on the way to its target, as records number them."""

_STATES = (STABLE, UNREVOKED, UNRELEASED)


class GroupState(StrEnum):
    """What a streams group is doing, as tools show it."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsSettings(msgspec.Struct, frozen=True):
    """What is set for a streams group, by itself or for all of them."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    num_standby_replicas: int = 0
    max_size: int = (1 << 31) - 1


class StreamsMember(msgspec.Struct, frozen=True):
    """One consumer of a streams application; several may share a process."""

    id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: int = STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] = ()
    assigned: Tasks = NO_TASKS
    pending_revocation: Tasks = NO_TASKS
    epochs: Mapping[Task, int] = {}  # Since when it has its active tasks.

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state == STABLE and self.epoch == epoch


class Configured(msgspec.Struct, frozen=True):
    """A topology as worked out with some topics; worth as long as these are the cluster's."""

    topics: object
    topology: Topology
    result: ConfiguredTopology
    hash: int


class StreamsGroup:
    """The hard state of a streams group; what is soft may be forgotten at any time."""

    type = GroupType.STREAMS
    protocol_type = "streams"

    def __init__(
        self, group_id: str, settings: Callable[[], StreamsSettings] = StreamsSettings
    ) -> None:
        self.group_id = group_id
        self.settings = settings
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = -1
        self.assignment_configs: dict[str, str] = {}
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.topology: Topology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.target: dict[str, Tasks] = {}
        self.configured: Configured | None = None  # Soft, as all below.
        self.delayed_until_ms = 0
        self.endpoint_epoch = 0
        self.shutdown_requested_by: str | None = None

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return GroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        done = all(one.is_reconciled_to(self.assignment_epoch) for one in self.members.values())
        return GroupState.STABLE if done else GroupState.RECONCILING

    def known(self, member_id: str) -> StreamsMember:
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    # What every kind of group is (`groups/group.py`).

    @property
    def state_name(self) -> str:
        return self.state.value

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, is_transaction: bool
    ) -> None:
        if epoch < 0 and not self.members:
            return
        if is_transaction and epoch == -1 and not member_id and instance_id is None:
            return
        member = self.known(member_id)
        if epoch > member.epoch:
            raise StaleMemberEpoch(
                f"Received member epoch {epoch} is newer than the member's {member.epoch}."
            )
        if epoch < member.epoch:
            raise LateCommit(
                epoch, member.epoch, lambda *place: self._check_late(member, epoch, *place)
            )

    def check_fetch(self, member_id: str, epoch: int) -> None:
        if not member_id and epoch < 0:
            return
        member = self.known(member_id)
        if epoch != member.epoch:
            raise StaleMemberEpoch(f"Received epoch {epoch} is not the member's {member.epoch}.")

    def _check_late(
        self, member: StreamsMember, epoch: int, topic: str, _: Uuid, partition: int
    ) -> None:
        subtopology = None if self.topology is None else source_of(self.topology, topic)
        if subtopology is None:
            raise StaleMemberEpoch(f"Topic {topic} is no source of the topology.")
        since = member.epochs.get((subtopology, partition))
        if since is None:
            raise StaleMemberEpoch(f"Task {subtopology}-{partition} is not the member's.")
        if epoch < since:
            raise StaleMemberEpoch(
                f"Received member epoch {epoch} is older than {since}, "
                f"when task {subtopology}-{partition} was assigned."
            )

    def check_offset_delete(self) -> None:
        """At any time: topics that are read are refused one by one."""

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup(f"Group {self.group_id} is not empty.")

    def is_subscribed(self, topic: str) -> bool:
        if self.topology is None or not self.members:
            return False
        return topic in required_topics(self.topology)

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        return committed_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        from headrace.groups.streams_records import no_group

        return list(no_group(self))

    def on_loaded(self, now_ms: int) -> Effects[None]:
        timers: dict[TimerKey, int | None] = {}
        session_ms = self.settings().session_timeout_ms
        for member in self.members.values():
            timers[SESSION, self.group_id, member.id] = session_ms
            if member.state == UNREVOKED:
                timers[REBALANCE, self.group_id, member.id] = member.rebalance_timeout_ms
        return Effects(timers=timers)

    def tickets(self) -> list[Ticket]:
        return []


def apply(group: StreamsGroup, key: Message, value: Message | None) -> None:
    """Change a group by one of its records, live and on replay alike."""
    match key:
        case schemas.StreamsGroupCurrentMemberAssignmentKey(member_id=member_id):
            _apply_current(group, member_id, value)
        case schemas.StreamsGroupTargetAssignmentMemberKey(member_id=member_id):
            _apply_target(group, member_id, value)
        case schemas.StreamsGroupTargetAssignmentMetadataKey():
            _apply_target_metadata(group, value)
        case schemas.StreamsGroupMemberMetadataKey(member_id=member_id):
            _apply_member(group, member_id, value)
        case schemas.StreamsGroupTopologyKey():
            group.topology = value if isinstance(value, schemas.StreamsGroupTopologyValue) else None
        case schemas.StreamsGroupMetadataKey():
            _apply_group(group, value)


def _apply_target_metadata(group: StreamsGroup, value: Message | None) -> None:
    if isinstance(value, schemas.StreamsGroupTargetAssignmentMetadataValue):
        group.assignment_epoch = value.assignment_epoch
        group.assignment_timestamp_ms = value.assignment_timestamp
    else:
        group.assignment_epoch, group.assignment_timestamp_ms = -1, 0


def _apply_group(group: StreamsGroup, value: Message | None) -> None:
    if isinstance(value, schemas.StreamsGroupMetadataValue):
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash
        group.validated_topology_epoch = value.validated_topology_epoch
        configs = value.last_assignment_configs or []
        group.assignment_configs = {one.key: one.value for one in configs}


def _apply_member(group: StreamsGroup, member_id: str, value: Message | None) -> None:
    if not isinstance(value, schemas.StreamsGroupMemberMetadataValue):
        group.members.pop(member_id, None)
        return
    endpoint = value.user_endpoint
    group.members[member_id] = msgspec.structs.replace(
        group.members.get(member_id) or StreamsMember(member_id),
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        tags=tuple((one.key, one.value) for one in value.client_tags),
    )


def _apply_current(group: StreamsGroup, member_id: str, value: Message | None) -> None:
    member = group.members.get(member_id)
    if isinstance(value, schemas.StreamsGroupCurrentMemberAssignmentValue):
        epochs = {
            (one.subtopology_id, number): epoch
            for one in (*value.active_tasks, *value.active_tasks_pending_revocation)
            for number, epoch in zip(one.partitions, one.assignment_epochs or (), strict=False)
        }
        group.members[member_id] = msgspec.structs.replace(
            member or StreamsMember(member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state if value.state in _STATES else UNKNOWN,
            assigned=Tasks(_tasks(value.active_tasks), _tasks(value.standby_tasks)),
            pending_revocation=Tasks(
                _tasks(value.active_tasks_pending_revocation),
                _tasks(value.standby_tasks_pending_revocation),
            ),
            epochs=epochs,
        )
    elif member is not None:
        group.members[member_id] = msgspec.structs.replace(
            member, epoch=LEAVING, assigned=NO_TASKS, pending_revocation=NO_TASKS, epochs={}
        )


def _apply_target(group: StreamsGroup, member_id: str, value: Message | None) -> None:
    if isinstance(value, schemas.StreamsGroupTargetAssignmentMemberValue):
        group.target[member_id] = Tasks(_tasks(value.active_tasks), _tasks(value.standby_tasks))
    else:
        group.target.pop(member_id, None)


def _tasks(
    rows: Iterable[
        schemas.StreamsGroupCurrentMemberAssignmentValueTaskIds
        | schemas.StreamsGroupTargetAssignmentMemberValueTaskIds
    ],
) -> frozenset[Task]:
    return frozenset((one.subtopology_id, number) for one in rows for number in one.partitions)
