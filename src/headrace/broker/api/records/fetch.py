"""Fetch v4-18: records from the logs to consumers and followers, straight from the page cache.

A request that finds fewer bytes than its minimum waits on its partitions (`delayed.py`) and is
tried again when one of them grows. v7 adds sessions (KIP-227), v12 the last epoch that the reader
has read, so that the answer reports where its log and ours diverge (KIP-595), v13 topic ids, v15
the epoch of a follower's broker (KIP-903), v18 its high watermark (KIP-1166). The fetches of
followers are served by `replica_fetch.py`. A debugger (replica id -2) may read followers, too:
kafka-replica-verification compares all replicas.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.broker.api.registry import api
from headrace.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchContext, FetchTarget
from headrace.broker.replica_fetch import INLINE_BYTES_MAX, ReplicaFetch, divergence, unknown
from headrace.broker.replica_sessions import CONSUMER, replica_of
from headrace.broker.topics.topology import leader_nodes
from headrace.errors import FetchSessionIdNotFound, KafkaError, TopicAuthorizationFailed
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.hot_fetch import TOPIC_IDS_FROM, FetchedPartition, write_fetch
from headrace.protocol.schemas.fetch import FetchRequest
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Lacking, Right, for_each

if TYPE_CHECKING:
    from headrace.broker.direct_call import DirectCall
    from headrace.broker.fetch_sessions import FetchSessions
    from headrace.replication.partition import HostedTopic, Partition
    from headrace.security.access import Access
    from headrace.storage.log import Log
    from headrace.storage.reading import LogSlice

_RIGHTS = (
    for_each(Operation.READ, ResourceType.TOPIC, "consumers"),
    Right(
        Operation.CLUSTER_ACTION,
        ResourceType.CLUSTER,
        Lacking.REFUSES_REQUEST,
        "followers",
        answer="`TOPIC_AUTHORIZATION_FAILED` for each topic",
    ),
)
_READ_COMMITTED = 1


@api(ApiKey.FETCH, versions=range(4, 19), rights=_RIGHTS)
def fetch(request: FetchRequest, call: "DirectCall") -> None:
    sessions, now = call.broker.fetch_sessions, call.broker.loop.time()
    served: _Fetch | ReplicaFetch
    try:
        replica_id = replica_of(request)[0]
        if replica_id > CONSUMER:
            if not call.access.allows_on_cluster(Operation.CLUSTER_ACTION):
                _refuse_follower(request, call)
                return
            served = _by_replica(request, call, sessions, now)
        else:
            context = sessions.context(request, call.version, now)
            served = _Fetch(call, request, context, reads_any_replica=replica_id < CONSUMER)
    except KafkaError as error:
        call.count_error(error.code)
        throttle_ms = call.charge_request()
        call.answer(
            *write_fetch(
                call.version,
                call.correlation_id,
                0,
                (),
                error_code=error.code,
                throttle_ms=throttle_ms,
            )
        )
        return
    served.serve()


def _by_replica(
    request: FetchRequest, call: "DirectCall", sessions: "FetchSessions", now: float
) -> ReplicaFetch:
    wake = call.broker.partitions.changed
    session, is_incremental = sessions.replica_session(request, call.version, now, wake)
    return ReplicaFetch(call, request, session, is_incremental=is_incremental)


def _refuse_follower(request: FetchRequest, call: "DirectCall") -> None:
    """Refuse every partition; a follower without the right gets no session and changes none."""
    if request.session_epoch not in (FINAL_EPOCH, INITIAL_EPOCH):
        raise FetchSessionIdNotFound("a follower without the right has no session")
    code = TopicAuthorizationFailed.code
    by_id = call.version >= TOPIC_IDS_FROM
    topics: list[tuple[bytes, list[FetchedPartition[LogSlice]]]] = [
        (
            topic.topic_id if by_id else topic.topic.encode(),
            [FetchedPartition(one.partition, code, -1, -1, -1, None) for one in topic.partitions],
        )
        for topic in request.topics
    ]
    for _, partitions in topics:
        for _ in partitions:
            call.count_error(code)
    call.answer(*write_fetch(call.version, call.correlation_id, 0, topics))


class _Fetch:
    """One request: read, and if there are too few records, read again later."""

    __slots__ = (
        "_broker",
        "_call",
        "_context",
        "_elsewhere",
        "_forbidden",
        "_has_diverged",
        "_hosted",
        "_reads_any_replica",
        "_request",
    )

    def __init__(
        self,
        call: "DirectCall",
        request: FetchRequest,
        context: FetchContext,
        *,
        reads_any_replica: bool,
    ) -> None:
        self._call = call
        self._reads_any_replica = reads_any_replica
        self._broker = call.broker
        self._request = request
        self._context = context
        self._has_diverged = False
        self._elsewhere: list[KafkaError] = []  # Errors of partitions that another node leads.
        partitions = call.broker.partitions
        by_id = call.version >= TOPIC_IDS_FROM
        self._hosted = partitions.by_id if by_id else partitions.by_wire_name
        self._forbidden: frozenset[bytes] = frozenset()
        if call.broker.authorizer is not None:
            self._forbidden = self._forbidden_topics()

    def _forbidden_topics(self) -> frozenset[bytes]:
        """Return the topics that the client may not read.

        A session remembers that it has none, until the rules or its partitions change.
        """
        access, session = self._call.access, self._context.session
        permission = access, access.version
        if session is not None and session.permitted == permission:
            return frozenset()
        keys = {target.topic_key for target in self._context}
        forbidden = frozenset(key for key in keys if not self._may_read(key, access))
        if session is not None and not forbidden and keys <= self._hosted.keys():
            session.permitted = permission
        return forbidden

    def _may_read(self, key: bytes, access: "Access") -> bool:
        topic = self._hosted.get(key)
        if topic is None and self._call.version >= TOPIC_IDS_FROM:
            return True  # It is unknown, and has no name to have rights on.
        name = key.decode(errors="replace") if topic is None else topic.name
        return access.allows(Operation.READ, ResourceType.TOPIC, name)

    def serve(self) -> None:
        wait_ms = self._request.max_wait_ms
        if not self._attempt(is_last=wait_ms <= 0 or not self._context.targets):
            self._call.park_until(self._attempt, self._watched(), wait_ms)

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
        if not (is_last or failed or size >= self._bytes_min()):
            return False
        if self._call.meter is None or self._call.charge_fetch(size):
            self._answer(reads)
        else:
            self._answer_throttled()
        return True

    def _bytes_min(self) -> int:
        meter = self._call.meter
        if meter is None:
            return self._request.min_bytes
        return min(self._request.min_bytes, meter.fetch_bytes_max)

    def _bytes_max(self) -> int:
        """Return the maximum of an answer: at most what the client's quota can ever allow."""
        bytes_max = min(self._request.max_bytes, self._broker.settings.fetch_max_bytes)
        meter = self._call.meter
        return bytes_max if meter is None else min(bytes_max, meter.fetch_bytes_max)

    def _answer_throttled(self) -> None:
        """Answer without records; a new session ends, because its client got no partition."""
        call, context = self._call, self._context
        if context.is_incremental:
            session_id = context.session_id
        else:
            session_id = 0
            self._broker.fetch_sessions.close(context.session_id)
        call.answer(
            *write_fetch(
                call.version, call.correlation_id, session_id, (), throttle_ms=call.throttle_ms
            )
        )

    def _read(self) -> "tuple[list[tuple[FetchTarget, FetchedPartition[LogSlice]]], int, bool]":
        reads = []
        self._elsewhere = []
        total = 0
        failed = False
        left = self._bytes_max()
        for target in self._context:
            try:
                result, size = self._read_partition(target, left, is_first=not total)
            except KafkaError as error:
                leader = error.current_leader
                size = 0
                result = FetchedPartition(
                    target.index, error.code, -1, -1, -1, None, current_leader=leader
                )
                # As in Kafka a forbidden topic does not end the wait for the others.
                failed = failed or target.topic_key not in self._forbidden
                if leader is not None:
                    self._elsewhere.append(error)
                self._count_failure(target, error)
            total += size
            left -= size
            reads.append((target, result))
        has_nothing_to_read = bool(self._forbidden) and all(
            target.topic_key in self._forbidden for target, _ in reads
        )
        return reads, total, failed or self._has_diverged or has_nothing_to_read

    def _read_partition(
        self, target: FetchTarget, left: int, *, is_first: bool
    ) -> "tuple[FetchedPartition[LogSlice], int]":
        if self._forbidden and target.topic_key in self._forbidden:
            raise TopicAuthorizationFailed("the client may not read the topic")
        topic = self._hosted.get(target.topic_key)
        if topic is None:
            raise unknown(target.topic_key, self._call.version)
        is_any = self._reads_any_replica
        partition = topic.hosted(target.index) if is_any else topic.led(target.index)
        if target.leader_epoch >= 0:
            partition.check_leader_epoch(target.leader_epoch)
        log = partition.online_log()
        is_committed = self._request.isolation_level == _READ_COMMITTED
        high_watermark = log.high_watermark
        stable = log.last_stable_offset
        bound = stable if is_committed else high_watermark
        if target.last_fetched_epoch >= 0 and (
            diverging := divergence(partition, log, target.last_fetched_epoch, target.offset)
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
        """Return the aborted transactions among the records of the answer."""
        found = log.aborted_transactions(offset, stable) if slice_.size else ()
        if not found:
            return ()
        end_offset = log.end_of(slice_, offset)
        return [
            (aborted.producer_id, aborted.first_offset)
            for aborted in found
            if aborted.first_offset < end_offset
        ]

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
                if size <= INLINE_BYTES_MAX:
                    result = result._replace(records=records.read())
            if context.session is not None:
                must_be_sent = target.must_be_sent(
                    result.error_code, result.high_watermark, result.log_start_offset, size
                )
                if context.is_incremental and not must_be_sent and result.diverging is None:
                    continue
                if size:
                    context.session.serve_last(target)
            if target.topic_key != last_key:
                last_key = target.topic_key
                topics.append((last_key, []))
            topics[-1][1].append(result)
        call, elsewhere = self._call, self._elsewhere
        nodes = (
            leader_nodes(self._broker.image, call.connection.listener, elsewhere)
            if elsewhere
            else ()
        )
        call.answer(
            *write_fetch(
                call.version,
                call.correlation_id,
                context.session_id,
                topics,
                nodes=nodes,
                throttle_ms=call.throttle_ms,
            )
        )

    def _count(self, target: FetchTarget, size: int) -> None:
        topic: HostedTopic | None = self._hosted.get(target.topic_key)
        if topic is not None:
            topic.metrics.fetch_requests += 1
            topic.metrics.bytes_out += size

    def _count_failure(self, target: FetchTarget, error: KafkaError) -> None:
        self._call.count_error(error.code)
        topic: HostedTopic | None = self._hosted.get(target.topic_key)
        if topic is None:
            self._broker.metrics.failed_fetch_requests += 1
        else:
            topic.metrics.failed_fetch_requests += 1
