"""The small Produce requests of one round of ready sockets: one write for each partition.

Many producers with one record each are the dearest load there is: a request is a few microseconds
of work, most of it in system calls. So requests of a known shape (`produce_shapes.py`) with a plain
batch (`storage/usual_append.py`) are not served where they are read. They are gathered until every
ready socket has been read; then each partition gets its batches by one write and moves its
high watermark once, and the answers leave.

Nothing changes for a client: its answer leaves after the write, its answers leave in order, and
nobody sees a record before it is written, for a gathered batch has no offset yet. Before one of
these connections is served in any other way the round is settled (`Dispatcher`). What is gathered
is bounded by the scratch buffer that the frames lie in.
"""

import logging
from struct import Struct
from time import perf_counter_ns
from typing import TYPE_CHECKING

import msgspec

from headrace.broker.produce_answers import refusal_of
from headrace.broker.produce_shapes import PREFIX_START
from headrace.errors import KafkaError, UnknownServerError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.batches import PRODUCER_ID_POSITION
from headrace.storage.usual_append import Run, append_run, read_usual

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.delayed import WakeUps
    from headrace.broker.frame_buffers import FrameBuffers, Frames
    from headrace.broker.partitions import Partition
    from headrace.broker.produce_shapes import ProduceShape, ProduceShapes
    from headrace.runtime.clock import Clock
    from headrace.runtime.metrics import Metrics

_log = logging.getLogger(__name__)

_PRODUCE = int(ApiKey.PRODUCE)
_RECORDS_BYTES_MAX = 8 * 1024  # Copying more into one write costs as much as a write of its own.
_GATHERED_MAX = 1024
_NEGATIVE = 0x80  # The first byte of a negative number is not below this.
_ROOM_END = 192 * 1024  # Beyond it the next connection finds too little of the scratch buffer.
_PREFIX_START = 4 + PREFIX_START

_unpack_opening = Struct(">iii").unpack_from  # Size, API key and version in one, correlation id.


class Gathered(msgspec.Struct, gc=False):
    """A request that waits for the end of the round, and what became of it."""

    connection: "Connection"
    shape: "ProduceShape"
    correlation_id: int
    records: memoryview
    count: int
    max_timestamp: int
    base_offset: int = -1
    answer: bytes | None = None
    """None until it is appended; then no bytes if the client wants no answer."""
    failure: KafkaError | None = None


