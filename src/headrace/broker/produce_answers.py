"""Produce answers in which something went wrong: rare, so written by the compiled codec."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.hot_produce import TOPIC_IDS_FROM, Appended, PartitionRecords, TopicKey

if TYPE_CHECKING:
    from headrace.broker.produce_shapes import ProduceShape
    from headrace.errors import KafkaError
    from headrace.protocol.schemas.produce import PartitionProduceResponse

Topics = Iterable[tuple[TopicKey, list[PartitionRecords]]]
Done = list[tuple[TopicKey, list[Appended]]]
Failures = dict[tuple[TopicKey, int], "KafkaError"]


def write_with_failures(
    version: int, correlation_id: int, topics: Topics, done: Done, failures: Failures
) -> bytes:
    """The framed answer, in the order in which the request named its partitions."""
    from headrace.protocol.framing import encode_response
    from headrace.protocol.schemas.produce import ProduceResponse, TopicProduceResponse

    responses = []
    for (key, record_sets), (_, appended) in zip(topics, done, strict=True):
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


def refusal_of(shape: "ProduceShape", correlation_id: int, error: "KafkaError") -> bytes:
    """The answer to a request of a known shape that failed."""
    key, index = shape.key, shape.index
    return write_with_failures(
        shape.version, correlation_id, [(key, [(index, None)])], [(key, [])], {(key, index): error}
    )


def _succeeded(appended: Appended) -> "PartitionProduceResponse":
    from headrace.protocol.schemas.produce import PartitionProduceResponse

    return PartitionProduceResponse(
        index=appended.partition,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )


def _failed(index: int, error: "KafkaError") -> "PartitionProduceResponse":
    from headrace.protocol.schemas.produce import (
        BatchIndexAndErrorMessage,
        PartitionProduceResponse,
    )

    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=error.log_start_offset,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=message)
            for place, message in getattr(error, "record_errors", ())
        ],
        error_message=str(error) or None,
    )
