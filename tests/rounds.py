"""Rounds of small Produce requests to test with: real logs, a real round, and frames for it."""

import struct
from pathlib import Path
from typing import Any, Protocol, cast

from headrace.broker.connection import Connection
from headrace.broker.delayed import WakeUps
from headrace.broker.frame_buffers import FrameBuffers
from headrace.broker.partitions import Partitions
from headrace.broker.produce_rounds import ProduceRound
from headrace.broker.produce_shapes import ProduceShapes
from headrace.metadata.image import PartitionImage, TopicImage
from headrace.protocol.codec import encode
from headrace.protocol.hot_produce import read_produce
from headrace.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.runtime.metrics import Metrics
from headrace.testing.clock import SimulatedClock
from tests.logs import NOW, TOPIC_ID, batch_of, new_log, values_of

NODE, VERSION = 1, 9


class Producing(Protocol):
    """A connection, or what stands in for one."""

    produce_shape: Any


class Noted:
    """Which partitions have news for those who wait."""

    def __init__(self) -> None:
        self.changes: list[object] = []

    def changed(self, thing: object) -> None:
        self.changes.append(thing)


class ProduceNode:
    """A round over one topic with real logs."""

    def __init__(self, root: Path) -> None:
        image = PartitionImage(replicas=(NODE,), isr=(NODE,), leader=NODE, leader_epoch=0)
        self.metrics = Metrics()
        topic = TopicImage("orders", TOPIC_ID, (image, image, image))
        hosted = Partitions().host(topic, NODE, self.metrics.topic("orders"))
        self.partitions = [hosted.find(index) for index in range(3)]
        for partition in self.partitions:
            directory = root / str(partition.index)
            directory.mkdir()
            partition.log = new_log(directory)
            partition.append(batch_of(b"first"), NOW)
        self.buffers = FrameBuffers(1 << 20)
        self.shapes = ProduceShapes()
        self.wake_ups = Noted()
        self.clock = SimulatedClock(NOW)
        self.round = ProduceRound(
            self.buffers,
            self.shapes,
            cast(WakeUps, self.wake_ups),
            self.metrics,
            self.clock,
        )
        self.numbers = iter(range(1, 10_000))

    def take(
        self, client: Producing, value: bytes, partition: int = 0, *, acks: int = 1, **fields: Any
    ) -> bool:
        """Bring a request as a client does that has sent such a one before."""
        frame = self.frame(client, value, partition, acks=acks, **fields)
        start = self.buffers.start
        self.buffers.vacant[: len(frame)] = frame
        return self.round.take(
            cast(Connection, client),
            client.produce_shape,
            self.buffers.scratch,
            start,
            start + len(frame),
        )

    def frame(
        self, client: Producing, value: bytes, partition: int = 0, *, acks: int = 1, **fields: Any
    ) -> bytearray:
        """A request whose shape the client is known for."""
        frame = frame_of(batch_of(value, **fields), partition, acks, next(self.numbers))
        body = memoryview(frame)[4:]
        request = read_produce(body, 10 + 1, VERSION)
        shape = self.shapes.learn(body, VERSION, request, self.partitions[partition])
        assert shape is not None
        client.produce_shape = shape
        return frame

    def values(self, partition: int = 0) -> list[bytes | None]:
        log = self.partitions[partition].log
        assert log is not None
        return values_of(log)[1:]


def frame_of(records: memoryview, partition: int, acks: int, number: int) -> bytearray:
    data = PartitionProduceData(index=partition, records=bytes(records))
    topic = TopicProduceData("orders", partition_data=[data])
    request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])
    body = struct.pack(">hhih", 0, VERSION, number, -1) + b"\0" + encode(request, VERSION)
    return bytearray(struct.pack(">i", len(body)) + body)
