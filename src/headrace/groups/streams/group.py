"""A streams group (KIP-1071) as its log describes it: tasks for partitions, and a topology."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import StaleMemberEpoch
from headrace.groups.epochs.draft import Context
from headrace.groups.epochs.group import EpochGroup, EpochSettings, GroupState
from headrace.groups.epochs.records import tombstone
from headrace.groups.group import GroupType
from headrace.groups.streams.records import StreamsMember, StreamsRecords
from headrace.groups.streams.tasks import NO_TASKS, Tasks
from headrace.groups.streams.topology import (
    ConfiguredTopology,
    Topology,
    required_topics,
    source_of,
)
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid

if TYPE_CHECKING:
    from headrace.settings.broker import BrokerSettings

INITIAL = "streams.initial"
"""The timer of a new group until its first assignment."""


class StreamsSettings(EpochSettings, frozen=True, kw_only=True):
    """The settings of a streams group."""

    initial_rebalance_delay_ms: int = 3_000
    num_standby_replicas: int = 0


class Configured(msgspec.Struct, frozen=True):
    """A topology as configured with some topics; valid as long as these are the cluster's."""

    topics: object
    topology: Topology
    result: ConfiguredTopology
    hash: int


class StreamsMemory(msgspec.Struct, frozen=True):
    """State without records."""

    configured: Configured | None = None
    delayed_until_ms: int = 0
    endpoint_epoch: int = 0
    shutdown_requested_by: str | None = None


class StreamsGroup(EpochGroup[StreamsMember, Tasks]):
    """One streams group."""

    type = GroupType.STREAMS
    records = StreamsRecords()
    no_target = NO_TASKS
    settings_type, memory_type = StreamsSettings, StreamsMemory
    setting_names = (
        *EpochGroup.setting_names,
        "initial.rebalance.delay.ms",
        "num.standby.replicas",
    )
    session, rebalance = "streams.session", "streams.rebalance"
    settings: Callable[[], StreamsSettings]
    memory: StreamsMemory

    def __init__(
        self, group_id: str, settings: Callable[[], StreamsSettings] | None = None
    ) -> None:
        super().__init__(group_id, settings)
        self.validated_topology_epoch = -1
        self.assignment_configs: dict[str, str] = {}
        self.topology: Topology | None = None

    @staticmethod
    def broker_settings(broker: "BrokerSettings") -> dict[str, Any]:
        return {"max_size": broker.group_streams_max_size}

    @property
    def state(self) -> GroupState:
        is_valid = (
            self.topology is not None and self.topology.epoch == self.validated_topology_epoch
        )
        return GroupState.NOT_READY if self.members and not is_valid else super().state

    def check_late_commit(
        self, member: StreamsMember, epoch: int, topic: str, topic_id: Uuid, partition: int
    ) -> None:
        subtopology = None if self.topology is None else source_of(self.topology, topic)
        if subtopology is None:
            raise StaleMemberEpoch(f"Topic {topic} is not a source topic of the topology.")
        since = member.epochs.get((subtopology, partition))
        if since is None:
            raise StaleMemberEpoch(f"Task {subtopology}-{partition} is not the member's.")
        if epoch < since:
            raise StaleMemberEpoch(
                f"Received member epoch {epoch} is older than {since}, "
                f"when task {subtopology}-{partition} was assigned."
            )

    def is_subscribed(self, topic: str) -> bool:
        if self.topology is None or not self.members:
            return False
        return topic in required_topics(self.topology)

    def own_tombstones(self) -> Iterator[CoordinatorRecord]:
        yield tombstone(schemas.StreamsGroupMetadataKey(group_id=self.group_id))
        yield tombstone(schemas.StreamsGroupTopologyKey(group_id=self.group_id))

    def apply_own(self, key: Message, value: Any) -> None:
        if isinstance(key, schemas.StreamsGroupTopologyKey):
            self.topology = value

    def apply_group(self, value: schemas.StreamsGroupMetadataValue) -> None:
        super().apply_group(value)
        self.validated_topology_epoch = value.validated_topology_epoch
        configs = value.last_assignment_configs or []
        self.assignment_configs = {one.key: one.value for one in configs}


StreamsContext = Context[StreamsSettings]
