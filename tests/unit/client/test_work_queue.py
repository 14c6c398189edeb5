"""A worker of a share group: what it asks of each leader as its share changes; holding tasks."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import pytest

from headrace.client.work_queue import Task, Worker
from headrace.errors import InvalidRecordState, KafkaError
from headrace.protocol.acknowledge_types import AcknowledgeType
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.message import Message
from headrace.protocol.schemas import share_acknowledge, share_group_heartbeat
from headrace.protocol.schemas.metadata import MetadataResponsePartition, MetadataResponseTopic
from headrace.protocol.schemas.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from headrace.protocol.schemas.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from headrace.protocol.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

T = TypeVar("T")
TOPIC_ID = bytes(range(16))
LEADERS = {0: 1, 1: 2, 2: 1}  # The broker that leads each partition.


class ScriptedCluster:
    """A cluster of two brokers that assigns as a test configures, and records all requests."""

    def __init__(self) -> None:
        self.assigned: list[int] | None = [0]
        self.fetched: list[tuple[int, ShareFetchRequest]] = []
        self.acknowledged: list[ShareAcknowledgeRequest] = []
        self.heartbeats = 0
        self.newest_acknowledge = 2
        self.partition_error = 0

    @property
    def cluster(self) -> "ScriptedCluster":
        return self

    @property
    def groups(self) -> "ScriptedCluster":
        return self

    def coordinator_of(self, group: str) -> int:
        return 1

    def connection(self, node_id: int) -> "ScriptedCluster":
        return self

    def version_of(self, request: Message) -> int:
        return self.newest_acknowledge

    def retry(self, attempt: Callable[[], T]) -> T:
        return attempt()

    def topic(self, name: str) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            topic_id=TOPIC_ID,
            partitions=[
                MetadataResponsePartition(partition_index=index, leader_id=leader)
                for index, leader in LEADERS.items()
            ],
        )

    def ask(self, request: Message, response: type[Message], node_id: int) -> Message:
        match request:
            case ShareGroupHeartbeatRequest():
                return self._beaten()
            case ShareFetchRequest():
                self.fetched.append((node_id, request))
                return self._records()
            case ShareAcknowledgeRequest():
                self.acknowledged.append(request)
                return self._settled()
        raise AssertionError(request)

    def _beaten(self) -> ShareGroupHeartbeatResponse:
        self.heartbeats += 1
        answer = ShareGroupHeartbeatResponse(member_epoch=1, heartbeat_interval_ms=0)
        if self.assigned is not None:
            places = share_group_heartbeat.TopicPartitions(TOPIC_ID, self.assigned)
            answer.assignment = share_group_heartbeat.Assignment([places])
        return answer

    def _records(self) -> ShareFetchResponse:
        reported = PartitionData(
            partition_index=0,
            records=memoryview(build_batch([Record(0, 0, None, b"task")])),
            acquired_records=[AcquiredRecords(0, 0, 1)],
        )
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=30_000,
            responses=[ShareFetchableTopicResponse(TOPIC_ID, [reported])],
        )

    def _settled(self) -> ShareAcknowledgeResponse:
        row = share_acknowledge.PartitionData(partition_index=0, error_code=self.partition_error)
        topic = share_acknowledge.ShareAcknowledgeTopicResponse(TOPIC_ID, [row])
        return ShareAcknowledgeResponse(responses=[topic])


@pytest.fixture
def cluster() -> ScriptedCluster:
    return ScriptedCluster()


def worker_of(cluster: ScriptedCluster) -> Worker:
    return Worker(cast(Any, cluster), "group", "orders")


def take(worker: Worker) -> Task:
    (task,) = worker.take(1, 0)
    return task


def named(cluster: ScriptedCluster) -> list[tuple[int, list[int], list[int]]]:
    """Return the session epoch of each fetch, with its added and its forgotten partitions."""
    return [
        (
            request.share_session_epoch,
            [one.partition_index for topic in request.topics for one in topic.partitions],
            [one for topic in request.forgotten_topics_data for one in topic.partitions],
        )
        for _, request in cluster.fetched
    ]


def test_partitions_that_come_later_join_the_session(cluster: ScriptedCluster) -> None:
    """RMQ-1: a worker that began alone with one partition is given another."""
    worker = worker_of(cluster)
    take(worker)
    cluster.assigned = [0, 2]
    take(worker)
    cluster.assigned = None
    take(worker)
    assert named(cluster) == [(0, [0], []), (1, [2], []), (2, [], [])]


def test_partitions_that_are_lost_leave_the_session(cluster: ScriptedCluster) -> None:
    cluster.assigned = [0, 2]
    worker = worker_of(cluster)
    take(worker)
    cluster.assigned = [2]
    take(worker)
    assert named(cluster) == [(0, [0, 2], []), (1, [], [0])]


def test_each_leader_gets_requests_for_its_own_partitions(cluster: ScriptedCluster) -> None:
    cluster.assigned = [1]
    take(worker_of(cluster))
    assert [leader for leader, _ in cluster.fetched] == [2]


def test_a_task_is_held_by_renewals_and_heartbeats(cluster: ScriptedCluster) -> None:
    worker = worker_of(cluster)
    task = take(worker)
    before = cluster.heartbeats
    worker.hold(task)
    worker.settle(task, AcknowledgeType.ACCEPT)
    assert cluster.heartbeats == before + 1
    said = [
        (
            request.share_session_epoch,
            request.is_renew_ack,
            request.topics[0].partitions[0].acknowledgement_batches[0].acknowledge_types,
        )
        for request in cluster.acknowledged
    ]
    assert said == [(1, True, [AcknowledgeType.RENEW]), (2, False, [AcknowledgeType.ACCEPT])]


def test_a_task_is_looked_after_several_times_per_lock(cluster: ScriptedCluster) -> None:
    worker = worker_of(cluster)
    take(worker)
    worker._interval_s = 60.0
    assert worker.hold_interval_s == 10.0
    worker._interval_s = 5.0
    assert worker.hold_interval_s == 5.0


def test_an_older_broker_gets_no_renewals(cluster: ScriptedCluster) -> None:
    cluster.newest_acknowledge = 1
    worker = worker_of(cluster)
    task = take(worker)
    worker.hold(task)
    assert cluster.acknowledged == []


def test_a_lost_task_is_reported(cluster: ScriptedCluster) -> None:
    worker = worker_of(cluster)
    task = take(worker)
    cluster.partition_error = InvalidRecordState.code
    with pytest.raises(KafkaError, match="another worker may have the record"):
        worker.hold(task)
