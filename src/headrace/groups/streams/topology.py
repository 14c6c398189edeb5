"""The topology of a streams application, with its tasks and internal topics (KIP-1071).

A subtopology has as many tasks as its largest source topic has partitions. Repartition topics take
their partition count from their writers, changelogs from their subtopology's sources; the broker
creates both if they are missing.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum

import msgspec

from headrace.errors import StreamsInvalidTopology
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas import streams_group_heartbeat as wire
from headrace.protocol.schemas.records import groups as schemas

Topology = schemas.StreamsGroupTopologyValue


class StatusCode(IntEnum):
    """The status codes of a group for its members."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class InternalTopic(msgspec.Struct, frozen=True):
    """A repartition or changelog topic as it must be."""

    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...] = ()


class ConfiguredTopology(msgspec.Struct, frozen=True):
    """A topology resolved with the existing topics.

    `tasks` is the number of tasks of each subtopology; None if it is unknown.
    """

    tasks: Mapping[str, int] | None = None
    stateful: frozenset[str] = frozenset()
    sizes: Mapping[str, int] = {}  # Partitions of internal topics.
    missing: tuple[InternalTopic, ...] = ()
    status: StatusCode | None = None
    detail: str = ""

    @property
    def is_ready(self) -> bool:
        return self.tasks is not None and self.status is None


