"""Produce requests of a known shape: gathered over a round of ready sockets, or served at once.

Many producers with one record each are the most expensive load: a request is a few microseconds of
work, most of it in system calls. So requests of a known shape (`shapes.py`) with a small plain
batch (`storage/usual_append.py`) are gathered until every ready socket has been read. Then each
partition gets its batches by one write and moves its high watermark once, and the answers leave.
Outside a round, and for all other batches, the request is appended where it is read.

Clients see no difference: an answer leaves after the write, answers leave in order, and a record
is invisible until it is written, because a gathered batch has no offset yet. Before a connection
with gathered requests is served in any other way the round is settled. The scratch buffer, which
contains the gathered frames, bounds their number.

With acks=all and followers the answer waits until the high watermark covers the records. All such
requests of a round and a partition wait for one offset. Their connections wait too, each with one
request, and are served in one round when they have been answered.
"""

import asyncio
import logging
from functools import partial
from struct import Struct
from time import perf_counter_ns
from typing import TYPE_CHECKING

import msgspec

from headrace.broker.produce.admission import begins_transaction, is_transactional
from headrace.broker.produce.answers import refusal_of
from headrace.broker.produce.shapes import PREFIX_START
from headrace.errors import KafkaError, UnknownServerError
from headrace.protocol.api_keys import ApiKey
from headrace.storage.usual_append import NOT_USUAL, Run
from headrace.storage.validation import is_heavy, read_usual

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from headrace.broker.connection import Connection
    from headrace.broker.frame_buffers import FrameBuffers, Frames
    from headrace.broker.metrics.counters import Metrics
    from headrace.broker.produce.shapes import ProduceShape, ProduceShapes
    from headrace.protocol.hot_fetch import NodeAddress
    from headrace.replication.partition import HostedTopic, Partition
    from headrace.runtime.clock import Clock

    LeaderNodes = Callable[[str, Iterable[KafkaError]], list[NodeAddress]]

_log = logging.getLogger(__name__)

_PRODUCE = int(ApiKey.PRODUCE)
_RECORDS_BYTES_MAX = 8 * 1024  # Copying more into one write costs as much as a write of its own.
_GATHERED_MAX = 1024
_ROOM_END = 192 * 1024  # Beyond it the next connection finds too little of the scratch buffer.
_PREFIX_START = 4 + PREFIX_START

_unpack_opening = Struct(">iii").unpack_from  # Size, API key and version in one, correlation id.


class Gathered(msgspec.Struct, gc=False):
    """A request that waits for the end of the round, and its outcome."""

    connection: "Connection"
    shape: "ProduceShape"
    correlation_id: int
    records: memoryview
    count: int
    max_timestamp: int
    base_offset: int = -1
    end_offset: int = 0
    """The offset that acks=all waits for; 0 means the end of the log after the append."""
    began_ns: int = 0
    """The time of arrival; only of requests that wait for followers."""
    answer: bytes | None = None
    """None until the batch is appended; then no bytes if the client wants no answer."""
    failure: KafkaError | None = None


