"""The cluster from the view of one listener: live brokers, leaders, offline replicas."""

from collections.abc import Iterable, Iterator

from headrace.controller.topic_names import check_topic_name
from headrace.errors import (
    InvalidTopicException,
    KafkaError,
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
from headrace.protocol.hot_fetch import NodeAddress
from headrace.protocol.metadata_topic import METADATA_TOPIC

NO_NODE = -1

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics for the state of coordinators; clients hide them from their users."""


def endpoint_of(broker: BrokerImage, listener: str) -> Endpoint | None:
    """Return the address of a broker for the clients of a listener."""
    for endpoint in broker.endpoints:
        if endpoint.name == listener:
            return endpoint
    return None


def live_brokers(
    image: MetadataImage, listener: str, *, include_fenced: bool = False
) -> Iterator[tuple[BrokerImage, Endpoint]]:
    """Yield the brokers that clients of this listener can reach."""
    for broker in image.brokers.values():
        endpoint = endpoint_of(broker, listener)
        if endpoint is not None and (include_fenced or not broker.fenced):
            yield broker, endpoint


def controller_for_clients(image: MetadataImage, node_id: int) -> int:
    """Return the broker to which clients send controller requests: this one, unless it is fenced.

    Clients never see the real controller; every live broker forwards such requests.
    """
    broker = image.brokers.get(node_id)
    if broker is not None and not broker.fenced:
        return node_id
    return next((one.id for one in image.brokers.values() if not one.fenced), NO_NODE)


def leader_of(image: MetadataImage, partition: PartitionImage, listener: str) -> int:
    """Return the leader of a partition; raise if clients cannot reach one.

    A fenced broker may be the leader in the metadata if it has the only replica.
    """
    broker = image.brokers.get(partition.leader)
    if broker is None or broker.fenced:
        raise LeaderNotAvailable("the partition has no leader now; try again")
    if endpoint_of(broker, listener) is None:
        raise ListenerNotFound(f"leader {broker.id} has no listener {listener}")
    return broker.id


def leader_nodes(
    image: MetadataImage, listener: str, errors: Iterable[KafkaError]
) -> list[NodeAddress]:
    """Return the addresses of the leaders that errors name, for clients of a listener (KIP-951)."""
    ids = {one.current_leader[0] for one in errors if one.current_leader is not None}
    nodes = []
    for broker in map(image.brokers.get, sorted(ids)):
        endpoint = None if broker is None else endpoint_of(broker, listener)
        if broker is not None and endpoint is not None:
            nodes.append(NodeAddress(broker.id, endpoint.host, endpoint.port, broker.rack))
    return nodes


def offline_replicas(image: MetadataImage, partition: PartitionImage, listener: str) -> list[int]:
    """Return the replicas that clients of this listener cannot reach, or whose disk has failed."""
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
    """Return the error for an unknown topic: an invalid name, or a missing topic."""
    try:
        if topic != METADATA_TOPIC:
            check_topic_name(topic)
    except InvalidTopicException as error:
        return error
    return UnknownTopicOrPartition(f"topic '{topic}' does not exist")