class ProduceRound:
    """Gathers while sockets are read, and settles when they all have been."""

    def __init__(
        self,
        buffers: "FrameBuffers",
        shapes: "ProduceShapes",
        wake_ups: "WakeUps",
        metrics: "Metrics",
        clock: "Clock",
    ) -> None:
        self._buffers = buffers
        self._scratch = buffers.scratch
        self._view = buffers.view
        self._shapes = shapes
        self._wake_ups = wake_ups
        self._metrics = metrics
        self._clock = clock
        self._is_open = False
        self._now_ms = 0
        self._began_ns = 0
        self._gathered: list[Gathered] = []
        self._runs: dict[Partition, Run[Gathered]] = {}

    def begin(self) -> None:
        self._now_ms = self._clock.now_ms()
        self._began_ns = perf_counter_ns()
        self._is_open = True

    def end(self) -> None:
        self._is_open = False
        if self._gathered:
            self.settle()

    def take(
        self, connection: "Connection", shape: "ProduceShape", data: "Frames", start: int, end: int
    ) -> bool:
        """Gather a request if it is of a known shape and plain; false with nothing done if not.

        The frame comes with its size in front; what follows may be more, or less, than one frame.
        All in one piece, for a call costs as much here as the step that it would name.
        """
        if (
            not self._is_open
            or not isinstance(data, bytearray)
            or end - start < shape.frame_size_min
        ):
            return False
        size, opening, correlation_id = _unpack_opening(data, start)
        if size + 4 != end - start or opening != shape.opening:
            return False
        is_scratch = data is self._scratch
        view = self._view if is_scratch else memoryview(data)
        if not data.startswith(shape.prefix, start + _PREFIX_START):
            other = self._shapes.find(shape.version, view[start + 4 : end], shape.prefix_size)
            if other is None:
                return False
            connection.produce_shape = shape = other
        first = shape.find_records(data, start + 4 + shape.prefix_size, end)
        partition = shape.partition
        if not first or partition is None or (log := partition.log) is None:
            return False
        records = view[first : end - shape.tail_size]
        if (
            len(records) > _RECORDS_BYTES_MAX
            # Of an idempotent producer, so not plain; seen before all is unpacked.
            or data[first + PRODUCER_ID_POSITION] < _NEGATIVE
            or (found := read_usual(records, log.usual_limits, self._now_ms)) is None
        ):
            return False
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

    def forget(self) -> None:
        """Before partitions or configs change: what was gathered belongs to how things were."""
        self.settle()
        self._shapes.forget()

    def settle(self) -> None:
        """Append what was gathered, partition by partition, then answer in the order it came."""
        gathered, runs = self._gathered, self._runs
        self._gathered, self._runs = [], {}
        self._buffers.vacate()
        for partition, run in runs.items():
            try:
                self._append(partition, run)
            except Exception:
                _blame_ourselves(partition, run.batches)
        for request in gathered:
            try:
                if request.failure is not None:
                    self._metrics.requests.failed(_PRODUCE, request.failure.code)
                    _refuse(request)
                request.connection.deliver(request.answer)
            except Exception:
                request.connection.fail()
        self._count(gathered)

    def _append(self, partition: "Partition", run: "Run[Gathered]") -> None:
        log = partition.log
        if log is None or not append_run(log, run, partition.leader_epoch):
            self._append_each(partition, run.batches)
            return
        log_start_offset = log.log_start_offset
        for request in run.batches:
            shape = request.shape
            request.answer = (
                shape.answer(request.correlation_id, request.base_offset, -1, log_start_offset)
                if shape.acks
                else b""
            )
        log.advance_high_watermark(log.log_end_offset)
        if partition.waiters:
            self._wake_ups.changed(partition)
        metrics = partition.topic.metrics
        metrics.produce_requests += len(run.batches)
        metrics.bytes_in += run.size_bytes
        metrics.messages_in += run.count

    def _append_each(self, partition: "Partition", run: list[Gathered]) -> None:
        """The long way, for a new segment, a new epoch, or a disk that refused them together."""
        metrics = partition.topic.metrics
        for request in run:
            try:
                info = partition.append(request.records, self._now_ms)
            except KafkaError as error:
                request.failure = error
                metrics.count_failed_produce(len(request.records))
                continue
            except Exception:
                _blame_ourselves(partition, [request])
                continue
            request.answer = (
                request.shape.answer(
                    request.correlation_id,
                    info.base_offset,
                    info.log_append_time,
                    info.log_start_offset,
                )
                if request.shape.acks
                else b""
            )
            metrics.produce_requests += 1
            metrics.bytes_in += len(request.records)
            metrics.messages_in += request.count
        if partition.waiters:
            self._wake_ups.changed(partition)

    def _count(self, gathered: list[Gathered]) -> None:
        """All have taken as long as the round: their bytes were there when it began."""
        duration_ns = perf_counter_ns() - self._began_ns
        versions: dict[int, int] = {}
        for request in gathered:
            version = request.shape.version
            versions[version] = versions.get(version, 0) + 1
        for version, count in versions.items():
            self._metrics.requests.served(_PRODUCE, version, duration_ns, count)


def _blame_ourselves(partition: "Partition", requests: list[Gathered]) -> None:
    """Refuse those whose batch was not appended; the others keep the answer that says so."""
    _log.exception("an append to %s-%d failed", partition.topic.name, partition.index)
    for request in requests:
        if request.answer is None and request.failure is None:
            request.failure = UnknownServerError("the broker failed; its log has the details")


def _refuse(request: Gathered) -> None:
    """acks=0 gets no answer; a closed connection is the only way to say that it went wrong."""
    assert request.failure is not None
    if request.shape.acks:
        request.answer = refusal_of(request.shape, request.correlation_id, request.failure)
    else:
        request.connection.close()
