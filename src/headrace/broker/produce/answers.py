"""Produce answers that contain errors: rare, so encoded by the compiled codec."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.hot_produce import TOPIC_IDS_FROM, Appended, PartitionRecords, TopicKey

if TYPE_CHECKING:
    from headrace.broker.produce.shapes import ProduceShape
    from headrace.errors import KafkaError
    from headrace.protocol.hot_fetch import NodeAddress
    from headrace.protocol.schemas.produce import PartitionProduceResponse

_LEADERS_FROM = 10

Topics = Iterable[tuple[TopicKey, list[PartitionRecords]]]
Done = list[tuple[TopicKey, list[Appended]]]
Failures = dict[tuple[TopicKey, int], "KafkaError"]


def write_with_failures(
    version: int,
    correlation_id: int,
    topics: Topics,
    done: Done,
    failures: Failures,
    nodes: Sequence["NodeAddress"] = (),
    throttle_ms: int = 0,
) -> bytes:
    """Return the framed answer, in the order of the partitions in the request.

    From v10 on errors name the leader, and `nodes` are the addresses of these leaders (KIP-951).
    """
    from headrace.protocol.framing import encode_response
    from headrace.protocol.schemas.produce import (
        NodeEndpoint,
        ProduceResponse,
        TopicProduceResponse,
    )

    responses = []
    for (key, record_sets), (_, appended) in zip(topics, done, strict=True):
        succeeded = {item.partition: item for item in appended}
        topic = TopicProduceResponse()
        if version >= TOPIC_IDS_FROM:
            topic.topic_id = key
        else:
            topic.name = key.decode(errors="replace")
        for index, _ in record_sets:
            error = failures.get((key, index))
            topic.partition_responses.append(
                _succeeded(succeeded[index]) if error is None else _failed(index, error, version)
            )
        responses.append(topic)
    response = ProduceResponse(responses=responses, throttle_time_ms=throttle_ms)
    if version >= _LEADERS_FROM:
        response.node_endpoints = [NodeEndpoint(*node) for node in nodes]
    return encode_response(correlation_id, ApiKey.PRODUCE, version, response)


def refusal_of(
    shape: "ProduceShape",
    correlation_id: int,
    error: "KafkaError",
    nodes: Sequence["NodeAddress"] = (),
) -> bytes:
    """Return the answer to a failed request of a known shape."""
    key, index = shape.key, shape.index
    return write_with_failures(
        shape.version,
        correlation_id,
        [(key, [(index, None)])],
        [(key, [])],
        {(key, index): error},
        nodes,
    )


def _succeeded(appended: Appended) -> "PartitionProduceResponse":
    from headrace.protocol.schemas.produce import PartitionProduceResponse

    return PartitionProduceResponse(
        index=appended.partition,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )


def _failed(index: int, error: "KafkaError", version: int) -> "PartitionProduceResponse":
    from headrace.protocol.schemas.produce import (
        BatchIndexAndErrorMessage,
        LeaderIdAndEpoch,
        PartitionProduceResponse,
    )

    has_leader = error.current_leader is not None and version >= _LEADERS_FROM
    leader = LeaderIdAndEpoch(*error.current_leader or ()) if has_leader else LeaderIdAndEpoch()
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
        current_leader=leader,
    )
