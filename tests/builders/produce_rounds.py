"""Rounds of small Produce requests to test with: real logs, a real round, and frames for it."""

import asyncio
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from headrace.broker.connection import Connection
from headrace.broker.frame_buffers import FrameBuffers
from headrace.broker.metrics.counters import Metrics
from headrace.broker.produce.rounds import ProduceRound
from headrace.broker.produce.shapes import ProduceShapes
from headrace.metadata.image import PartitionImage, TopicImage
from headrace.protocol.codec import encode
from headrace.protocol.hot_produce import read_produce
from headrace.protocol.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.replication.delayed import WakeUps
from headrace.replication.partitions import Partitions
from headrace.testing.clock import SimulatedClock
from tests.builders.logs import NOW, TOPIC_ID, batch_of, new_log, values_of

NODE, VERSION = 1, 9


class Producing(Protocol):
    """A connection, or a substitute."""

    produce_shape: Any


class Noted:
    """The partitions with changes for waiting requests."""

    def __init__(self) -> None:
        self.changes: list[object] = []

    def changed(self, thing: object) -> None:
        self.changes.append(thing)


class ProduceNode:
    """A round over one topic with real logs, and with followers if they are given."""

    def __init__(self, root: Path, followers: Sequence[int] = (), **config: Any) -> None:
        replicas = (NODE, *followers)
        image = PartitionImage(replicas=replicas, isr=replicas, leader=NODE, leader_epoch=0)
        self.metrics = Metrics()
        self.image = TopicImage("orders", TOPIC_ID, (image, image, image))
        self.wake_ups = Noted()
        changed = WakeUps(asyncio.get_running_loop()).changed if followers else None
        self.hosted = Partitions(changed or self.wake_ups.changed)
        hosted = self.hosted.host(self.image, NODE, self.metrics.topic("orders"), NOW).topic
        self.partitions = [hosted.led(index) for index in range(3)]
        for partition in self.partitions:
            directory = root / str(partition.index)
            directory.mkdir()
            partition.attach(new_log(directory, **config), NOW)
            partition.append(batch_of(b"first"), NOW)
            for follower in followers:
                partition.acknowledge(follower, 1, NOW)
        self.buffers = FrameBuffers(1 << 20)
        self.shapes = ProduceShapes()
        self.clock = SimulatedClock(NOW)
        self.round = ProduceRound(
            self.buffers,
            self.shapes,
            self.metrics,
            self.clock,
        )
        self.numbers = iter(range(1, 10_000))

    def take(
        self, client: Producing, value: bytes, partition: int = 0, *, acks: int = 1, **fields: Any
    ) -> bool:
        """Send a request of a client that has sent a similar request before."""
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

    def fetched(self, *followers: int, partition: int = 0) -> None:
        """Let followers fetch all records of a partition."""
        led = self.partitions[partition]
        for follower in followers:
            led.acknowledge(follower, led.online_log().log_end_offset, NOW)

    def change(self, **fields: Any) -> None:
        """Take over an image in which all partitions have changed, as hosting does."""
        partitions = tuple(msgspec.structs.replace(one, **fields) for one in self.image.partitions)
        self.image = TopicImage(self.image.name, self.image.id, partitions)
        self.round.forget([self.partitions[0].topic])
        self.hosted.host(self.image, NODE, self.metrics.topic("orders"), NOW)

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
