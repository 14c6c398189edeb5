"""Produce requests like the one before them: served by their shape, without being decoded.

See `produce_shapes.py`; `api/records/produce.py` is the long way, and learns the shapes here.
"""

from typing import TYPE_CHECKING

from headrace.broker.produce_admission import begins_transaction, is_transactional
from headrace.broker.produce_answers import refusal_of
from headrace.broker.produce_appends import topics_by_key
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.storage.usual_append import NOT_USUAL, append_usual
from headrace.storage.validation import is_heavy

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.node import Broker
    from headrace.broker.partitions import Partition
    from headrace.broker.produce_shapes import ProduceShape
    from headrace.protocol.hot_produce import ProduceView


def learn_shape(
    broker: "Broker",
    connection: "Connection",
    frame: memoryview,
    version: int,
    request: "ProduceView",
) -> None:
    """Remember a request that went well, if the next one may be like it."""
    if len(request.topics) != 1 or len(request.topics[0][1]) != 1:
        return
    (key, ((index, _),)) = request.topics[0]
    partition = topics_by_key(broker, version)[key].find(index)
    connection.produce_shape = broker.produce_shapes.learn(frame, version, request, partition)


def produce_again(
    broker: "Broker",
    connection: "Connection",
    frame: memoryview,
    version: int,
    correlation_id: int,
) -> bool:
    """Serve a request of a known shape; false, with nothing done, if it needs the long way.

    The usual way is in one piece, since each call would be a hundredth of the whole.
    """
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
    base_offset = append_usual(log, records, partition.leader_epoch, now_ms)
    if base_offset == NOT_USUAL:
        return _append_unusual(broker, connection, shape, records, now_ms, correlation_id)
    end_offset = log.log_end_offset
    log.advance_high_watermark(end_offset)
    if partition.waiters:
        broker.wake_ups.changed(partition)
    metrics = partition.topic.metrics
    metrics.produce_requests += 1
    metrics.bytes_in += len(records)
    metrics.messages_in += end_offset - base_offset
    if shape.acks:
        connection.answer(shape.answer(correlation_id, base_offset, -1, log.log_start_offset))
    return True


def _append_unusual(
    broker: "Broker",
    connection: "Connection",
    shape: "ProduceShape",
    records: memoryview,
    now_ms: int,
    correlation_id: int,
) -> bool:
    """Append what is not plain, such as batches of idempotent producers; false as above."""
    partition = shape.partition
    assert partition is not None
    if _needs_the_long_way(partition, shape, records):
        return False
    try:
        info = partition.append(records, now_ms)
    except KafkaError as error:
        # The batch may bear our marks already, so it cannot go the long way as if it were new.
        broker.metrics.requests.failed(ApiKey.PRODUCE, error.code)
        partition.topic.metrics.count_failed_produce(len(records))
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
    metrics.messages_in += info.last_offset - info.base_offset + 1
    if shape.acks:
        base_offset, append_time_ms = info.base_offset, info.log_append_time
        connection.answer(
            shape.answer(correlation_id, base_offset, append_time_ms, info.log_start_offset)
        )
    return True


def _needs_the_long_way(partition: "Partition", shape: "ProduceShape", records: memoryview) -> bool:
    """Whether a coordinator or a registry's topic is asked first, or a thread looks into it."""
    log = partition.log
    assert log is not None
    return (
        is_transactional(records) != shape.is_transactional
        or (shape.is_transactional and begins_transaction(log, records))
        or log.config.record_rules != ()
        or (not log.usual_limits.size_bytes_max and is_heavy(records))
    )
