"""The topic of a registry: created if missing, rejected if it would lose schemas."""

import logging
import time

from headrace import errors
from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.registry.settings import RegistrySettings

_log = logging.getLogger(__name__)

_PAUSE_S = 0.1
_COMPACTED = {"cleanup.policy": "compact"}


class UnfitTopic(errors.HeadraceError):
    """The topic would not keep schemas, or cannot be created."""


def prepare_topic(admin: Admin, settings: RegistrySettings) -> None:
    """Create or check the topic: one partition, compacted, without expiry."""
    name = settings.kafkastore_topic
    found = admin.cluster.metadata([name]).topics[0]
    if found.error_code:
        _create(admin, settings)
    deadline = time.monotonic() + settings.kafkastore_init_timeout_ms / 1000
    while True:
        try:
            return _check(admin, name)
        except (errors.UnknownTopicOrPartition, errors.LeaderNotAvailable):
            # Just created, by this or another instance, so some brokers do not have it yet.
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_S)


def _create(admin: Admin, settings: RegistrySettings) -> None:
    name = settings.kafkastore_topic
    brokers = len(admin.cluster.node_ids())
    replicas = min(brokers, settings.kafkastore_topic_replication_factor)
    if replicas < settings.kafkastore_topic_replication_factor:
        fields = {"topic": name, "replicas": replicas, "brokers": brokers}
        _log.info("schema topic created with fewer replicas than configured", extra=fields)
    topic = NewTopic(name=name, partitions=1, replication_factor=replicas, configs=_COMPACTED)
    outcome = admin.topics.create([topic])[0]
    is_there = outcome.error == errors.ERROR_NAMES[errors.TopicAlreadyExists.code]
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
        raise errors.LeaderNotAvailable(f"the topic {name} has no leader yet")
    configs = {entry.name: entry.value for entry in admin.configs.describe("topic", name)}
    policy = configs.get("cleanup.policy")
    if policy != "compact":
        raise UnfitTopic(
            f"The retention policy of the schema topic {name} is incorrect. Expected cleanup.policy"
            f" to be 'compact' but it is {policy}; headrace configs alter topic {name}"
            " --set cleanup.policy=compact fixes it, before Kafka deletes schemas"
        )
