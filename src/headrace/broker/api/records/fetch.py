"""Fetch v4-18: records from the logs to a consumer, straight from the page cache.

A request that finds too little waits on its partitions (`delayed.py`) and is tried again when
one of them grows. v7 has sessions (KIP-227), v12 lets a reader say which epoch it read last, so
that it hears when its log and ours have parted (KIP-595), v13 names topics by id.
"""

from collections.abc import Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING

from headrace.broker.api.registry import api
from headrace.broker.delayed import Delayed
from headrace.broker.fetch_sessions import FetchContext, FetchTarget
from headrace.errors import (
    KafkaError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.hot_fetch import TOPIC_IDS_FROM, FetchedPartition, write_fetch
from headrace.protocol.schemas.fetch import FetchRequest

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.node import Broker
    from headrace.broker.partitions import HostedTopic, Partition
    from headrace.storage.log import Log
    from headrace.storage.reading import LogSlice

_READ_COMMITTED = 1
_INLINE_BYTES_MAX = 8 * 1024  # Up to here a read and one send are cheaper than a sendfile.


@api(ApiKey.FETCH, versions=range(4, 19))
def fetch(
    broker: "Broker",
    connection: "Connection",
    request: FetchRequest,
    version: int,
    correlation_id: int,
) -> None:
    try:
        context = broker.fetch_sessions.context(request, version, broker.loop.time())
    except KafkaError as error:
        broker.metrics.requests.failed(ApiKey.FETCH, error.code)
        parts = write_fetch(version, correlation_id, 0, (), error_code=error.code)
        connection.answer_parts(list(parts))
        return
    waiting = _Fetch(broker, connection, request, context, version, correlation_id)
    waiting.serve()


class _Fetch:
    """One request on its way: read, and if there is too little, read again later."""

    __slots__ = (
        "_broker",
        "_connection",
        "_context",
        "_correlation_id",
        "_has_diverged",
        "_hosted",
        "_parked_at",
        "_request",
        "_version",
    )

    def __init__(
        self,
        broker: "Broker",
        connection: "Connection",
        request: FetchRequest,
        context: FetchContext,
        version: int,
        correlation_id: int,
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._request = request
        self._context = context
        self._version = version
        self._correlation_id = correlation_id
        self._parked_at = 0
        self._has_diverged = False
        partitions = broker.partitions
        self._hosted = partitions.by_id if version >= TOPIC_IDS_FROM else partitions.by_wire_name

    def serve(self) -> None:
        is_last = self._request.max_wait_ms <= 0 or not self._context.targets
        if self._attempt(is_last=is_last):
            return
        self._parked_at = perf_counter_ns()
        delayed = Delayed(self._attempt, self._connection.close)
        delayed.park(self._broker.loop, self._watched(), self._request.max_wait_ms / 1000)
        self._connection.wait(delayed.abandon)

    def _watched(self) -> "list[Partition]":
        found = []
        for target in self._context:
            topic = self._hosted.get(target.topic_key)
            if topic is not None and 0 <= target.index < len(topic.partitions):
                partition = topic.partitions[target.index]
                if partition is not None:
                    found.append(partition)
        return found

    def _attempt(self, *, is_last: bool) -> bool:
        reads, size, failed = self._read()
        if not (is_last or failed or size >= self._request.min_bytes):
            return False
        self._answer(reads)
        return True

    def _read(self) -> "tuple[list[tuple[FetchTarget, FetchedPartition[LogSlice]]], int, bool]":
        reads = []
        total = 0
        failed = False
        left = min(self._request.max_bytes, self._broker.settings.fetch_max_bytes)
        for target in self._context:
            try:
                result, size = self._read_partition(target, left, is_first=not total)
            except KafkaError as error:
                result, size = FetchedPartition(target.index, error.code, -1, -1, -1, None), 0
                failed = True
                self._count_failure(target, error)
            total += size
            left -= size
            reads.append((target, result))
        return reads, total, failed or self._has_diverged

    def _read_partition(
        self, target: FetchTarget, left: int, *, is_first: bool
    ) -> "tuple[FetchedPartition[LogSlice], int]":
        topic = self._hosted.get(target.topic_key)
        if topic is None:
            raise self._unknown(target)
        partition = topic.find(target.index)
        if target.leader_epoch >= 0:
            partition.check_leader_epoch(target.leader_epoch)
        log = partition.online_log()
        if self._request.replica_id >= 0 or self._request.replica_state.replica_id >= 0:
            raise NotLeaderOrFollower("this node has no followers")
        is_committed = self._request.isolation_level == _READ_COMMITTED
        high_watermark = log.high_watermark
        stable = log.last_stable_offset
        bound = stable if is_committed else high_watermark
        if target.last_fetched_epoch >= 0 and (
            diverging := self._divergence(partition, log, target.last_fetched_epoch, target.offset)
        ):
            self._has_diverged = True
            start = log.log_start_offset
            return FetchedPartition(
                target.index, 0, high_watermark, stable, start, None, None, diverging
            ), 0
        slice_ = None
        size = 0
        if target.offset != bound:
            # Only the first may exceed its limit, so that there is progress and a bound.
            size_max = max(0, min(target.size_max, left))
            slice_ = log.read(target.offset, size_max, bound, at_least_one=is_first)
            size = slice_.size
        aborted = None
        if is_committed:
            aborted = self._aborted(log, target.offset, stable, slice_) if slice_ else ()
        result = FetchedPartition(
            target.index,
            0,
            high_watermark,
            stable,
            log.log_start_offset,
            slice_ if size else None,
            aborted,
        )
        return result, size

    @staticmethod
    def _aborted(
        log: "Log", offset: int, stable: int, slice_: "LogSlice"
    ) -> Sequence[tuple[int, int]]:
        """What the consumer must skip among the records that it is sent, and no more."""
        found = log.aborted_transactions(offset, stable) if slice_.size else ()
        if not found:
            return ()
        end_offset = log.end_of(slice_, offset)
        return [
            (aborted.producer_id, aborted.first_offset)
            for aborted in found
            if aborted.first_offset < end_offset
        ]

    def _unknown(self, target: FetchTarget) -> KafkaError:
        if self._version >= TOPIC_IDS_FROM:
            return UnknownTopicId("no topic has this id")
        return UnknownTopicOrPartition(f"there is no topic {target.topic_key.decode()}")

    def _answer(self, reads: "list[tuple[FetchTarget, FetchedPartition[LogSlice]]]") -> None:
        context = self._context
        topics: list[tuple[bytes, list[FetchedPartition[LogSlice]]]] = []
        last_key = None
        for target, result in reads:
            records = result.records
            size = 0
            if records is not None:
                assert not isinstance(records, bytes)
                size = records.size
                self._count(target, size)
                if size <= _INLINE_BYTES_MAX:
                    result = result._replace(records=records.read())
            if context.session is not None:
                is_news = target.is_news(
                    result.error_code, result.high_watermark, result.log_start_offset, size
                )
                if context.is_incremental and not is_news and result.diverging is None:
                    continue
                if size:
                    context.session.serve_last(target)
            if target.topic_key != last_key:
                last_key = target.topic_key
                topics.append((last_key, []))
            topics[-1][1].append(result)
        parts = write_fetch(self._version, self._correlation_id, context.session_id, topics)
        if self._parked_at:
            self._connection.finish(list(parts))
            waited_ns = perf_counter_ns() - self._parked_at
            self._broker.metrics.requests.served_late(
                ApiKey.FETCH, self._version, waited_ns, waited_ns=waited_ns
            )
        else:
            self._connection.answer_parts(list(parts))

    @staticmethod
    def _divergence(
        partition: "Partition", log: "Log", last_epoch: int, offset: int
    ) -> tuple[int, int] | None:
        """Where the reader's log and ours part, if what it read last is not what we have."""
        epoch, end_offset = partition.end_of_epoch(log, last_epoch)
        if epoch < 0 or end_offset < 0 or offset < log.log_start_offset:
            raise OffsetOutOfRange(
                f"{log.topic_partition} does not know where its leader epoch {last_epoch} ended"
            )
        return (epoch, end_offset) if epoch < last_epoch or end_offset < offset else None

    def _count(self, target: FetchTarget, size: int) -> None:
        topic: HostedTopic | None = self._hosted.get(target.topic_key)
        if topic is not None:
            topic.metrics.fetch_requests += 1
            topic.metrics.bytes_out += size

    def _count_failure(self, target: FetchTarget, error: KafkaError) -> None:
        self._broker.metrics.requests.failed(ApiKey.FETCH, error.code)
        topic: HostedTopic | None = self._hosted.get(target.topic_key)
        if topic is None:
            self._broker.metrics.failed_fetch_requests += 1
        else:
            topic.metrics.failed_fetch_requests += 1
