"""ElectLeaders: bring leadership back to the preferred replica, or force an unclean leader."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from headrace.controller.decision import ClusterDefaults, Decision, check_size
from headrace.controller.leadership import Election, Leadership
from headrace.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    KafkaError,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from headrace.metadata.records import VersionedRecord

if TYPE_CHECKING:
    from headrace.protocol.schemas.elect_leaders import TopicPartitions

PREFERRED = 0
UNCLEAN = 1


class ElectionResult(msgspec.Struct):
    """The outcome of the election of one partition."""

    topic: str
    partition: int
    error: KafkaError | None = None


def elect_leaders(
    image: MetadataImage,
    election_type: int,
    requested: Sequence["TopicPartitions"] | None,
    defaults: ClusterDefaults,
) -> Decision[list[ElectionResult]]:
    """Elect leaders of the given partitions, or of all (None) that need an election.

    With None, the reply leaves out partitions that need no election.
    """
    if election_type not in (PREFERRED, UNCLEAN):
        raise InvalidRequest(
            f"election type {election_type} is unknown; there are preferred (0) and unclean (1)"
        )
    election = Election.PREFERRED if election_type == PREFERRED else Election.UNCLEAN
    rules = Leadership(image, defaults)
    records: list[VersionedRecord] = []
    results: list[ElectionResult] = []
    for topic_name, index in _candidates(image, election, requested):
        result = ElectionResult(topic_name, index)
        try:
            records.extend(_elect(rules, topic_name, index, election))
        except KafkaError as error:
            result.error = error
        results.append(result)
    check_size(records, "these elections")
    return Decision(records, results)


def _candidates(
    image: MetadataImage, election: Election, requested: Sequence["TopicPartitions"] | None
) -> Iterable[tuple[str, int]]:
    if requested is not None:
        return [(topic.topic, index) for topic in requested for index in topic.partitions]
    return [
        (topic.name, index)
        for topic, index, partition in image.partitions()
        if not _is_settled(partition, election)
    ]


def _elect(
    rules: Leadership, topic_name: str, index: int, election: Election
) -> list[VersionedRecord]:
    topic = _topic(rules.image, topic_name, index)
    if _is_settled(topic.partitions[index], election):
        raise ElectionNotNeeded(f"{topic_name}-{index} has the leader that the election would give")
    record = rules.change(topic, index, election=election).record()
    if record is None and election is Election.PREFERRED:
        raise PreferredLeaderNotAvailable(
            f"the preferred leader of {topic_name}-{index} is not in sync, or not at work"
        )
    if record is None:
        raise EligibleLeadersNotAvailable(f"no replica of {topic_name}-{index} is at work")
    return rules.versioned([record])


def _topic(image: MetadataImage, name: str, index: int) -> TopicImage:
    topic = image.topics.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"topic '{name}' does not exist")
    if not 0 <= index < len(topic.partitions):
        raise UnknownTopicOrPartition(
            f"topic '{name}' has {len(topic.partitions)} partition(s), none numbered {index}"
        )
    return topic


def _is_settled(partition: PartitionImage, election: Election) -> bool:
    if election is Election.PREFERRED:
        return partition.leader == partition.preferred_leader
    return partition.leader != NO_LEADER
