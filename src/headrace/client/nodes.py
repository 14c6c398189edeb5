"""What nodes tell about themselves: brokers, the metadata quorum, features, log directories."""

from collections.abc import Sequence

from headrace.client.cluster import Cluster, error_name
from headrace.client.descriptions import (
    BrokerDescription,
    ClusterDescription,
    FeatureDescription,
    LogDirectory,
    Outcome,
    QuorumDescription,
    QuorumReplica,
    ReplicaSize,
)
from headrace.errors import KafkaError, error_for
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from headrace.protocol.schemas.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from headrace.protocol.schemas.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    ReplicaState,
)
from headrace.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


class Nodes:
    """The nodes of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def describe(self) -> ClusterDescription:
        """Brokers, quorum and features; what an older broker cannot tell is left out."""
        cluster_id, brokers = self._brokers()
        return ClusterDescription(
            cluster_id=cluster_id,
            brokers=brokers,
            quorum=self._quorum(),
            features=self._features(),
        )

    def log_directories(
        self, brokers: Sequence[int] | None = None, topics: Sequence[str] | None = None
    ) -> list[LogDirectory]:
        """The log directories of all or some brokers, with the sizes of what they hold."""
        wanted = self._cluster.node_ids() if brokers is None else brokers
        asked = None if topics is None else [self._partitions(topic) for topic in topics]
        return [
            directory
            for broker in wanted
            for directory in self._directories(broker, DescribeLogDirsRequest(topics=asked))
        ]

    def unregister(self, broker: int) -> Outcome:
        """Forget a broker that is gone for good."""
        request = UnregisterBrokerRequest(broker_id=broker)
        answer = self._cluster.ask_controller(request, UnregisterBrokerResponse)
        return Outcome(
            name=f"broker {broker}",
            error=error_name(answer.error_code) if answer.error_code else None,
            message=answer.error_message,
        )

    def _directories(self, broker: int, request: DescribeLogDirsRequest) -> list[LogDirectory]:
        answer = self._cluster.ask(request, DescribeLogDirsResponse, broker)
        if answer.error_code:
            raise error_for(answer.error_code, f"broker {broker}: {error_name(answer.error_code)}")
        return [_directory(broker, result) for result in answer.results]

    def _partitions(self, topic: str) -> DescribableLogDirTopic:
        found = self._cluster.topic(topic).partitions
        return DescribableLogDirTopic(
            topic=topic, partitions=[part.partition_index for part in found]
        )

    def _brokers(self) -> tuple[str | None, list[BrokerDescription]]:
        if self._cluster.connection().understands(DescribeClusterRequest):
            return self._brokers_described()
        answer = self._cluster.metadata([])
        brokers = [
            BrokerDescription(
                id=broker.node_id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
                is_controller=broker.node_id == answer.controller_id,
                is_fenced=False,
            )
            for broker in answer.brokers
        ]
        return answer.cluster_id, sorted(brokers, key=lambda broker: broker.id)

    def _brokers_described(self) -> tuple[str | None, list[BrokerDescription]]:
        request = DescribeClusterRequest()
        if self._cluster.connection().version_of(request) >= 2:
            request.include_fenced_brokers = True
        answer = self._cluster.ask(request, DescribeClusterResponse)
        if answer.error_code:
            raise error_for(answer.error_code, answer.error_message or "")
        brokers = [
            BrokerDescription(
                id=broker.broker_id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
                is_controller=broker.broker_id == answer.controller_id,
                is_fenced=broker.is_fenced,
            )
            for broker in answer.brokers
        ]
        return answer.cluster_id, sorted(brokers, key=lambda broker: broker.id)

    def _quorum(self) -> QuorumDescription | None:
        """The quorum, or nothing where there is none or we may not ask."""
        if not self._cluster.connection().understands(DescribeQuorumRequest):
            return None
        partition = DescribeQuorumRequestPartitionData(partition_index=0)
        topic = DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        request = DescribeQuorumRequest(topics=[topic])
        try:
            answer = self._cluster.retry(lambda: self._cluster.ask(request, DescribeQuorumResponse))
        except KafkaError:
            return None
        if answer.error_code or not answer.topics:
            return None
        return _quorum_description(answer.topics[0].partitions[0])

    def _features(self) -> list[FeatureDescription]:
        connection = self._cluster.connection()
        finalized = {one.name: one.max_version_level for one in connection.finalized_features}
        return [
            FeatureDescription(
                name=one.name,
                min_version=one.min_version,
                max_version=one.max_version,
                finalized=finalized.get(one.name),
            )
            for one in sorted(connection.supported_features, key=lambda one: one.name)
        ]


def _quorum_description(part: DescribeQuorumResponsePartitionData) -> QuorumDescription:
    end = max((voter.log_end_offset for voter in part.current_voters), default=0)
    replicas = [_replica(state, "voter", end) for state in part.current_voters]
    replicas += [_replica(state, "observer", end) for state in part.observers]
    return QuorumDescription(
        leader=part.leader_id,
        leader_epoch=part.leader_epoch,
        high_watermark=part.high_watermark,
        replicas=replicas,
    )


def _replica(state: ReplicaState, role: str, end: int) -> QuorumReplica:
    return QuorumReplica(
        id=state.replica_id,
        role=role,
        log_end_offset=state.log_end_offset,
        lag=max(0, end - state.log_end_offset),
    )


def _directory(broker: int, result: DescribeLogDirsResult) -> LogDirectory:
    replicas = [
        ReplicaSize(
            topic=topic.name,
            partition=part.partition_index,
            size_bytes=part.partition_size,
            offset_lag=part.offset_lag,
            is_future=part.is_future_key,
        )
        for topic in result.topics
        for part in topic.partitions
    ]
    return LogDirectory(
        broker=broker,
        path=result.log_dir,
        error=error_name(result.error_code) if result.error_code else None,
        total_bytes=result.total_bytes if result.total_bytes >= 0 else None,
        usable_bytes=result.usable_bytes if result.usable_bytes >= 0 else None,
        replicas=sorted(replicas, key=lambda one: (one.topic, one.partition)),
    )
