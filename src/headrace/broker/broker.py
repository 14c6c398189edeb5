"""The parts of a running broker that the handlers of its requests use.

`node.py` builds the parts and hands each one the others that it needs. Only handlers receive them
all, because a request may be for any part.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import asyncio

    from headrace.broker.client_quotas import ClientQuotas
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.coordinators import Coordinator
    from headrace.broker.fetch_sessions import FetchSessions
    from headrace.broker.flushing import Flusher
    from headrace.broker.isr_changes import IsrChanges
    from headrace.broker.leaders import Leaders
    from headrace.broker.metadata import ClusterMetadata
    from headrace.broker.metrics.counters import Metrics
    from headrace.broker.metrics.telemetry import Telemetry
    from headrace.broker.produce.heavy import HeavyValidation
    from headrace.broker.produce.shapes import ProduceShapes
    from headrace.broker.producer_ids import ProducerIds
    from headrace.broker.registered_schemas import RegisteredSchemas
    from headrace.broker.replication_throttles import ReplicationThrottles
    from headrace.broker.shares.coordinator import ShareCoordinator
    from headrace.broker.shares.partitions import SharePartitions
    from headrace.broker.shares.persister import SharePersister
    from headrace.broker.topics.metadata_answers import MetadataAnswers
    from headrace.broker.topics.topic_creation import TopicCreation
    from headrace.broker.transactions import TransactionCoordinator
    from headrace.groups.shard import GroupShard
    from headrace.metadata.image import MetadataImage
    from headrace.replication.partitions import Partitions
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Tasks
    from headrace.security.access import Authorizer
    from headrace.security.node_tls import NodeTls
    from headrace.settings.broker import BrokerSettings
    from headrace.storage.directories import LogDirectories


class Broker(msgspec.Struct, frozen=True, kw_only=True):
    node_id: int
    cluster_id: str
    loop: "asyncio.AbstractEventLoop"
    clock: "Clock"
    tasks: "Tasks"
    metrics: "Metrics"
    controller: "ClusterMetadata"
    configs: "TopicConfigs"
    directories: "LogDirectories"
    partitions: "Partitions"
    flusher: "Flusher"
    authorizer: "Authorizer | None" = None
    """Decides what clients may do; None grants everything."""
    tls: "NodeTls | None" = None
    """The certificates of the listeners."""
    # Metadata and topics.
    metadata_answers: "MetadataAnswers"
    topic_creation: "TopicCreation"
    # Records.
    produce_shapes: "ProduceShapes"
    registered_schemas: "RegisteredSchemas"
    leaders: "Leaders"
    heavy_validation: "HeavyValidation"
    fetch_sessions: "FetchSessions"
    isr_changes: "IsrChanges"
    # Groups, transactions and share groups.
    groups: "Coordinator[GroupShard]"
    producer_ids: "ProducerIds"
    transactions: "TransactionCoordinator"
    share_coordinator: "ShareCoordinator"
    share_persister: "SharePersister"
    share_partitions: "SharePartitions"
    # Clients' own metrics, and limits.
    telemetry: "Telemetry"
    client_quotas: "ClientQuotas"
    replication_throttles: "ReplicationThrottles"

    @property
    def settings(self) -> "BrokerSettings":
        """The settings with the changes made at run time."""
        return self.configs.settings

    @property
    def image(self) -> "MetadataImage":
        """The metadata as of the last commit."""
        return self.controller.image

    @property
    def coordinators(self) -> "tuple[Coordinator[Any], ...]":
        """The coordinators of all internal topics."""
        return (self.groups, self.transactions.coordinator, self.share_coordinator.coordinator)

    @property
    def background(self) -> "Callable[..., asyncio.Future[Any]]":
        """Run a function that blocks in a thread."""
        return self.tasks.in_thread
