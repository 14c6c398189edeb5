"""Produce v3-13: append record sets to the logs that this node leads.

The hottest request of all, so it is served from the frame as it lies (`protocol/hot_produce.py`):
a record set goes from the request's buffer to its log in one write. v13 names topics by id. What
belongs to a transaction goes through `produce_admission.py` first.
"""

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.broker.api.registry import api
from headrace.broker.produce_admission import (
    Admission,
    admit,
    begins_transaction,
    is_transactional,
)
from headrace.broker.produce_shapes import ProduceShape
from headrace.errors import (
    InvalidRecord,
    InvalidRequiredAcks,
    KafkaError,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedCompressionType,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.batches import ATTRIBUTES_POSITION, CODEC_MASK, HEADER_SIZE
from headrace.protocol.compression import Codec
from headrace.protocol.hot_produce import (
    TOPIC_IDS_FROM,
    ZSTD_FROM,
    Appended,
    ProduceView,
    TopicKey,
    read_produce,
    write_success,
)
from headrace.runtime.eager import finish_now
from headrace.storage.producer_state import NOT_VERIFIED
from headrace.storage.usual_append import NOT_USUAL, append_usual
from headrace.storage.validation import CheckedBatch, is_heavy

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.flushing import Lost
    from headrace.broker.node import Broker
    from headrace.broker.partitions import HostedTopic
    from headrace.protocol.schemas.produce import PartitionProduceResponse
    from headrace.runtime.metrics import TopicMetrics
    from headrace.storage.log import Log

_CODEC_POSITION = ATTRIBUTES_POSITION + 1

Done = list[tuple[TopicKey, list[Appended]]]
Failures = dict[tuple[TopicKey, int], KafkaError]

_NO_TRANSACTION = Admission({}, NOT_VERIFIED)


@api(ApiKey.PRODUCE, versions=range(3, 14))
def produce(
    broker: "Broker",
    connection: "Connection",
    frame: memoryview,
    position: int,
    version: int,
    correlation_id: int,
) -> None:
    request = read_produce(frame, position, version)
    refusal = _refusal(request)
    admission: Admission | Coroutine[Any, Any, Admission] = _NO_TRANSACTION
    if request.transactional_id is not None and refusal is None:
        try:
            admission = finish_now(admit(broker, request, version))
        except KafkaError as error:
            refusal = error
    if isinstance(admission, Admission):
        _produce(broker, connection, frame, version, correlation_id, request, refusal, admission)
    else:
        copy = memoryview(bytearray(frame))  # The frame itself lives until this returns.
        connection.wait()
        work = _produce_later(
            broker, connection, copy, position, version, correlation_id, admission
        )
        broker.tasks.start(work, "produce in a transaction")


async def _produce_later(
    broker: "Broker",
    connection: "Connection",
    frame: memoryview,
    position: int,
    version: int,
    correlation_id: int,
    admission: Coroutine[Any, Any, Admission],
) -> None:
    """The coordinator's word takes time: its record has to be committed first."""
    refusal = None
    verdict = _NO_TRANSACTION
    try:
        try:
            verdict = await admission
        except KafkaError as error:
            refusal = error
        request = read_produce(frame, position, version)
        _produce(broker, connection, frame, version, correlation_id, request, refusal, verdict)
    except Exception:
        connection.fail()


def _produce(
    broker: "Broker",
    connection: "Connection",
    frame: memoryview,
    version: int,
    correlation_id: int,
    request: ProduceView,
    refusal: KafkaError | None,
    admission: Admission,
) -> None:
    done: Done = []
    failures: Failures = {}
    unflushed: list[Log] = []
    heavy: list[_Heavy] = []
    now_ms = broker.clock.now_ms()
    hosted = _hosted(broker, version)
    for key, record_sets in request.topics:
        topic = hosted.get(key)
        appended: list[Appended] = []
        for index, records in record_sets:
            try:
                if refusal is not None:
                    raise refusal
                if topic is None:
                    raise _unknown(key, version)
                if admission.refused and (key, index) in admission.refused:
                    raise admission.refused[key, index]
                appended.append(
                    _append(
                        broker,
                        topic,
                        index,
                        records,
                        now_ms,
                        version,
                        admission.transaction_version,
                        unflushed,
                    )
                )
            except KafkaError as error:
                failures[key, index] = error
                _note_failure(broker, topic, records, error)
            except _TooHeavy:
                assert topic is not None, "it was found heavy by its topic's config"
                copy = memoryview(bytearray(records or b""))
                heavy.append(_Heavy(key, topic, index, copy, appended))
        done.append((key, appended))
    outcome = frame, version, correlation_id, request, done, failures, unflushed
    if not heavy:
        _answer(broker, connection, *outcome)
        return
    connection.wait()
    work = _append_heavy(
        broker, heavy, now_ms, version, admission.transaction_version, unflushed, failures
    )
    finish = partial(_answer, broker, connection, *outcome)
    broker.tasks.start(_then(connection, work, finish), "fitting of large batches")


async def _then(
    connection: "Connection", work: Coroutine[Any, Any, None], finish: Callable[[], None]
) -> None:
    """Answer when the work is done; a connection that cannot be answered must not wait on."""
    try:
        await work
        finish()
    except Exception:
        connection.fail()


class _TooHeavy(Exception):
    """A batch that its topic must look into, and that is too large to do so on the loop."""


class _Heavy(NamedTuple):
    """Such a batch, copied out of its frame, and the list that its outcome goes to."""

    key: TopicKey
    topic: "HostedTopic"
    partition: int
    records: memoryview
    appended: list[Appended]


async def _append_heavy(
    broker: "Broker",
    heavy: list[_Heavy],
    now_ms: int,
    version: int,
    transaction_version: int,
    unflushed: "list[Log]",
    failures: Failures,
) -> None:
    """Fit large batches to their topics in a thread, then append them as any other."""
    began_ns = perf_counter_ns()
    for key, topic, index, records, appended in heavy:
        try:
            config = topic.find(index).online_log().config
            checked = await broker.fitting.fit(records, config, now_ms)
            if isinstance(checked, KafkaError):
                raise checked
            appended.append(
                _append(
                    broker,
                    topic,
                    index,
                    records,
                    now_ms,
                    version,
                    transaction_version,
                    unflushed,
                    checked,
                )
            )
        except KafkaError as error:
            failures[key, index] = error
            _note_failure(broker, topic, records, error)
    if not unflushed:  # Otherwise it is counted when that is done.
        waited_ns = perf_counter_ns() - began_ns
        broker.metrics.requests.served_late(ApiKey.PRODUCE, version, waited_ns, waited_ns=waited_ns)


def _note_failure(
    broker: "Broker", topic: "HostedTopic | None", records: memoryview | None, error: KafkaError
) -> None:
    broker.metrics.requests.failed(ApiKey.PRODUCE, error.code)
    if topic is None:
        broker.metrics.failed_produce_requests += 1
    else:
        count_failure(topic.metrics, records)


def _answer(
    broker: "Broker",
    connection: "Connection",
    frame: memoryview,
    version: int,
    correlation_id: int,
    request: ProduceView,
    done: Done,
    failures: Failures,
    unflushed: "list[Log]",
) -> None:
    """Tell what became of each batch, after a sync of the logs that ask for one."""
    if request.acks == 0:
        _pass_silently(connection, failures)
        return
    answer: bytes | bytearray
    if failures:
        answer = _with_failures(request, version, correlation_id, done, failures)
    else:
        answer = write_success(version, correlation_id, done)
    if not unflushed:
        if connection.is_waiting:
            connection.finish([answer])
            return
        connection.answer(answer)
        if not failures:
            _learn(broker, connection, frame, version, request)
        return

    began = perf_counter_ns()

    def finish(lost: "Lost") -> None:
        if lost:
            unsafe = _places_of(lost, request, _hosted(broker, version))
            for error in unsafe.values():
                broker.metrics.requests.failed(ApiKey.PRODUCE, error.code)
            failures.update(unsafe)
            connection.finish([_with_failures(request, version, correlation_id, done, failures)])
        else:
            connection.finish([answer])
        waited_ns = perf_counter_ns() - began
        broker.metrics.requests.served_late(ApiKey.PRODUCE, version, waited_ns, waited_ns=waited_ns)

    connection.wait()
    broker.flusher.flush(unflushed, finish)


def _hosted(broker: "Broker", version: int) -> "Mapping[TopicKey, HostedTopic]":
    """The topics by what a request of a version names them."""
    partitions = broker.partitions
    return partitions.by_id if version >= TOPIC_IDS_FROM else partitions.by_wire_name


def _places_of(
    lost: "Lost", request: ProduceView, hosted: "Mapping[bytes, HostedTopic]"
) -> Failures:
    """Which partitions of a request lie in logs that could not be brought to the disk."""
    places: Failures = {}
    for key, record_sets in request.topics:
        topic = hosted.get(key)
        for index, _ in record_sets:
            if topic is None or not 0 <= index < len(topic.partitions):
                continue
            partition = topic.partitions[index]
            if partition is not None and partition.log is not None and partition.log in lost:
                places[key, index] = lost[partition.log]
    return places


def produce_again(
    broker: "Broker",
    connection: "Connection",
    frame: memoryview,
    version: int,
    correlation_id: int,
) -> bool:
    """Serve a request of a known shape; false, with nothing done, if it needs the long way."""
    last = connection.produce_shape
    if last is None:
        return False
    shape = broker.produce_shapes.find(version, frame, last.prefix_size)
    if shape is None:
        return False
    connection.produce_shape = shape
    first = shape.find_records(frame, shape.prefix_size, len(frame))
    if not first:
        return False
    records = frame[first : len(frame) - shape.tail_size]
    partition = shape.partition
    assert partition is not None, "a forgotten shape is not found"
    log = partition.log
    assert log is not None, "shapes are forgotten before a log goes"
    now_ms = broker.clock.now_ms()
    append_time_ms = -1
    try:
        base_offset = append_usual(log, records, partition.leader_epoch, now_ms)
        if base_offset == NOT_USUAL:
            if (
                is_transactional(records) != shape.is_transactional
                or (shape.is_transactional and begins_transaction(log, records))
                or (not log.usual_limits.size_bytes_max and is_heavy(records))
            ):
                return False
            info = partition.append(records, now_ms)
            base_offset, append_time_ms = info.base_offset, info.log_append_time
            count = info.last_offset - base_offset + 1
        else:
            end_offset = log.log_end_offset
            count = end_offset - base_offset
            log.advance_high_watermark(end_offset)
    except KafkaError as error:
        # The batch may bear our marks already, so it cannot go the long way as if it were new.
        broker.metrics.requests.failed(ApiKey.PRODUCE, error.code)
        count_failure(partition.topic.metrics, records)
        if shape.acks:
            connection.answer(refusal_of(shape, correlation_id, error))
        else:
            connection.close()
        return True
    if partition.waiters:
        broker.wake_ups.changed(partition)
    metrics = partition.topic.metrics
    metrics.produce_requests += 1
    metrics.bytes_in += len(records)
    metrics.messages_in += count
    if shape.acks:
        connection.answer(
            shape.answer(correlation_id, base_offset, append_time_ms, log.log_start_offset)
        )
    return True


def refusal_of(shape: ProduceShape, correlation_id: int, error: KafkaError) -> bytes:
    """The answer to a request of a known shape that failed."""
    request = ProduceView(None, shape.acks, 0, [(shape.key, [(shape.index, None)])])
    failures: Failures = {(shape.key, shape.index): error}
    return _with_failures(request, shape.version, correlation_id, [(shape.key, [])], failures)


def _learn(
    broker: "Broker",
    connection: "Connection",
    frame: memoryview,
    version: int,
    request: ProduceView,
) -> None:
    if len(request.topics) != 1 or len(request.topics[0][1]) != 1:
        return
    (key, ((index, _),)) = request.topics[0]
    hosted = _hosted(broker, version)
    connection.produce_shape = broker.produce_shapes.learn(
        frame, version, request, hosted[key].find(index)
    )


def _append(
    broker: "Broker",
    topic: "HostedTopic",
    index: int,
    records: memoryview | None,
    now_ms: int,
    version: int,
    transaction_version: int,
    unflushed: "list[Log]",
    checked: CheckedBatch | None = None,
) -> Appended:
    if records is None:
        raise InvalidRecord("a produced partition needs a record batch")
    if version < ZSTD_FROM and _is_zstd(records):
        raise UnsupportedCompressionType(f"zstd needs Produce v{ZSTD_FROM}; update the client")
    partition = topic.find(index)
    log = partition.log
    if log is not None and not log.usual_limits.size_bytes_max:
        if checked is None and is_heavy(records):
            raise _TooHeavy
        info = partition.append(records, now_ms, transaction_version, checked)
    else:
        info = partition.append(records, now_ms, transaction_version)
    if partition.waiters:
        broker.wake_ups.changed(partition)
    log = partition.log
    assert log is not None
    if log.unflushed_messages >= log.config.flush_messages:
        unflushed.append(log)
    metrics = topic.metrics
    metrics.produce_requests += 1
    metrics.bytes_in += len(records)
    metrics.messages_in += info.last_offset - info.base_offset + 1
    return Appended(index, info.base_offset, info.log_append_time, info.log_start_offset)


def count_failure(metrics: "TopicMetrics", records: memoryview | None) -> None:
    metrics.failed_produce_requests += 1
    metrics.bytes_rejected += len(records or b"")


def _is_zstd(records: memoryview) -> bool:
    return len(records) >= HEADER_SIZE and records[_CODEC_POSITION] & CODEC_MASK == Codec.ZSTD


def _refusal(request: ProduceView) -> KafkaError | None:
    if request.acks not in (1, -1, 0):
        return InvalidRequiredAcks(f"acks must be 0, 1 or -1 (all), not {request.acks}")
    if request.transactional_id is None and any(
        is_transactional(records) for _, record_sets in request.topics for _, records in record_sets
    ):
        return TransactionalIdAuthorizationFailed(
            "records of a transaction need a transactional id in the request"
        )
    return None


def _unknown(key: TopicKey, version: int) -> KafkaError:
    if version >= TOPIC_IDS_FROM:
        return UnknownTopicId("no topic has this id; refresh the client's metadata")
    name = key.decode(errors="replace")
    return UnknownTopicOrPartition(f"there is no topic {name}")


def _pass_silently(connection: "Connection", failures: Failures) -> None:
    """acks=0 gets no answer; a closed connection is the only way to say that it went wrong."""
    if failures:
        connection.close()
    elif connection.is_waiting:
        connection.finish([])


def _with_failures(
    request: ProduceView, version: int, correlation_id: int, done: Done, failures: Failures
) -> bytes:
    """The rare answer in which something went wrong, by the compiled codec."""
    from headrace.protocol.framing import encode_response
    from headrace.protocol.schemas.produce import ProduceResponse, TopicProduceResponse

    responses = []
    for (key, record_sets), (_, appended) in zip(request.topics, done, strict=True):
        went_well = {item.partition: item for item in appended}
        topic = TopicProduceResponse()
        if version >= TOPIC_IDS_FROM:
            topic.topic_id = key
        else:
            topic.name = key.decode(errors="replace")
        for index, _ in record_sets:
            error = failures.get((key, index))
            topic.partition_responses.append(
                _succeeded(went_well[index]) if error is None else _failed(index, error)
            )
        responses.append(topic)
    return encode_response(
        correlation_id, ApiKey.PRODUCE, version, ProduceResponse(responses=responses)
    )


def _succeeded(appended: Appended) -> "PartitionProduceResponse":
    from headrace.protocol.schemas.produce import PartitionProduceResponse

    return PartitionProduceResponse(
        index=appended.partition,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )


def _failed(index: int, error: KafkaError) -> "PartitionProduceResponse":
    from headrace.protocol.schemas.produce import (
        BatchIndexAndErrorMessage,
        PartitionProduceResponse,
    )

    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=message)
            for place, message in getattr(error, "record_errors", ())
        ],
        error_message=str(error) or None,
    )
