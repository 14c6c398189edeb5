"""The cluster as a client sees it through one listener: live brokers, leaders, offline replicas."""

from collections.abc import Iterator

from headrace.controller.topic_names import check_topic_name
from headrace.errors import (
    InvalidTopicException,
    LeaderNotAvailable,
    ListenerNotFound,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerImage,
    Endpoint,
    MetadataImage,
    PartitionImage,
)
from headrace.protocol.metadata_topic import METADATA_TOPIC

NO_NODE = -1

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that the broker keeps for itself; clients hide them from their users."""


def endpoint_of(broker: BrokerImage, listener: str) -> Endpoint | None:
    """Where clients of a listener reach a broker."""
    for endpoint in broker.endpoints:
        if endpoint.name == listener:
            return endpoint
    return None


def live_brokers(
    image: MetadataImage, listener: str, *, include_fenced: bool = False
) -> Iterator[tuple[BrokerImage, Endpoint]]:
    """The brokers that clients of this listener may talk to."""
    for broker in image.brokers.values():
        endpoint = endpoint_of(broker, listener)
        if endpoint is not None and (include_fenced or not broker.fenced):
            yield broker, endpoint


def controller_for_clients(image: MetadataImage, node_id: int) -> int:
    """The broker that clients send controller requests to: this one, while it is at work.

    Clients never see the real controller. Any live broker takes such requests for it.
    """
    broker = image.brokers.get(node_id)
    if broker is not None and not broker.fenced:
        return node_id
    return next((one.id for one in image.brokers.values() if not one.fenced), NO_NODE)


def leader_of(image: MetadataImage, partition: PartitionImage, listener: str) -> int:
    """The leader of a partition, or the error that says why clients cannot reach one."""
    broker = image.brokers.get(partition.leader)
    if broker is None:
        raise LeaderNotAvailable("the partition has no leader now; try again")
    if endpoint_of(broker, listener) is None:
        raise ListenerNotFound(f"leader {broker.id} has no listener {listener}")
    return broker.id


def offline_replicas(image: MetadataImage, partition: PartitionImage, listener: str) -> list[int]:
    """The replicas that clients of this listener cannot reach, or whose disk has failed."""
    return [
        replica
        for replica in partition.replicas
        if not _is_online(image.brokers.get(replica), partition, replica, listener)
    ]


def _is_online(
    broker: BrokerImage | None, partition: PartitionImage, replica: int, listener: str
) -> bool:
    if broker is None or broker.fenced or endpoint_of(broker, listener) is None:
        return False
    directory = partition.directory_of(replica)
    if directory is None or not broker.directories:
        return True
    if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    return directory in broker.directories


def why_missing(topic: str) -> InvalidTopicException | UnknownTopicOrPartition:
    """The error for a name that no topic has: could there be one at all?"""
    try:
        if topic != METADATA_TOPIC:
            check_topic_name(topic)
    except InvalidTopicException as error:
        return error
    return UnknownTopicOrPartition(f"topic '{topic}' does not exist")