class ProduceRound:
    """Gathers requests while sockets are read, and settles them when all have been read."""

    def __init__(
        self,
        buffers: "FrameBuffers",
        shapes: "ProduceShapes",
        metrics: "Metrics",
        clock: "Clock",
    ) -> None:
        self._buffers = buffers
        self._scratch = buffers.scratch
        self._view = buffers.view
        self._shapes = shapes
        self._metrics = metrics
        self._clock = clock
        self._is_open = False
        self._now_ms = 0
        self._began_ns = 0
        self._gathered: list[Gathered] = []
        self._runs: dict[Partition, Run[Gathered]] = {}
        self._late: list[tuple[list[Gathered], KafkaError | None]] = []
        self.leader_nodes: LeaderNodes = lambda listener, errors: []
        """Finds the addresses of the leaders that errors name, for the clients of a listener."""

    def begin(self) -> None:
        self._now_ms = self._clock.now_ms()
        self._began_ns = perf_counter_ns()
        self._is_open = True

    def end(self) -> None:
        self._is_open = False
        if self._runs:
            self.settle()

    def take(
        self, connection: "Connection", shape: "ProduceShape", data: "Frames", start: int, end: int
    ) -> bool:
        """Serve a request of a known shape; false with nothing done if it must be decoded.

        `data[start:end]` begins with the size of a frame, and may be more or less than one frame.
        This is one long function because each call costs as much as the step that it would name.
        """
        if end - start < shape.frame_size_min:
            return False
        size, opening, correlation_id = _unpack_opening(data, start)
        if size + 4 != end - start or opening != shape.opening:
            return False
        is_scratch = data is self._scratch
        is_stable = isinstance(data, bytearray)
        view = self._view if is_scratch else memoryview(data)
        if not (is_stable and data.startswith(shape.prefix, start + _PREFIX_START)):  # type: ignore[union-attr]
            rest = view[start + 4 : end]
            other = self._shapes.find(shape.version, rest, shape.prefix_size, shape.caller)
            if other is None:
                return False
            connection.produce_shape = shape = other
        first = shape.find_records(data, start + 4 + shape.prefix_size, end)
        partition = shape.partition
        if not first or partition is None or (log := partition.log) is None:
            return False
        records = view[first : end - shape.tail_size]
        if shape.waits:
            return self._take_waiting(
                connection, shape, partition, correlation_id, records, data, end
            )
        if (
            not self._is_open
            or not is_stable
            or len(records) > _RECORDS_BYTES_MAX
            or connection.stashed_ns  # Its time in the queue is counted.
            or (found := read_usual(records, log.usual_limits, self._now_ms)) is None
        ):
            return self._append_now(connection, shape, partition, correlation_id, records)
        request = Gathered(connection, shape, correlation_id, records, *found)
        connection.gathered += 1
        connection.is_active = True
        self._gathered.append(request)
        run = self._runs.get(partition)
        if run is None:
            self._runs[partition] = Run(request)
        else:
            run.add(request)
        if end > _ROOM_END or len(self._gathered) >= _GATHERED_MAX:
            self.settle()
        elif is_scratch:
            self._buffers.keep(end)
        return True

    # --- one request that waits for followers ---------------------------------------------------

    def _take_waiting(
        self,
        connection: "Connection",
        shape: "ProduceShape",
        partition: "Partition",
        correlation_id: int,
        records: memoryview,
        data: "Frames",
        end: int,
    ) -> bool:
        """Gather or append a batch whose answer waits; false if it must be decoded or refused."""
        log = partition.log
        if log is None or not partition.has_min_isr:
            return False
        if connection.gathered:
            self.settle()  # This request must not overtake them.
            if connection.closed:
                return True
        began_ns = connection.stashed_ns or perf_counter_ns()
        found = None
        if self._is_open and isinstance(data, bytearray) and len(records) <= _RECORDS_BYTES_MAX:
            found = read_usual(records, log.usual_limits, self._now_ms)
        count, max_timestamp = found or (0, 0)
        request = Gathered(
            connection,
            shape,
            correlation_id,
            records,
            count,
            max_timestamp,
            began_ns=began_ns,
        )
        if found is None:
            return self._append_waiting(partition, request)
        connection.wait()
        connection.is_active = True
        run = self._runs.get(partition)
        if run is None:
            run = self._runs[partition] = Run(request)
        else:
            run.add(request)
        if end > _ROOM_END or len(run.batches) >= _GATHERED_MAX:
            self.settle()
        elif data is self._scratch:
            self._buffers.keep(end)
        return True

    def _append_waiting(self, partition: "Partition", request: Gathered) -> bool:
        """Append one batch at once."""
        now_ms = self._clock.now_ms()
        base_offset = partition.append_usual(request.records, now_ms)
        connection = request.connection
        if base_offset != NOT_USUAL:
            log = partition.log
            assert log is not None, "shapes are forgotten before a log goes"
            request.end_offset = log.log_end_offset
            request.answer = request.shape.answer(
                request.correlation_id, base_offset, -1, log.log_start_offset
            )
            count = request.end_offset - base_offset
            partition.topic.metrics.count_produced(1, len(request.records), count)
        elif _must_be_decoded(partition, request.shape, request.records):
            return False
        else:
            self._append_each(partition, [request], now_ms)
        connection.wait()
        connection.is_active = True
        self._await_followers(partition, [request])
        return True

    def _await_followers(self, partition: "Partition", requests: list[Gathered]) -> None:
        """Answer requests with acks=all when the followers have their records."""
        log = partition.log
        assert log is not None, "it has just been appended to"
        groups: dict[tuple[int, int], list[Gathered]] = {}
        for request in requests:
            if not request.shape.waits:
                continue
            if request.failure is not None:
                self._answer_late([request], None)
                continue
            wait = request.end_offset or log.log_end_offset, request.shape.timeout_ms
            groups.setdefault(wait, []).append(request)
        for (end_offset, timeout_ms), group in groups.items():
            partition.when_committed(end_offset, timeout_ms, partial(self._answer_late, group))

    def _answer_late(self, requests: list[Gathered], error: KafkaError | None) -> None:
        """Answer requests together with all others that end in this turn of the loop."""
        if not self._late:
            asyncio.get_running_loop().call_soon(self._answer_all)
        self._late.append((requests, error))

    def _answer_all(self) -> None:
        """Answer requests, and serve the next ones of their connections in a round."""
        late, self._late = self._late, []
        self.begin()
        now_ns = perf_counter_ns()
        for requests, error in late:
            for request in requests:
                waited_ns = now_ns - request.began_ns
                self._metrics.requests.served_late(
                    _PRODUCE, request.shape.version, waited_ns, waited_ns=waited_ns
                )
                try:
                    failure = request.failure or error
                    if failure is not None:
                        self._refuse(request, failure)
                    request.connection.requests += 1
                    request.connection.finish((request.answer or b"",))
                except Exception:
                    request.connection.fail()
        self.end()

    # --- one request, at once -------------------------------------------------------------------

    def _append_now(
        self,
        connection: "Connection",
        shape: "ProduceShape",
        partition: "Partition",
        correlation_id: int,
        records: memoryview,
    ) -> bool:
        """Append one batch and answer; false with nothing appended if it must be decoded."""
        if connection.gathered:
            self.settle()  # This request must not overtake them.
            if connection.closed:
                return True
        began_ns = perf_counter_ns()
        now_ms = self._clock.now_ms()
        base_offset = partition.append_usual(records, now_ms)
        if base_offset != NOT_USUAL:
            log = partition.log
            assert log is not None, "shapes are forgotten before a log goes"
            metrics = partition.topic.metrics
            metrics.count_produced(1, len(records), log.log_end_offset - base_offset)
            if shape.acks:
                log_start_offset = log.log_start_offset
                connection.answer(shape.answer(correlation_id, base_offset, -1, log_start_offset))
        elif _must_be_decoded(partition, shape, records):
            return False
        else:
            # The append may patch the batch, so it cannot be decoded afterwards as if it were new.
            request = Gathered(connection, shape, correlation_id, records, 0, 0)
            self._append_each(partition, [request], now_ms)
            if request.failure is not None:
                self._refuse(request, request.failure)
            if request.answer:
                connection.answer(request.answer)
        connection.is_active = True
        connection.requests += 1
        connection.spent_ns += perf_counter_ns() - began_ns
        self._metrics.requests.served_since(
            began_ns, connection.stashed_ns, _PRODUCE, shape.version
        )
        return True

    # --- a round --------------------------------------------------------------------------------

    def forget(self, topics: "Collection[HostedTopic] | None" = None) -> None:
        """Settle and forget the shapes of some topics, or of all, before they change."""
        self.settle()
        self._shapes.forget(topics)

    def settle(self) -> None:
        """Append the gathered batches by partition, then answer in the order of the requests."""
        gathered, runs = self._gathered, self._runs
        self._gathered, self._runs = [], {}
        self._buffers.vacate()
        for partition, run in runs.items():
            try:
                self._append(partition, run)
            except Exception:
                _fail_unanswered(partition, run.batches)
            if partition.in_sync is not None:
                self._await_followers(partition, run.batches)
        for request in gathered:
            try:
                if request.failure is not None:
                    self._refuse(request, request.failure)
                request.connection.deliver(request.answer)
            except Exception:
                request.connection.fail()
        self._count(gathered)

    def _append(self, partition: "Partition", run: "Run[Gathered]") -> None:
        if not partition.append_run(run):
            self._append_each(partition, run.batches, self._now_ms)
            return
        log = partition.log
        assert log is not None
        log_start_offset = log.log_start_offset
        for request in run.batches:
            shape = request.shape
            request.answer = (
                shape.answer(request.correlation_id, request.base_offset, -1, log_start_offset)
                if shape.acks
                else b""
            )
        partition.topic.metrics.count_produced(len(run.batches), run.size_bytes, run.count)

    def _append_each(self, partition: "Partition", requests: list[Gathered], now_ms: int) -> None:
        """Append one by one: for a new segment, a new epoch, or a disk that refused the run."""
        metrics = partition.topic.metrics
        for request in requests:
            try:
                info = partition.append(request.records, now_ms)
            except KafkaError as error:
                request.failure = error
                metrics.count_failed_produce(len(request.records))
                continue
            except Exception:
                _fail_unanswered(partition, [request])
                continue
            base_offset, shape = info.base_offset, request.shape
            request.end_offset = info.last_offset + 1
            request.answer = (
                shape.answer(
                    request.correlation_id, base_offset, info.log_append_time, info.log_start_offset
                )
                if shape.acks
                else b""
            )
            metrics.count_produced(1, len(request.records), info.last_offset - base_offset + 1)

    def _refuse(self, request: Gathered, error: KafkaError) -> None:
        """Answer with the error; acks=0 gets no answer, so its connection is closed instead."""
        self._metrics.requests.failed(_PRODUCE, error.code)
        if request.shape.acks:
            has_leader = error.current_leader is not None
            nodes = self.leader_nodes(request.connection.listener, (error,)) if has_leader else ()
            request.answer = refusal_of(request.shape, request.correlation_id, error, nodes)
        else:
            request.connection.close()

    def _count(self, gathered: list[Gathered]) -> None:
        """Count each request with the duration of the round, which began after it arrived."""
        duration_ns = perf_counter_ns() - self._began_ns
        versions: dict[int, int] = {}
        share_ns = duration_ns // max(len(gathered), 1)
        for request in gathered:
            connection = request.connection
            connection.requests += 1
            connection.spent_ns += share_ns
            version = request.shape.version
            versions[version] = versions.get(version, 0) + 1
        for version, count in versions.items():
            self._metrics.requests.served(_PRODUCE, version, duration_ns, count)


def _must_be_decoded(partition: "Partition", shape: "ProduceShape", records: memoryview) -> bool:
    """Return whether a coordinator, a registry's topic or a thread has to look at a batch first."""
    log = partition.log
    assert log is not None
    return (
        is_transactional(records) != shape.is_transactional
        or (shape.is_transactional and begins_transaction(log, records))
        or log.config.record_rules != ()
        or (not log.usual_limits.size_bytes_max and is_heavy(records))
    )


def _fail_unanswered(partition: "Partition", requests: list[Gathered]) -> None:
    """Log our fault, and refuse the requests whose batch was not appended."""
    _log.exception(
        "append failed", extra={"topic": partition.topic.name, "partition": partition.index}
    )
    for request in requests:
        if request.answer is None and request.failure is None:
            request.failure = UnknownServerError("the broker failed; its log has the details")
