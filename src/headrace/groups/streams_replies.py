"""What a member of a streams group is told."""

from typing import TYPE_CHECKING

import msgspec

from headrace.groups.streams_group import UNRELEASED, StreamsMember
from headrace.groups.streams_records import by_subtopology
from headrace.groups.streams_tasks import Task
from headrace.groups.streams_topology import (
    ConfiguredTopology,
    InternalTopic,
    StatusCode,
    Topology,
    source_topics,
)
from headrace.protocol.schemas.streams_group_heartbeat import (
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatResponseEndpoint,
    StreamsGroupHeartbeatResponseTaskIds,
    TopicPartition,
)

if TYPE_CHECKING:
    from headrace.groups.streams import Draft

_SOON_MS = 500


class Answer(msgspec.Struct, frozen=True):
    """A reply, and the topics that the application lacks and the broker shall create."""

    response: StreamsGroupHeartbeatResponse
    missing: tuple[InternalTopic, ...] = ()


def reply_to(
    draft: "Draft",
    request: StreamsGroupHeartbeatRequest,
    member: StreamsMember,
    topology: Topology,
    configured: ConfiguredTopology,
    *,
    has_news: bool,
) -> Answer:
    """The answer to a heartbeat; tasks are told when they are others than before."""
    group = draft.group
    if has_news and member.endpoint is not None:
        group.endpoint_epoch += 1
    response = StreamsGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=_interval_ms(draft, member, configured),
        status=_statuses(draft, member, topology, configured),
        endpoint_information_epoch=group.endpoint_epoch,
    )
    if has_news:
        response.active_tasks = _sent(member.assigned.active)
        response.standby_tasks = _sent(member.assigned.standby)
        response.warmup_tasks = []
    if group.endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = _endpoints(draft, topology)
    return Answer(response, configured.missing)


def _interval_ms(draft: "Draft", member: StreamsMember, configured: ConfiguredTopology) -> int:
    """When to send the next heartbeat: soon, if there will be news that only a heartbeat brings."""
    usual_ms = draft.settings.heartbeat_interval_ms
    if draft.waits_for_assignment:
        return max(min(usual_ms, draft.delay_ms + 1), 1)
    if member.state == UNRELEASED or configured.missing:
        return min(usual_ms, _SOON_MS)
    return usual_ms


def _statuses(
    draft: "Draft", member: StreamsMember, topology: Topology, configured: ConfiguredTopology
) -> list[Status]:
    statuses = []
    if member.topology_epoch < topology.epoch:
        behind = (
            f"The member's topology epoch is behind the group's topology epoch {topology.epoch}."
        )
        statuses.append(Status(StatusCode.STALE_TOPOLOGY, behind))
    if draft.waits_for_assignment:
        delayed = "Assignment delayed due to the configured interval or initial delay."
        statuses.append(Status(StatusCode.ASSIGNMENT_DELAYED, delayed))
    if configured.status is not None:
        statuses.append(Status(configured.status, configured.detail))
    if draft.group.shutdown_requested_by is not None:
        stop = (
            f"Streams group member {draft.group.shutdown_requested_by} encountered a fatal error "
            f"and requested a shutdown for the entire application."
        )
        statuses.append(Status(StatusCode.SHUTDOWN_APPLICATION, stop))
    return statuses


def _sent(tasks: frozenset[Task]) -> list[StreamsGroupHeartbeatResponseTaskIds]:
    return [
        StreamsGroupHeartbeatResponseTaskIds(one, numbers)
        for one, numbers in by_subtopology(tasks).items()
    ]


def _endpoints(draft: "Draft", topology: Topology) -> list[EndpointToPartitions]:
    """Where the state of which partitions can be queried."""
    return [
        EndpointToPartitions(
            StreamsGroupHeartbeatResponseEndpoint(*one.endpoint),
            _partitions(one.assigned.active, topology, draft),
            _partitions(one.assigned.standby, topology, draft),
        )
        for one in draft.members.values()
        if one.endpoint is not None
    ]


def _partitions(tasks: frozenset[Task], topology: Topology, draft: "Draft") -> list[TopicPartition]:
    found = by_subtopology(tasks)
    sizes = {name: len(topic.partitions) for name, topic in draft.image.topics.items()}
    return [
        TopicPartition(name, [one for one in found[part.subtopology_id] if one < sizes[name]])
        for part in topology.subtopologies
        if part.subtopology_id in found
        for name in source_topics(part)
        if name in sizes
    ]