class _Unusable(Exception):
    """The topics are not as the topology needs them."""

    def __init__(self, status: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def topology_from(request: wire.Topology) -> Topology:
    """The topology of a request as it is kept."""
    return Topology(
        epoch=request.epoch,
        subtopologies=[
            schemas.Subtopology(
                subtopology_id=one.subtopology_id,
                source_topics=one.source_topics,
                source_topic_regex=one.source_topic_regex,
                state_changelog_topics=_kept(one.state_changelog_topics),
                repartition_sink_topics=one.repartition_sink_topics,
                repartition_source_topics=_kept(one.repartition_source_topics),
                copartition_groups=[
                    schemas.CopartitionGroup(
                        group.source_topics,
                        group.source_topic_regex,
                        group.repartition_source_topics,
                    )
                    for group in one.copartition_groups
                ],
            )
            for one in request.subtopologies
        ],
    )


def _kept(topics: Iterable[wire.TopicInfo]) -> list[schemas.StreamsGroupTopologyValueTopicInfo]:
    return [
        schemas.StreamsGroupTopologyValueTopicInfo(
            one.name,
            one.partitions,
            one.replication_factor,
            [schemas.TopicConfig(config.key, config.value) for config in one.topic_configs],
        )
        for one in topics
    ]


def is_same(left: Topology, right: Topology) -> bool:
    """Return whether two topologies are equal, ignoring the order of their parts."""
    return left.epoch == right.epoch and _by_id(left) == _by_id(right)


def _by_id(topology: Topology) -> dict[str, schemas.Subtopology]:
    return {one.subtopology_id: one for one in topology.subtopologies}


def source_topics(subtopology: schemas.Subtopology) -> list[str]:
    """All that a subtopology reads."""
    repartitioned = [one.name for one in subtopology.repartition_source_topics]
    return [*subtopology.source_topics, *repartitioned]


def source_of(topology: Topology, topic: str) -> str | None:
    """The subtopology that reads a topic, if one does."""
    for one in topology.subtopologies:
        if topic in source_topics(one):
            return one.subtopology_id
    return None


def required_topics(topology: Topology) -> set[str]:
    """All topics that must be there for the application to run."""
    names: set[str] = set()
    for one in topology.subtopologies:
        names.update(source_topics(one))
        names.update(changelog.name for changelog in one.state_changelog_topics)
    return names


def configure(topology: Topology, image: MetadataImage) -> ConfiguredTopology:
    """Compute tasks and internal topics; a status names obstacles."""
    try:
        _check_sources(topology, image)
        counts = _decide_counts(topology, image)
        internal = _internal_topics(topology, counts)
        missing = tuple(one for one in internal if not _exists_as_it_must(one, image))
    except _Unusable as error:
        return ConfiguredTopology(status=error.status, detail=str(error))
    tasks = {
        one.subtopology_id: max(counts(name) for name in source_topics(one))
        for one in topology.subtopologies
    }
    stateful = frozenset(
        one.subtopology_id for one in topology.subtopologies if one.state_changelog_topics
    )
    sizes = {one.name: one.partitions for one in internal}
    if not missing:
        return ConfiguredTopology(tasks, stateful, sizes)
    names = ", ".join(one.name for one in missing)
    detail = f"Internal topics are missing: {names}"
    status = StatusCode.MISSING_INTERNAL_TOPICS
    return ConfiguredTopology(tasks, stateful, sizes, missing, status, detail)


def _check_sources(topology: Topology, image: MetadataImage) -> None:
    missing = sorted(
        name
        for one in topology.subtopologies
        for name in one.source_topics
        if name not in image.topics
    )
    if missing:
        names = ", ".join(missing)
        raise _Unusable(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {names} are missing.")
    if not all(source_topics(one) for one in topology.subtopologies):
        raise StreamsInvalidTopology("A subtopology has no source topics.")


def _decide_counts(topology: Topology, image: MetadataImage) -> Callable[[str], int]:
    """The existing or required number of partitions of each topic."""
    decided: dict[str, int] = {}

    def count(name: str) -> int:
        topic = image.topics.get(name)
        return decided.get(name, 0) if topic is None else len(topic.partitions)

    _decide_repartition_topics(topology, decided, count)
    _enforce_copartitioning(topology, decided, count)
    for one in topology.subtopologies:
        size = max(count(name) for name in source_topics(one))
        decided.update(dict.fromkeys((topic.name for topic in one.state_changelog_topics), size))
    for name in decided:
        if name in image.topics:
            decided[name] = decided[name] or count(name)
    return lambda name: decided.get(name) or count(name)


def _decide_repartition_topics(
    topology: Topology, decided: dict[str, int], count: Callable[[str], int]
) -> None:
    """A repartition topic is as large as the largest topic that flows into it."""
    wanted = [one for sub in topology.subtopologies for one in sub.repartition_source_topics]
    decided.update({one.name: one.partitions for one in wanted if one.partitions})
    for _ in topology.subtopologies:
        for one in topology.subtopologies:
            size = max((decided.get(name) or count(name) for name in source_topics(one)), default=0)
            for sink in one.repartition_sink_topics:
                if size and not decided.get(sink):
                    decided[sink] = size
    unknown = [one.name for one in wanted if not decided.get(one.name)]
    if unknown:
        raise StreamsInvalidTopology(
            f"Failed to compute number of partitions for repartition topics {', '.join(unknown)}."
        )


def _enforce_copartitioning(
    topology: Topology, decided: dict[str, int], count: Callable[[str], int]
) -> None:
    """Topics that are joined have equal sizes; repartition topics follow the others."""
    for one in topology.subtopologies:
        for group in one.copartition_groups:
            outside = [one.source_topics[index] for index in group.source_topics]
            inside = [one.repartition_source_topics[at] for at in group.repartition_source_topics]
            fixed = {topic.partitions for topic in inside if topic.partitions}
            sizes = {count(name) for name in outside} or fixed
            if len(sizes | fixed) > 1:
                names = ", ".join(sorted([*outside, *(topic.name for topic in inside)]))
                raise _Unusable(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Following topics do not have the same number of partitions: [{names}]",
                )
            size = max(sizes or {decided[topic.name] for topic in inside}, default=0)
            decided.update(dict.fromkeys((topic.name for topic in inside), size))


def _internal_topics(topology: Topology, count: Callable[[str], int]) -> list[InternalTopic]:
    found = {
        topic.name: InternalTopic(
            topic.name,
            count(topic.name),
            topic.replication_factor or -1,
            tuple((config.key, config.value) for config in topic.topic_configs),
        )
        for one in topology.subtopologies
        for topic in (*one.repartition_source_topics, *one.state_changelog_topics)
    }
    return [found[name] for name in sorted(found)]


def _exists_as_it_must(topic: InternalTopic, image: MetadataImage) -> bool:
    there = image.topics.get(topic.name)
    if there is None:
        return False
    if len(there.partitions) != topic.partitions:
        raise _Unusable(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Existing topic {topic.name} has different number of partitions: expected "
            f"{topic.partitions}, found {len(there.partitions)}",
        )
    return True
