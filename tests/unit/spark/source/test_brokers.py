"""One client per process: polling costs one request to each leader."""

import itertools
import socket
import threading
from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from headrace.client import addresses, connection
from headrace.client.addresses import Address
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.schemas.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.uuids import random_uuid
from headrace.spark.source import brokers
from headrace.spark.source.offsets import LATEST
from headrace.spark.source.options import parse
from headrace.spark.source.stream_reader import StreamReader
from tests.unit.client.scripted import ScriptedSocket, knowing_all

OPTIONS = {
    "kafka.bootstrap.servers": "seed:9092",
    "subscribe": "orders",
    "startingOffsets": "earliest",
    "kafka.metadata.max.age.ms": "60000",
}
LOOKS = 20


class CountingCluster:
    """One broker with one partition of `orders`, which counts requests."""

    def __init__(self) -> None:
        self.connections: Counter[str] = Counter()
        self.requests: Counter[ApiKey] = Counter()
        self.end = 0
        self._topic_id = random_uuid()

    def connect(self, address: Address, timeout_s: float) -> socket.socket:
        self.connections[address.host] += 1
        return cast(socket.socket, ScriptedSocket(knowing_all(self.answer)))

    def answer(self, request: Message, version: int) -> Message:
        self.requests[ApiKey(request.API_KEY)] += 1
        if isinstance(request, MetadataRequest):
            partition = MetadataResponsePartition(partition_index=0, leader_id=1)
            topic = MetadataResponseTopic(
                name="orders", topic_id=self._topic_id, partitions=[partition]
            )
            broker = MetadataResponseBroker(node_id=1, host="leader", port=9092)
            return MetadataResponse(brokers=[broker], topics=[topic])
        assert isinstance(request, ListOffsetsRequest)
        (asked,) = request.topics[0].partitions
        offset = self.end if asked.timestamp == LATEST else 0
        found = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name="orders", partitions=[found])]
        )


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> CountingCluster:
    """A process without clients, whose connections all lead to a counting cluster."""
    counting = CountingCluster()
    monkeypatch.setattr(brokers, "_kept", threading.local())
    for module in (addresses, connection):
        monkeypatch.setattr(module, "connect", counting.connect)
    return counting


def follow(cluster: CountingCluster) -> None:
    """Poll the end of the next batch of a stream many times."""
    reader = StreamReader(parse(OPTIONS, is_streaming=True), StructType(), None)
    end = reader.initialOffset()
    for _ in range(LOOKS):
        cluster.end += 1
        end = reader.latestOffset(end, ReadAllAvailable())
    assert end == {"orders": {"0": cluster.end}}


def test_streams_of_a_process_share_a_client_and_its_metadata(
    cluster: CountingCluster,
) -> None:
    """Spark polls the end all the time: each poll is one request to the leader."""
    follow(cluster)
    follow(cluster)
    assert cluster.connections == {"seed": 1, "leader": 1}
    assert cluster.requests == {ApiKey.METADATA: 1, ApiKey.LIST_OFFSETS: 2 * (1 + LOOKS)}


def test_metadata_that_is_too_old_is_requested_again(
    cluster: CountingCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    minutes = itertools.count(step=60.001)
    monkeypatch.setattr(brokers, "time", SimpleNamespace(monotonic=minutes.__next__))
    follow(cluster)
    assert cluster.requests[ApiKey.METADATA] == 1 + LOOKS
    assert cluster.connections == {"seed": 1, "leader": 1}
