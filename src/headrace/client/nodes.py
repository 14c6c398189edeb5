"""Brokers, the metadata quorum, features and log directories of a cluster."""

from collections.abc import Sequence

from headrace.client.cluster import Cluster, check_code, error_or_none, outcome_of
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
from headrace.errors import KafkaError
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)
from headrace.protocol.schemas.describe_cluster import (
    DescribeClusterBroker,
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
from headrace.protocol.schemas.metadata import MetadataResponseBroker
from headrace.protocol.schemas.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from headrace.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from headrace.protocol.uuids import ZERO, from_text, to_text


class Nodes:
    """The nodes of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def describe(self) -> ClusterDescription:
        """Describe brokers, quorum and features; parts unknown to older brokers are left out."""
        cluster_id, brokers = self._brokers()
        return ClusterDescription(
            cluster_id=cluster_id, brokers=brokers, quorum=self._quorum(), features=self._features()
        )

    def brokers(self) -> list[BrokerDescription]:
        """Describe the brokers only: one request."""
        return self._brokers()[1]

    def log_directories(
        self, brokers: Sequence[int] | None = None, topics: Sequence[str] | None = None
    ) -> list[LogDirectory]:
        """List log directories of all or some brokers, with the sizes of their replicas."""
        wanted = self._cluster.node_ids() if brokers is None else brokers
        asked = None if topics is None else [self._partitions(topic) for topic in topics]
        return [
            directory
            for broker in wanted
            for directory in self._directories(broker, DescribeLogDirsRequest(topics=asked))
        ]

    def unregister(self, broker: int) -> Outcome:
        """Unregister a broker that is gone for good."""
        request = UnregisterBrokerRequest(broker_id=broker)
        answer = self._cluster.ask_controller(request, UnregisterBrokerResponse)
        return outcome_of(f"broker {broker}", answer.error_code, answer.error_message)

    def add_controller(
        self, node_id: int, directory_id: str, endpoints: Sequence[tuple[str, str, int]]
    ) -> Outcome:
        """Add a running controller to the voters; endpoints are listener name, host and port."""
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=self._cluster.timeout_ms,
            voter_id=node_id,
            voter_directory_id=from_text(directory_id),
            listeners=[Listener(*endpoint) for endpoint in endpoints],
        )
        answer = self._cluster.ask(request, AddRaftVoterResponse)
        return outcome_of(f"controller {node_id}", answer.error_code, answer.error_message)

    def remove_controller(self, node_id: int, directory_id: str) -> Outcome:
        """Remove a controller from the voters."""
        request = RemoveRaftVoterRequest(
            cluster_id=None, voter_id=node_id, voter_directory_id=from_text(directory_id)
        )
        answer = self._cluster.ask(request, RemoveRaftVoterResponse)
        return outcome_of(f"controller {node_id}", answer.error_code, answer.error_message)

    def _directories(self, broker: int, request: DescribeLogDirsRequest) -> list[LogDirectory]:
        answer = self._cluster.ask(request, DescribeLogDirsResponse, broker)
        check_code(answer.error_code, subject=f"broker {broker}")
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
            _broker(one, one.node_id, answer.controller_id, is_fenced=False)
            for one in answer.brokers
        ]
        return answer.cluster_id, sorted(brokers, key=lambda broker: broker.id)

    def _brokers_described(self) -> tuple[str | None, list[BrokerDescription]]:
        request = DescribeClusterRequest()
        if self._cluster.connection().version_of(request) >= 2:
            request.include_fenced_brokers = True
        answer = self._cluster.query(request, DescribeClusterResponse)
        brokers = [
            _broker(one, one.broker_id, answer.controller_id, is_fenced=one.is_fenced)
            for one in answer.brokers
        ]
        return answer.cluster_id, sorted(brokers, key=lambda broker: broker.id)

    def _quorum(self) -> QuorumDescription | None:
        """Describe the quorum; None without a quorum or without permission."""
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


def _broker(
    one: MetadataResponseBroker | DescribeClusterBroker,
    id: int,
    controller: int,
    *,
    is_fenced: bool,
) -> BrokerDescription:
    return BrokerDescription(
        id=id,
        host=one.host,
        port=one.port,
        rack=one.rack,
        is_controller=id == controller,
        is_fenced=is_fenced,
    )


def _quorum_description(part: DescribeQuorumResponsePartitionData) -> QuorumDescription:
    end = max((voter.log_end_offset for voter in part.current_voters), default=0)
    now_ms = max((one.last_caught_up_timestamp for one in part.current_voters), default=-1)
    replicas = [_replica(state, "voter", end, now_ms) for state in part.current_voters]
    replicas += [_replica(state, "observer", end, now_ms) for state in part.observers]
    return QuorumDescription(
        leader=part.leader_id,
        leader_epoch=part.leader_epoch,
        high_watermark=part.high_watermark,
        replicas=replicas,
    )


def _replica(state: ReplicaState, role: str, end: int, now_ms: int) -> QuorumReplica:
    """`now_ms` is the time of the answer: the leader is always caught up with itself."""
    caught_up_ms = state.last_caught_up_timestamp
    directory_id = state.replica_directory_id
    return QuorumReplica(
        id=state.replica_id,
        role=role,
        log_end_offset=state.log_end_offset,
        lag=max(0, end - state.log_end_offset),
        directory_id=None if directory_id == ZERO else to_text(directory_id),
        behind_ms=max(0, now_ms - caught_up_ms) if caught_up_ms >= 0 else None,
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
        error=error_or_none(result.error_code),
        total_bytes=result.total_bytes if result.total_bytes >= 0 else None,
        usable_bytes=result.usable_bytes if result.usable_bytes >= 0 else None,
        replicas=sorted(replicas, key=lambda one: (one.topic, one.partition)),
    )
