"""Responses to the heartbeats of a streams group."""

from headrace.groups.epochs.heartbeat import Answer
from headrace.groups.epochs.members import MemberState
from headrace.groups.streams.draft import StreamsDraft
from headrace.groups.streams.group import Configured
from headrace.groups.streams.records import StreamsMember, by_subtopology
from headrace.groups.streams.tasks import Task
from headrace.groups.streams.topology import InternalTopic, StatusCode, Topology, source_topics
from headrace.protocol.schemas import streams_group_heartbeat as schemas

StreamsAnswer = Answer[schemas.StreamsGroupHeartbeatResponse, tuple[InternalTopic, ...]]
"""A response, and the topics that the application lacks and the broker creates."""


def reply_to(
    draft: StreamsDraft,
    request: schemas.StreamsGroupHeartbeatRequest,
    member: StreamsMember,
    configured: Configured,
    *,
    has_news: bool,
) -> StreamsAnswer:
    """The answer to a heartbeat; it lists the member's tasks if they have changed."""
    result = configured.result
    if has_news and member.endpoint is not None:
        draft.remember(endpoint_epoch=draft.memory.endpoint_epoch + 1)
    is_soon = member.state is MemberState.UNRELEASED or bool(result.missing)
    response = schemas.StreamsGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=draft.heartbeat_interval_ms(is_soon=is_soon),
        status=_statuses(draft, member, configured),
        endpoint_information_epoch=draft.memory.endpoint_epoch,
    )
    if has_news:
        response.active_tasks = _sent(member.assigned.active)
        response.standby_tasks = _sent(member.assigned.standby)
        response.warmup_tasks = []
    if draft.memory.endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = _endpoints(draft, configured.topology)
    return Answer(response, result.missing)


def _statuses(
    draft: StreamsDraft, member: StreamsMember, configured: Configured
) -> list[schemas.Status]:
    statuses = []
    topology, result = configured.topology, configured.result
    if member.topology_epoch < topology.epoch:
        behind = (
            f"The member's topology epoch is behind the group's topology epoch {topology.epoch}."
        )
        statuses.append(schemas.Status(StatusCode.STALE_TOPOLOGY, behind))
    if draft.waits_for_assignment:
        delayed = "Assignment delayed due to the configured interval or initial delay."
        statuses.append(schemas.Status(StatusCode.ASSIGNMENT_DELAYED, delayed))
    if result.status is not None:
        statuses.append(schemas.Status(result.status, result.detail))
    if draft.memory.shutdown_requested_by is not None:
        stop = (
            f"Streams group member {draft.memory.shutdown_requested_by} encountered a fatal error "
            f"and requested a shutdown for the entire application."
        )
        statuses.append(schemas.Status(StatusCode.SHUTDOWN_APPLICATION, stop))
    return statuses


def _sent(tasks: frozenset[Task]) -> list[schemas.StreamsGroupHeartbeatResponseTaskIds]:
    return [
        schemas.StreamsGroupHeartbeatResponseTaskIds(one, numbers)
        for one, numbers in by_subtopology(tasks).items()
    ]


def _endpoints(draft: StreamsDraft, topology: Topology) -> list[schemas.EndpointToPartitions]:
    """The endpoints where the state of each partition can be queried."""
    return [
        schemas.EndpointToPartitions(
            schemas.StreamsGroupHeartbeatResponseEndpoint(*one.endpoint),
            _partitions(one.assigned.active, topology, draft),
            _partitions(one.assigned.standby, topology, draft),
        )
        for one in draft.members.values()
        if one.endpoint is not None
    ]


def _partitions(
    tasks: frozenset[Task], topology: Topology, draft: StreamsDraft
) -> list[schemas.TopicPartition]:
    found = by_subtopology(tasks)
    sizes = {name: len(topic.partitions) for name, topic in draft.context.image.topics.items()}
    return [
        schemas.TopicPartition(
            name, [one for one in found[part.subtopology_id] if one < sizes[name]]
        )
        for part in topology.subtopologies
        if part.subtopology_id in found
        for name in source_topics(part)
        if name in sizes
    ]
