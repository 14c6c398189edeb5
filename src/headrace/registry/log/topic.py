"""The topic that a registry is kept in: made if it is missing, refused if it would lose schemas."""

import logging
import time

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.errors import (
    ERROR_NAMES,
    HeadraceError,
    LeaderNotAvailable,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from headrace.registry.settings import RegistrySettings

_log = logging.getLogger(__name__)

_PAUSE_S = 0.1
_COMPACTED = {"cleanup.policy": "compact"}


class UnfitTopic(HeadraceError):
    """The topic exists and would not keep schemas, or cannot be made."""


def prepare_topic(admin: Admin, settings: RegistrySettings) -> None:
    """Have a topic of one partition that is compacted and never expires."""
    name = settings.kafkastore_topic
    found = admin.cluster.metadata([name]).topics[0]
    if found.error_code:
        _create(admin, settings)
    deadline = time.monotonic() + settings.kafkastore_init_timeout_ms / 1000
    while True:
        try:
            return _check(admin, name)
        except (UnknownTopicOrPartition, LeaderNotAvailable):
            # It was just made, by us or by another instance, and not every broker has heard of it.
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_S)


def _create(admin: Admin, settings: RegistrySettings) -> None:
    name = settings.kafkastore_topic
    brokers = len(admin.cluster.node_ids())
    replicas = min(brokers, settings.kafkastore_topic_replication_factor)
    if replicas < settings.kafkastore_topic_replication_factor:
        _log.info(
            "the topic %s gets %d replicas in place of %d, as there are no more brokers",
            *(name, replicas, settings.kafkastore_topic_replication_factor),
        )
    topic = NewTopic(name=name, partitions=1, replication_factor=replicas, configs=_COMPACTED)
    outcome = admin.topics.create([topic])[0]
    is_there = outcome.error == ERROR_NAMES[TopicAlreadyExists.code]
    if outcome.error is not None and not is_there:
        reason = f"{outcome.error}: {outcome.message}" if outcome.message else outcome.error
        raise UnfitTopic(f"the topic {name} cannot be created: {reason}")


def _check(admin: Admin, name: str) -> None:
    partitions = admin.cluster.topic(name).partitions
    if len(partitions) != 1:
        raise UnfitTopic(
            f"The schema topic {name} should have only 1 partition but has {len(partitions)}"
        )
    if partitions[0].leader_id < 0:
        raise LeaderNotAvailable(f"the topic {name} has no leader yet")
    configs = {entry.name: entry.value for entry in admin.configs.describe("topic", name)}
    policy = configs.get("cleanup.policy")
    if policy != "compact":
        raise UnfitTopic(
            f"The retention policy of the schema topic {name} is incorrect. Expected cleanup.policy"
            f" to be 'compact' but it is {policy}; headrace configs alter topic {name}"
            " --set cleanup.policy=compact mends it, before Kafka deletes schemas"
        )
