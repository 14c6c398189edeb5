"""A follower's Fetch: reads up to the end of the logs, and acknowledges what the follower has.

The offset of a valid fetch means that the follower has stored all records before it. That moves
the high watermark, and may let the follower into the in-sync replicas. The follower is answered
when there are records, a higher high watermark (from v18 on), a new start of a log, an error, or
an offset at which its log and ours diverge.

Only partitions that have changed are looked at (`replica_sessions.py`).
"""

from typing import TYPE_CHECKING

from headrace.broker.replica_sessions import ReplicaSession, ReplicaTarget, replica_of
from headrace.broker.topics.topology import leader_nodes
from headrace.errors import (
    KafkaError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.protocol.hot_fetch import TOPIC_IDS_FROM, FetchedPartition, write_fetch

if TYPE_CHECKING:
    from headrace.broker.direct_call import DirectCall
    from headrace.protocol.schemas.fetch import FetchRequest
    from headrace.replication.partition import Partition
    from headrace.storage.log import Log
    from headrace.storage.reading import LogSlice

INLINE_BYTES_MAX = 8 * 1024  # Up to here a read and one send are cheaper than a sendfile.


class ReplicaFetch:
    """One request of a follower; it waits on its session, not on the partitions."""

    __slots__ = (
        "_acknowledges",
        "_broker",
        "_call",
        "_elsewhere",
        "_hosted",
        "_is_incremental",
        "_request",
        "_session",
        "_throttle",
    )

    def __init__(
        self,
        call: "DirectCall",
        request: "FetchRequest",
        session: ReplicaSession,
        *,
        is_incremental: bool,
    ) -> None:
        self._call = call
        self._broker = call.broker
        self._request = request
        self._session = session
        self._throttle = call.broker.replication_throttles.leader
        self._is_incremental = is_incremental
        self._acknowledges = True  # Once, for the offsets are those of the time of arrival.
        self._elsewhere: list[KafkaError] = []  # Errors of partitions that another node leads.
        partitions = call.broker.partitions
        by_id = call.version >= TOPIC_IDS_FROM
        self._hosted = partitions.by_id if by_id else partitions.by_wire_name
        _, session.replica_epoch = replica_of(request)

    def serve(self) -> None:
        session = self._session
        session.fetched_ms = self._broker.clock.monotonic_ms()
        wait_ms = self._request.max_wait_ms
        if not self._attempt(is_last=wait_ms <= 0 or not session.targets):
            self._acknowledges = False
            self._call.park_until(self._attempt, (session,), wait_ms)

    def _attempt(self, *, is_last: bool) -> bool:
        self._elsewhere = []
        reads = []
        total = 0
        is_urgent = is_last
        left = min(self._request.max_bytes, self._broker.settings.fetch_max_bytes)
        for target in list(self._session.changed):
            try:
                result, is_news = self._read(target, left, is_first=not total)
            except KafkaError as error:
                result, is_news = self._failed(target, error), True
            if result.records is not None:
                assert not isinstance(result.records, bytes)
                total += result.records.size
                left -= result.records.size
            is_urgent = is_urgent or is_news
            reads.append((target, result))
        if not is_urgent and total < self._request.min_bytes:
            return False
        self._answer(reads)
        return True

    # --- one partition --------------------------------------------------------------------------

    def _read(
        self, target: ReplicaTarget, left: int, *, is_first: bool
    ) -> "tuple[FetchedPartition[LogSlice], bool]":
        """Return the answer for a partition, and whether it is worth an answer without records."""
        partition, log = self._check(target)
        if target.last_fetched_epoch >= 0:
            diverging = divergence(partition, log, target.last_fetched_epoch, target.offset)
            if diverging is not None:
                return _result(target, log, None, diverging), True
        end_offset = log.log_end_offset
        records: LogSlice | None = None
        if not (self._throttle.replicas and self._is_held_back(target, partition)):
            size_max = max(0, min(target.size_max, left))
            slice_ = log.read(target.offset, size_max, end_offset, at_least_one=is_first)
            records = slice_ if slice_.size else None
        if self._acknowledges:
            self._acknowledge(target, partition)
        return (
            _result(target, log, records),
            target.lacks(log.high_watermark, log.log_start_offset),
        )

    def _is_held_back(self, target: ReplicaTarget, partition: "Partition") -> bool:
        """Return whether a throttle leaves out a replica, which is then not in sync."""
        in_sync = partition.in_sync
        if in_sync is not None and self._session.replica_id in in_sync.committed:
            return False
        is_throttled = self._throttle.is_throttled(partition.topic.name, target.index)
        return is_throttled and self._throttle.is_exceeded()

    def _check(self, target: ReplicaTarget) -> "tuple[Partition, Log]":
        """Return the partition and its log; raise unless the follower may fetch it from here."""
        topic = self._hosted.get(target.topic_key)
        if topic is None:
            raise unknown(target.topic_key, self._call.version)
        partition = topic.led(target.index)
        if target.leader_epoch >= 0:
            partition.check_leader_epoch(target.leader_epoch)
        log = partition.online_log()
        session = self._session
        follower = None
        if partition.in_sync is not None:
            follower = partition.in_sync.followers.get(session.replica_id)
        if follower is None:
            # With the right leader epoch it may be a replica that our metadata lacks yet.
            kind = UnknownLeaderEpoch if target.leader_epoch >= 0 else NotLeaderOrFollower
            raise kind(f"broker {session.replica_id} has no replica of {log.topic_partition}")
        broker = self._broker.image.brokers.get(session.replica_id)
        if broker is not None and 0 <= session.replica_epoch < broker.epoch:
            raise NotLeaderOrFollower(
                f"broker {session.replica_id} is registered with epoch {broker.epoch} by now, "
                f"not {session.replica_epoch}"
            )
        target.bind(partition, follower)
        return partition, log

    def _acknowledge(self, target: ReplicaTarget, partition: "Partition") -> None:
        session = self._session
        partition.acknowledge(
            session.replica_id,
            target.offset,
            session.fetched_ms,
            start_offset=target.log_start_offset,
            broker_epoch=session.replica_epoch,
        )
        in_sync = partition.in_sync
        if in_sync is not None and session.replica_id not in in_sync.committed:
            self._broker.isr_changes.consider(partition, session.fetched_ms)

    def _failed(self, target: ReplicaTarget, error: KafkaError) -> "FetchedPartition[LogSlice]":
        self._call.count_error(error.code)
        topic = self._hosted.get(target.topic_key)
        if topic is None:
            self._broker.metrics.failed_fetch_requests += 1
        else:
            topic.metrics.failed_fetch_requests += 1
        leader = error.current_leader
        if leader is not None:
            self._elsewhere.append(error)
        return FetchedPartition(target.index, error.code, -1, -1, -1, None, current_leader=leader)

    # --- the answer -----------------------------------------------------------------------------

    def _answer(self, reads: "list[tuple[ReplicaTarget, FetchedPartition[LogSlice]]]") -> None:
        session = self._session
        topics: dict[bytes, list[FetchedPartition[LogSlice]]] = {}
        for target, result in reads:
            size = self._count(target, result)
            must_be_sent = target.must_be_sent(
                result.error_code, result.high_watermark, result.log_start_offset, size
            )
            self._note_sent(target, result, size)
            if self._is_incremental and not must_be_sent and result.diverging is None:
                continue
            if 0 < size <= INLINE_BYTES_MAX:
                assert result.records is not None
                assert not isinstance(result.records, bytes)
                result = result._replace(records=result.records.read())
            topics.setdefault(target.topic_key, []).append(result)
        call = self._call
        nodes = (
            leader_nodes(self._broker.image, call.connection.listener, self._elsewhere)
            if self._elsewhere
            else ()
        )
        session_id = session.id
        if not session_id:
            session.close()
        call.answer(
            *write_fetch(
                call.version, call.correlation_id, session_id, list(topics.items()), nodes=nodes
            )
        )

    def _count(self, target: ReplicaTarget, result: "FetchedPartition[LogSlice]") -> int:
        records = result.records
        size = 0
        if records is not None:
            assert not isinstance(records, bytes)
            size = records.size
        topic = self._hosted.get(target.topic_key)
        if topic is not None and not result.error_code:
            topic.metrics.fetch_requests += 1
            topic.metrics.replication_bytes_out += size
            if size and self._throttle.is_throttled(topic.name, target.index):
                self._throttle.record(size)
        return size

    def _note_sent(
        self, target: ReplicaTarget, result: "FetchedPartition[LogSlice]", size: int
    ) -> None:
        """Leave the partition alone from here on if the follower has everything.

        Otherwise it is looked at again with the next fetch, after those that got nothing now.
        """
        changed = self._session.changed
        if size:
            changed.pop(target, None)
            changed[target] = None
        elif not result.error_code and result.diverging is None:
            log = target.partition.log if target.partition is not None else None
            if log is not None and target.offset == log.log_end_offset:
                changed.pop(target, None)


def divergence(
    partition: "Partition", log: "Log", last_epoch: int, offset: int
) -> tuple[int, int] | None:
    """Return where the reader's log and ours diverge, if its last records are not ours."""
    epoch, end_offset = partition.end_of_epoch(log, last_epoch)
    if epoch < 0 or end_offset < 0 or offset < log.log_start_offset:
        raise OffsetOutOfRange(
            f"{log.topic_partition} has no end offset for leader epoch {last_epoch}"
        )
    return (epoch, end_offset) if epoch < last_epoch or end_offset < offset else None


def unknown(topic_key: bytes, version: int) -> KafkaError:
    """Return the error for a topic that is not here, by the key that the version uses."""
    if version >= TOPIC_IDS_FROM:
        return UnknownTopicId("no topic has this id")
    return UnknownTopicOrPartition(f"there is no topic {topic_key.decode()}")


def _result(
    target: ReplicaTarget,
    log: "Log",
    records: "LogSlice | None",
    diverging: tuple[int, int] | None = None,
) -> "FetchedPartition[LogSlice]":
    return FetchedPartition(
        target.index,
        0,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        records,
        None,
        diverging,
    )
