"""The pages of a node's metrics port, collected on each scrape."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from headrace.broker.metrics.client_metrics import telemetry_families
from headrace.broker.metrics.coordinator_metrics import (
    CoordinatorFigures,
    coordinator_families,
    count_groups,
    count_transactions,
)
from headrace.broker.metrics.exported_metrics import (
    BROKER_RUNNING,
    NodeFigures,
    PartitionFigures,
    exported_families,
)
from headrace.broker.metrics.quorum_metrics import quorum_families
from headrace.broker.metrics.quota_metrics import (
    client_quota_families,
    connection_rate_families,
    replication_families,
)
from headrace.replication.delayed import Delayed
from headrace.runtime.exposition import gauge
from headrace.runtime.observability import Health
from headrace.runtime.process import process_families
from headrace.security.authorizer import StandardAuthorizer

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.server import Server
    from headrace.broker.usage import Usage
    from headrace.metadata.image import Endpoint
    from headrace.quotas.usage_windows import NodeUsage
    from headrace.runtime.exposition import Family

_BROKER_STARTING = 1


class Node(Protocol):
    """The parts of a node that do not belong to its broker."""

    broker: "Broker"
    server: "Server"
    endpoints: "list[Endpoint]"
    is_ready: bool
    usage: "Usage"

    def roll_usage(self) -> None: ...


class NodeStatus:
    """The metrics, health and readiness of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def _broker(self) -> "Broker":
        return self._node.broker

    def families(self) -> "Iterator[Family]":
        broker = self._broker
        yield from exported_families(
            broker.metrics, self.node, self.partitions, broker.clock.now_ms()
        )
        if broker.metrics.logins:
            from headrace.broker.metrics.login_metrics import login_families

            yield from login_families(broker.metrics.logins)
        if broker.metrics.audit is not None:
            from headrace.broker.metrics.audit_metrics import audit_families

            yield from audit_families(broker.metrics.audit)
        if isinstance(broker.authorizer, StandardAuthorizer):
            yield gauge(
                "kafka_server_authorizer_metrics_acls_total_count",
                "Access control rules in force.",
                broker.authorizer.rule_count,
            )
        yield from quorum_families(broker.controller.figures(), broker.image)
        yield from coordinator_families(broker.metrics.coordinators, self.coordinators())
        yield from telemetry_families(broker.telemetry, broker.clock.now_ms())
        self._node.roll_usage()
        yield from self._node.usage.families()
        monotonic_ms = broker.clock.monotonic_ms()
        yield from client_quota_families(broker.client_quotas, monotonic_ms)
        yield from replication_families(broker.replication_throttles)
        loop_ms = int(broker.loop.time() * 1000)
        yield from connection_rate_families(self._node.server.rates, loop_ms)
        yield from process_families()

    def usage(self) -> "NodeUsage":
        """Return the windows of usage by client."""
        self._node.roll_usage()
        return self._node.usage.page(self._broker.clock.now_ms())

    def health(self) -> Health:
        """Healthy while the metadata log and at least one log directory work."""
        directories = self._broker.directories.directories
        checks = {one.path: "ok" if one.failure is None else one.failure for one in directories}
        failure = self._broker.controller.failure
        if failure is not None:
            checks["metadata"] = str(failure)
        is_ok = failure is None and any(one.failure is None for one in directories)
        return Health(is_ok, checks)

    def readiness(self) -> Health:
        """Ready once the node is registered and accepts clients."""
        return Health(self._node.is_ready, {"serving": str(self._node.is_ready).lower()})

    def node(self) -> NodeFigures:
        broker = self._broker
        node_id = broker.node_id
        hosted = list(broker.partitions)
        led = [one for one in hosted if one.image.leader == node_id]
        waiters = {waiter for one in hosted for waiter in one.waiters}
        fetches = sum(isinstance(waiter, Delayed) for waiter in waiters)
        image = broker.image
        return NodeFigures(
            broker_state=BROKER_RUNNING if self._node.is_ready else _BROKER_STARTING,
            topic_count=len(image.topics),
            partition_count=len(hosted),
            global_partition_count=sum(len(one.partitions) for one in image.topics.values()),
            leader_count=len(led),
            under_replicated_count=sum(one.is_under_replicated for one in led),
            under_min_isr_count=sum(not one.has_min_isr for one in led),
            at_min_isr_count=sum(one.is_at_min_isr for one in led),
            isr_expansions=broker.metrics.isr.expansions,
            isr_shrinks=broker.metrics.isr.shrinks,
            isr_failures=broker.metrics.isr.failures,
            offline_partition_count=sum(p.leader < 0 for _, _, p in image.partitions()),
            offline_directory_count=sum(
                one.failure is not None for one in broker.directories.directories
            ),
            connections=self._connections(),
            connections_accepted=self._node.server.accepted,
            tls_handshakes_failed=self._node.server.handshakes.failed,
            certificates_rejected=0 if broker.tls is None else broker.tls.reload_failures,
            connections_refused=self._node.server.refused,
            delayed={
                "Fetch": fetches + broker.fetch_sessions.waiting_replicas,
                "DeleteRecords": len(waiters) - fetches,
                "Produce": sum(len(one.uncommitted) for one in led if one.uncommitted),
            },
            fetch_session_count=len(broker.fetch_sessions),
        )

    def coordinators(self) -> CoordinatorFigures:
        broker = self._broker
        shards = [shard.state for shard in broker.groups.shards.values()]
        logs = [one.log for one in broker.partitions if one.log is not None]
        return CoordinatorFigures(
            groups=count_groups(one for shard in shards for one in shard.groups.values()),
            offset_count=sum(len(shard.offsets) for shard in shards),
            group_partitions=broker.groups.partition_states(),
            transactions=count_transactions(broker.transactions),
            transaction_partitions=broker.transactions.coordinator.partition_states(),
            producer_id_count=sum(log.producer_count for log in logs),
            share_partition_count=sum(
                len(shard.state.held)
                for shard in broker.share_coordinator.coordinator.shards.values()
            ),
            share_state_partitions=broker.share_coordinator.coordinator.partition_states(),
        )

    def _connections(self) -> dict[str, int]:
        """The connections of each listener, including listeners without any."""
        counted = Counter(one.listener for one in self._node.server.connections)
        return {endpoint.name: counted[endpoint.name] for endpoint in self._node.endpoints}

    def partitions(self) -> Iterator[PartitionFigures]:
        for partition in self._broker.partitions:
            log = partition.log
            if log is not None:
                yield PartitionFigures(
                    partition.topic.name,
                    partition.index,
                    log.size_bytes,
                    log.log_start_offset,
                    log.log_end_offset,
                    len(log.segments),
                )
