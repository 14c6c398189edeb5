"""Descriptions of streams groups, for StreamsGroupDescribe."""

from collections.abc import Callable, Iterable

from headrace.groups.epochs.description import group_fields, member_fields
from headrace.groups.streams.group import StreamsGroup
from headrace.groups.streams.records import StreamsMember, by_subtopology
from headrace.groups.streams.tasks import NO_TASKS, Tasks
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.schemas.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)


def describe(group: StreamsGroup) -> DescribedGroup:
    """Describe a group, its topology, and the current and the target tasks of its members."""
    return DescribedGroup(
        **group_fields(group),
        topology=_topology(group),
        members=[_member(one, group.target.get(one.id)) for one in group.members.values()],
    )


def _topology(group: StreamsGroup) -> Topology | None:
    if group.topology is None:
        return None
    configured = group.memory.configured
    sizes = {} if configured is None else configured.result.sizes
    return Topology(
        epoch=group.topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=one.subtopology_id,
                source_topics=one.source_topics,
                repartition_sink_topics=one.repartition_sink_topics,
                state_changelog_topics=_topics(one.state_changelog_topics, sizes.get),
                repartition_source_topics=_topics(one.repartition_source_topics, sizes.get),
            )
            for one in group.topology.subtopologies
        ],
    )


def _topics(
    topics: Iterable[schemas.StreamsGroupTopologyValueTopicInfo],
    size_of: Callable[[str], int | None],
) -> list[TopicInfo]:
    return [
        TopicInfo(
            one.name,
            one.partitions or size_of(one.name) or 0,
            one.replication_factor,
            [KeyValue(config.key, config.value) for config in one.topic_configs],
        )
        for one in topics
    ]


def _member(member: StreamsMember, target: Tasks | None) -> Member:
    return Member(
        **member_fields(member),
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if member.endpoint is None else Endpoint(*member.endpoint),
        client_tags=[KeyValue(key, value) for key, value in member.tags],
        assignment=_assignment(member.assigned | member.pending_revocation),
        target_assignment=_assignment(target or NO_TASKS),
    )


def _assignment(tasks: Tasks) -> Assignment:
    return Assignment(
        active_tasks=[TaskIds(*one) for one in by_subtopology(tasks.active).items()],
        standby_tasks=[TaskIds(*one) for one in by_subtopology(tasks.standby).items()],
    )
