"""Answers in which something went wrong, as a client reads them."""

import struct
from types import SimpleNamespace
from typing import cast

import pytest

from headrace.broker.produce.answers import refusal_of, write_with_failures
from headrace.broker.produce.shapes import ProduceShape
from headrace.errors import InvalidRecord, KafkaStorageError, NotLeaderOrFollower
from headrace.protocol.codec import decode
from headrace.protocol.hot_fetch import NodeAddress
from headrace.protocol.hot_produce import TOPIC_IDS_FROM, Appended
from headrace.protocol.schemas.produce import ProduceResponse
from headrace.replication.partition import Partition

NAME, ID = b"orders", bytes(range(16))


def read(answer: bytes, version: int) -> tuple[int, ProduceResponse]:
    size, correlation_id = struct.unpack_from(">ii", answer)
    assert size == len(answer) - 4
    header_size = 9 if version >= 9 else 8
    return correlation_id, decode(ProduceResponse, version, memoryview(answer)[header_size:])


@pytest.mark.parametrize("version", [7, 9, 13])
def test_each_partition_gets_its_own_outcome_in_the_order_of_the_request(version: int) -> None:
    key = ID if version >= TOPIC_IDS_FROM else NAME
    answer = write_with_failures(
        version,
        7,
        [(key, [(0, None), (1, None), (2, None)])],
        [(key, [Appended(2, 40, -1, 3), Appended(0, 20, -1, 3)])],
        {(key, 1): InvalidRecord("a produced partition needs a record batch")},
    )
    correlation_id, response = read(answer, version)
    assert correlation_id == 7
    (topic,) = response.responses
    assert key in (topic.topic_id, topic.name.encode())
    told = [(one.index, one.error_code, one.base_offset) for one in topic.partition_responses]
    assert told == [(0, 0, 20), (1, InvalidRecord.code, -1), (2, 0, 40)]
    if version >= 8:
        message = topic.partition_responses[1].error_message
        assert message == "a produced partition needs a record batch"


@pytest.mark.parametrize("version", [9, 10, 13])
def test_an_error_names_the_leader_and_its_address(version: int) -> None:
    key = ID if version >= TOPIC_IDS_FROM else NAME
    error = NotLeaderOrFollower("orders-3 is led by another node")
    error.current_leader = 2, 9
    node = NodeAddress(2, "other", 9093, None)
    answer = write_with_failures(
        version, 7, [(key, [(3, None)])], [(key, [])], {(key, 3): error}, [node]
    )
    _, response = read(answer, version)
    ((one,),) = (topic.partition_responses for topic in response.responses)
    leader = (one.current_leader.leader_id, one.current_leader.leader_epoch)
    assert leader == ((2, 9) if version >= 10 else (-1, -1))
    nodes = [(one.node_id, one.host, one.port) for one in response.node_endpoints]
    assert nodes == ([(2, "other", 9093)] if version >= 10 else [])


@pytest.mark.parametrize("version", [7, 9, 13])
def test_a_request_of_a_known_shape_is_refused_like_any_other(version: int) -> None:
    key = ID if version >= TOPIC_IDS_FROM else NAME
    partition = cast(Partition, SimpleNamespace(index=3))
    error = KafkaStorageError("the disk is full")
    refused = refusal_of(ProduceShape(partition, key, 1, version), 7, error)
    assert refused == write_with_failures(
        version, 7, [(key, [(3, None)])], [(key, [])], {(key, 3): error}
    )
