"""The names and shapes of the topics in which coordinators store their state."""

import logging
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.topics.new_topics import create_topics, new_topic
from headrace.errors import CoordinatorNotAvailable, KafkaError

if TYPE_CHECKING:
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.metadata import ClusterMetadata
    from headrace.settings.broker import BrokerSettings

_log = logging.getLogger(__name__)

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"


class Shape(NamedTuple):
    """The partitions and configs of an internal topic, as in Kafka."""

    partitions: int
    replication_factor: int
    min_in_sync_replicas: int
    configs: dict[str, str]


def shape_of(topic: str, settings: "BrokerSettings") -> Shape:
    if topic == CONSUMER_OFFSETS:
        return Shape(
            settings.offsets_topic_num_partitions,
            settings.offsets_topic_replication_factor,
            1,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
        )
    if topic == TRANSACTION_STATE:
        return Shape(
            settings.transaction_state_log_num_partitions,
            settings.transaction_state_log_replication_factor,
            settings.transaction_state_log_min_isr,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(settings.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    assert topic == SHARE_GROUP_STATE, topic
    return Shape(
        settings.share_coordinator_state_topic_num_partitions,
        settings.share_coordinator_state_topic_replication_factor,
        settings.share_coordinator_state_topic_min_isr,
        {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "retention.ms": "-1",
            "segment.bytes": str(settings.share_coordinator_state_topic_segment_bytes),
        },
    )


async def create_internal(
    controller: "ClusterMetadata", configs: "TopicConfigs", topic: str
) -> None:
    """Create an internal topic unless it exists.

    Kafka fails while there are fewer brokers than the replication factor, and a single node then
    coordinates nothing. Headrace creates as many replicas as there are registered brokers, whether
    they are up or not: the first client may come while a cluster starts.
    """
    shape = shape_of(topic, configs.settings)
    registered = len(controller.image.brokers)
    factor = max(1, min(shape.replication_factor, registered))
    given = dict(shape.configs)
    if shape.min_in_sync_replicas > 1:
        given["min.insync.replicas"] = str(min(shape.min_in_sync_replicas, factor))
    wanted = new_topic(topic, shape.partitions, factor, given)
    try:
        errors = await create_topics(controller, [wanted])
    except KafkaError as error:
        raise CoordinatorNotAvailable(f"{topic} could not be created: {error}") from error
    for refusal in errors.values():
        if refusal is not None:
            _log.warning(
                "internal topic not created", extra={"topic": topic, "error": str(refusal)}
            )
            raise CoordinatorNotAvailable(f"{topic} could not be created: {refusal}")
        _log.info("internal topic created", extra={"topic": topic, "partitions": shape.partitions})
