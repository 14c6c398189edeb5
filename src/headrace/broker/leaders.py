"""Offsets and appends at the leaders of partitions, on this node or another.

Other leaders get the requests that clients send: ListOffsets and Produce.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.commit_waits import committed
from headrace.broker.peer_batches import PeerBatches, ask_peer
from headrace.errors import LeaderNotAvailable, UnknownTopicOrPartition, error_for
from headrace.metadata.image import NO_LEADER
from headrace.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headrace.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from headrace.metadata.image import MetadataImage
    from headrace.peers.pool import Peers
    from headrace.replication.partitions import Partitions
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Tasks

_CONSUMER = -1
_LATEST = -1
_ALL_REPLICAS = -1
_COMMIT_TIMEOUT_S = 20.0


class _Led(NamedTuple):
    place: TopicPartition
    leader: int
    leader_epoch: int


class Leaders:
    """Asks the leader of any partition."""

    def __init__(
        self,
        node_id: int,
        partitions: "Partitions",
        image: "Callable[[], MetadataImage]",
        peers: "Peers",
        clock: "Clock",
        tasks: "Tasks",
    ) -> None:
        self._node_id = node_id
        self._partitions = partitions
        self._image = image
        self._peers = peers
        self._clock = clock
        self._ends: PeerBatches[int, _Led, ListOffsetsPartitionResponse] = PeerBatches(
            tasks, "offsets of other leaders", self._list_ends, lambda led: led.place
        )

    async def end_offset(self, topic: str, index: int) -> int:
        """Return the offset after the last committed record, as consumers see it."""
        led = self._find(topic, index)
        if led.leader == self._node_id:
            return self._partitions.led(topic, index).online_log().high_watermark
        found = await self._ends.ask(led.leader, led)
        if found.error_code:
            raise error_for(found.error_code)
        return found.offset

    async def produce(self, topic: str, index: int, batch: bytearray) -> None:
        """Append a batch of records; returns when all in-sync replicas have it."""
        led = self._find(topic, index)
        if led.leader == self._node_id:
            partition = self._partitions.led(topic, index)
            partition.check_min_isr()
            info = partition.append(memoryview(batch), self._clock.now_ms())
            await committed(partition, info.last_offset + 1, _COMMIT_TIMEOUT_S)
            return
        data = PartitionProduceData(index=index, records=bytes(batch))
        request = ProduceRequest(
            acks=_ALL_REPLICAS,
            timeout_ms=int(_COMMIT_TIMEOUT_S * 1000),
            topic_data=[
                TopicProduceData(
                    name=topic, topic_id=self._image().topics[topic].id, partition_data=[data]
                )
            ],
        )
        response: ProduceResponse = await ask_peer(self._peers, led.leader, request)
        result = response.responses[0].partition_responses[0]
        if result.error_code:
            raise error_for(result.error_code, result.error_message or "")

    def _find(self, topic: str, index: int) -> _Led:
        image = self._image().topics.get(topic)
        if image is None or not 0 <= index < len(image.partitions):
            raise UnknownTopicOrPartition(f"there is no partition {topic}-{index}")
        partition = image.partitions[index]
        if partition.leader == NO_LEADER:
            raise LeaderNotAvailable(f"{topic}-{index} has no leader now")
        return _Led(TopicPartition(topic, index), partition.leader, partition.leader_epoch)

    async def _list_ends(
        self, leader: int, asked: list[_Led]
    ) -> Mapping[Hashable, ListOffsetsPartitionResponse]:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for (topic, index), _, leader_epoch in asked:
            topics.setdefault(topic, []).append(ListOffsetsPartition(index, leader_epoch, _LATEST))
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            topics=[ListOffsetsTopic(name, partitions) for name, partitions in topics.items()],
        )
        response: ListOffsetsResponse = await ask_peer(self._peers, leader, request)
        return {
            TopicPartition(topic.name, one.partition_index): one
            for topic in response.topics
            for one in topic.partitions
        }
