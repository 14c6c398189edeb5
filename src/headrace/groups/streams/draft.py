"""A streams group as it would be after a decision: topology, target, steps."""

import msgspec

from headrace.errors import InvalidRequest
from headrace.groups.epochs.draft import Draft
from headrace.groups.streams import records
from headrace.groups.streams.group import (
    INITIAL,
    Configured,
    StreamsContext,
    StreamsGroup,
    StreamsMemory,
)
from headrace.groups.streams.reconciliation import reconcile
from headrace.groups.streams.records import StreamsMember
from headrace.groups.streams.tasks import NO_TASKS, Tasks, TaskTaker, assign_tasks
from headrace.groups.streams.topology import (
    ConfiguredTopology,
    Topology,
    configure,
    is_same,
    required_topics,
    topology_from,
)
from headrace.groups.subscriptions import metadata_hash
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.schemas.streams_group_heartbeat import StreamsGroupHeartbeatRequest


class StreamsDraft(Draft[StreamsMember, Tasks]):
    """The next state of a streams group."""

    group: StreamsGroup
    context: StreamsContext
    memory: StreamsMemory

    def remember(self, **changes: object) -> None:
        """Change what no record holds."""
        self.memory = msgspec.structs.replace(self.memory, **changes)

    def topology_of(self, request: StreamsGroupHeartbeatRequest) -> Topology:
        """The group's topology; the first member brings it, others must agree."""
        known = self.group.topology
        if request.topology is None:
            if known is None:
                raise InvalidRequest("The topology of the group is not known.")
            return known
        received = topology_from(request.topology)
        if known is None:
            self.records.append(records.topology_record(self.group.group_id, received))
            return received
        if known.epoch <= received.epoch and not is_same(known, received):
            raise InvalidRequest("Topology updates are not supported yet.")
        return known

    def configure(self, topology: Topology) -> Configured:
        """Configure the topology with the cluster's topics, once for all members."""
        image, known = self.context.image, self.memory.configured
        if known is None or known.topics is not image.topics or known.topology != topology:
            hash_now = metadata_hash(required_topics(topology), image)
            result = configure(topology, image)
            known = Configured(image.topics, topology, result, hash_now)
            self.remember(configured=known)
        return known

    def bump_epoch_if_due(self, configured: Configured, *, member_changed: bool) -> None:
        """Raise the group epoch if members, topics, topology or configs have changed."""
        group = self.group
        validated = configured.topology.epoch if configured.result.is_ready else -1
        configs = {"num.standby.replicas": str(self.context.settings.num_standby_replicas)}
        if (
            member_changed
            or configured.hash != group.metadata_hash
            or validated != group.validated_topology_epoch
            or configs != group.assignment_configs
        ):
            self._bump_epoch_to(configured.hash, validated, configs)

    def remove_and_bump(self, member: StreamsMember) -> None:
        """Remove a member, with its timers, and raise the group epoch for the others."""
        group = self.group
        self.remove(member)
        self._bump_epoch_to(
            group.metadata_hash, group.validated_topology_epoch, group.assignment_configs
        )
        for kind in (group.session, group.rebalance):
            self.timers[kind, group.group_id, member.id] = None

    def _bump_epoch_to(self, hash_now: int, topology_epoch: int, configs: dict[str, str]) -> None:
        self.bump_epoch(
            hash_now,
            validated_topology_epoch=topology_epoch,
            last_assignment_configs=[schemas.LastAssignmentConfig(*one) for one in configs.items()],
        )

    def delay_first_assignment(self) -> None:
        """Let a new group wait for more members, so that tasks do not move immediately."""
        delay_ms = self.context.settings.initial_rebalance_delay_ms
        if not self.group.members and delay_ms:
            self.remember(delayed_until_ms=self.context.now_ms + delay_ms)
            self.timers[INITIAL, self.group.group_id] = delay_ms

    @property
    def assignment_delay_ms(self) -> int:
        initial_ms = self.memory.delayed_until_ms - self.context.now_ms
        return max(super().assignment_delay_ms, initial_ms)

    def update_target(self, configured: ConfiguredTopology) -> None:
        """Assign all tasks again if that is due."""
        if not self.waits_for_assignment or self.assignment_delay_ms > 0:
            return
        tasks = configured.tasks if configured.is_ready else {}
        takers = {
            one.id: TaskTaker(one.process_id, self.group.target_of(one))
            for one in self.members.values()
        }
        standbys = self.context.settings.num_standby_replicas
        self.set_target(assign_tasks(takers, tasks or {}, configured.stateful, standbys))

    def take_step(self, member: StreamsMember, reported: Tasks | None) -> StreamsMember:
        """Take a member a step towards its target."""
        target = self.target.get(member.id, NO_TASKS)
        if self.memory.delayed_until_ms > self.context.now_ms:
            target = NO_TASKS
        others = self.members.values()
        return self.advance(member, reconcile(member, self.target_epoch, target, reported, others))
