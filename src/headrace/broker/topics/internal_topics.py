"""The topics in which coordinators keep their state: what they are called and how they are made."""

import logging
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.configs.config_layers import rules_of
from headrace.controller.topics import create_topics
from headrace.errors import CoordinatorNotAvailable, KafkaError, TopicAlreadyExists
from headrace.protocol.schemas.create_topics import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from headrace.broker.node import Broker
    from headrace.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"


class Shape(NamedTuple):
    """How an internal topic is made; the configs are Kafka's."""

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


async def create_internal(broker: "Broker", topic: str) -> None:
    """Create an internal topic if it is not there.

    Kafka refuses to while there are fewer brokers than the replication factor asks for, and a
    single node then coordinates nothing. We take as many replicas as there are brokers.
    """
    shape = shape_of(topic, broker.settings)
    live = sum(not one.fenced for one in broker.image.brokers.values())
    factor = max(1, min(shape.replication_factor, live))
    configs = dict(shape.configs)
    if shape.min_in_sync_replicas > 1:
        configs["min.insync.replicas"] = str(min(shape.min_in_sync_replicas, factor))
    wanted = CreatableTopic(
        name=topic,
        num_partitions=shape.partitions,
        replication_factor=factor,
        configs=[CreatableTopicConfig(name=name, value=text) for name, text in configs.items()],
    )
    controller, rules = broker.controller, rules_of(broker)
    try:
        results = await controller.submit(
            lambda image: create_topics(image, [wanted], controller.defaults, rules)
        )
    except KafkaError as error:
        raise CoordinatorNotAvailable(f"{topic} could not be created: {error}") from error
    refusal = results[0].error
    if refusal is None:
        log.info("created %s with %d partitions", topic, shape.partitions)
    elif not isinstance(refusal, TopicAlreadyExists):
        log.warning("%s was not created: %s", topic, refusal)
        raise CoordinatorNotAvailable(f"{topic} could not be created: {refusal}")
