"""What the metrics port shows of a node: gathered on a scrape, never on a request."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

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
from headrace.runtime.observability import Health
from headrace.runtime.process import process_families

if TYPE_CHECKING:
    from headrace.broker.node import Broker
    from headrace.runtime.exposition import Family

_BROKER_STARTING = 1


class VitalSigns:
    """The figures and verdicts about one node."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def families(self) -> "Iterator[Family]":
        broker = self._broker
        yield from exported_families(
            broker.metrics, self.node, self.partitions, broker.clock.now_ms()
        )
        yield from coordinator_families(broker.metrics.coordinators, self.coordinators())
        yield from telemetry_families(broker.telemetry, broker.clock.now_ms())
        yield from process_families()

    def health(self) -> Health:
        """Alive, and able to store something somewhere."""
        directories = self._broker.directories.directories
        checks = {one.path: "ok" if one.failure is None else one.failure for one in directories}
        failure = self._broker.failure
        if failure is not None:
            checks["metadata"] = str(failure)
        is_ok = failure is None and any(one.failure is None for one in directories)
        return Health(is_ok, checks)

    def readiness(self) -> Health:
        """Registered, and open to clients."""
        return Health(self._broker.is_ready, {"serving": str(self._broker.is_ready).lower()})

    def node(self) -> NodeFigures:
        broker = self._broker
        node_id = broker.node_id
        hosted = list(broker.partitions)
        led = [one for one in hosted if one.image.leader == node_id]
        waiters = {waiter for one in hosted for waiter in one.waiters}
        image = broker.image
        return NodeFigures(
            broker_state=BROKER_RUNNING if broker.is_ready else _BROKER_STARTING,
            topic_count=len(image.topics),
            partition_count=len(hosted),
            leader_count=len(led),
            under_replicated_count=sum(len(p.image.isr) < len(p.image.replicas) for p in led),
            offline_partition_count=sum(p.leader < 0 for _, _, p in image.partitions()),
            offline_directory_count=sum(
                one.failure is not None for one in broker.directories.directories
            ),
            connections=self._connections(),
            connections_accepted=broker.server.accepted,
            connections_refused=broker.server.refused,
            delayed={"Fetch": len(waiters)},
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
        """By listener; one that nobody uses at the moment has none, and says so."""
        counted = Counter(one.listener for one in self._broker.server.connections)
        return {endpoint.name: counted[endpoint.name] for endpoint in self._broker.endpoints}

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
