"""Clients of a simulated cluster: producers with acks=all, readers, and a maker of topics.

They use the channels of nodes, and retry as clients do. Each keeps what it was promised.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from headrace.errors import ERROR_NAMES, HeadraceError
from headrace.peers.channel import Channel
from headrace.protocol.batches import Record, build_batch, read_header, records_of
from headrace.protocol.schemas import create_topics as topics
from headrace.protocol.schemas import fetch, metadata, produce
from headrace.protocol.schemas.init_producer_id import InitProducerIdRequest
from headrace.protocol.uuids import ZERO
from headrace.storage.topic_partition import TopicPartition
from tests.builders.simulated.processes import Process

if TYPE_CHECKING:
    from tests.builders.simulated.cluster import Cluster

_PAUSE_S = 0.05
_TIMEOUT_S = 3.0
_REQUEST_TIMEOUT_MS = 2_000
_DENIALS = {
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "UNKNOWN_PRODUCER_ID",
    "INVALID_PRODUCER_EPOCH",
    "OFFSET_OUT_OF_RANGE",
    "CORRUPT_MESSAGE",
    "INVALID_RECORD",
    "UNKNOWN_SERVER_ERROR",
}
"""Errors that a client of a cluster without a fault never gets."""


class Client:
    """Requests to whichever node answers, and to leaders."""

    def __init__(self, clients: "Clients", name: str) -> None:
        self.clients = clients
        self.cluster = clients.cluster
        self.name = name
        self._channels: dict[int, Channel] = {}

    def channel(self, node_id: int) -> Channel:
        found = self._channels.get(node_id)
        if found is None:
            found = self._channels[node_id] = Channel(f"n{node_id}", 9092, self.name)
        return found

    def any_node(self) -> int:
        return self.cluster.chance.choice(self.cluster.ids)

    async def until(self, attempt: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Repeat an attempt until it returns something."""
        while True:
            try:
                result = await attempt()
            except HeadraceError as error:
                result = None
                del error
            if result is not None:
                return result
            await asyncio.sleep(_PAUSE_S)

    async def leader(self, name: TopicPartition) -> tuple[int, bytes, int] | None:
        """The leader of a partition, the id of its topic, and its epoch."""
        request = metadata.MetadataRequest(
            [metadata.MetadataRequestTopic(name=name.topic)], allow_auto_topic_creation=False
        )
        answer = await self.channel(self.any_node()).ask(request, timeout_s=_TIMEOUT_S)
        for topic in answer.topics:
            for one in topic.partitions:
                if one.partition_index == name.partition and one.leader_id >= 0:
                    return one.leader_id, topic.topic_id, one.leader_epoch
        return None

    def check(self, error_code: int, name: TopicPartition, node_id: int, what: str) -> None:
        """A leader that has not heard of its successor may lack records; others may not."""
        image = self.cluster.newest_image()
        topic = image.topics.get(name.topic) if image is not None else None
        partition = topic.partitions[name.partition] if topic is not None else None
        self.cluster.checker.require(
            ERROR_NAMES.get(error_code, "") not in _DENIALS
            or (partition is not None and partition.leader != node_id),
            f"{self.name} got {ERROR_NAMES.get(error_code)} for {name} at {what}",
        )


class Producer(Client):
    """Writes numbered records into one partition, one request at a time."""

    def __init__(self, clients: "Clients", number: int, name: TopicPartition) -> None:
        super().__init__(clients, f"producer-{number}")
        self.partition = name
        self.acknowledged: list[tuple[int, bytes]] = []
        self.is_waiting = False
        self._count = 0
        self._rate = clients.cluster.chance.choice((0.3, 4.0, 10.0))
        self._producer_id = -1
        self._leader: tuple[int, bytes, int] | None = None

    async def run(self) -> None:
        self._producer_id = await self.until(self._init)
        while True:
            await asyncio.sleep(self.cluster.chance.expovariate(self._rate))
            while self.clients.is_quiet:
                await asyncio.sleep(_PAUSE_S)
            await self.write(self.cluster.chance.randint(1, 3))

    async def _init(self) -> int | None:
        request = InitProducerIdRequest(None, 60_000)
        answer = await self.channel(self.any_node()).ask(request, timeout_s=_TIMEOUT_S)
        return None if answer.error_code else answer.producer_id

    async def write(self, count: int) -> None:
        first, self._count = self._count, self._count + count
        values = [f"{self.name}:{first + one}".encode() for one in range(count)]
        self.is_waiting = True
        offset = await self.until(lambda: self._write(first, values))
        self.is_waiting = False
        for at, value in enumerate(values, offset):
            self.acknowledged.append((at, value))
            end, _ = self.cluster.checker.ends.get(self.partition, (0, -1))
            self.cluster.checker.require(
                at < end, f"{self.partition} {at} is acknowledged and not committed"
            )

    async def _write(self, first: int, values: list[bytes]) -> int | None:
        if self._leader is None:
            self._leader = await self.leader(self.partition)
        if self._leader is None:
            return None
        node_id, topic_id, _ = self._leader
        records = build_batch(
            [Record(at, 1_800_000_000_000, None, value) for at, value in enumerate(values)],
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=first,
        )
        request = produce.ProduceRequest(
            None,
            -1,
            _REQUEST_TIMEOUT_MS,
            [
                produce.TopicProduceData(
                    "",
                    topic_id,
                    [produce.PartitionProduceData(self.partition.partition, bytes(records))],
                )
            ],
        )
        try:
            answer = await self.channel(node_id).ask(request, timeout_s=_TIMEOUT_S)
        except HeadraceError:
            self._leader = None
            raise
        partition = answer.responses[0].partition_responses[0]
        if partition.error_code:
            self.check(partition.error_code, self.partition, node_id, f"sequence {first}")
            self._leader = None
            return None
        return int(partition.base_offset)


class Reader(Client):
    """Reads one partition from its start."""

    def __init__(self, clients: "Clients", number: int, name: TopicPartition) -> None:
        super().__init__(clients, f"reader-{number}")
        self.partition = name
        self.offset = 0
        self._leader: tuple[int, bytes, int] | None = None

    async def run(self) -> None:
        while True:
            await self.until(self._read)

    async def _read(self) -> bool | None:
        if self._leader is None:
            self._leader = await self.leader(self.partition)
        if self._leader is None:
            return None
        node_id, topic_id, epoch = self._leader
        request = fetch.FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[
                fetch.FetchTopic(
                    "",
                    topic_id,
                    [
                        fetch.FetchPartition(
                            self.partition.partition,
                            epoch,
                            self.offset,
                            partition_max_bytes=self.cluster.chance.choice((200, 1 << 20)),
                        )
                    ],
                )
            ],
        )
        try:
            answer = await self.channel(node_id).ask(request, timeout_s=_TIMEOUT_S)
        except HeadraceError:
            self._leader = None
            raise
        if answer.error_code or not answer.responses:
            self._leader = None
            return None
        partition = answer.responses[0].partitions[0]
        if partition.error_code:
            self.check(partition.error_code, self.partition, node_id, f"{self.offset}")
            self._leader = None
            return None
        self._take(bytes(partition.records or b""))
        return True

    def _take(self, data: bytes) -> None:
        require = self.cluster.checker.require
        seen = self.clients.seen.setdefault(self.partition, {})
        end, _ = self.cluster.checker.ends.get(self.partition, (0, -1))
        position = 0
        while position < len(data):
            header = read_header(data, position)
            for record in records_of(data, position):
                if record.offset < self.offset:
                    continue
                require(
                    record.offset == self.offset,
                    f"{self.partition} has no record at {self.offset}",
                )
                require(record.offset < end, f"{self.partition} {record.offset} is not committed")
                known = seen.setdefault(record.offset, record.value or b"")
                require(
                    known == record.value,
                    f"{self.partition} {record.offset} was {known!r} and is {record.value!r}",
                )
                self.offset = record.offset + 1
            position += header.size


class TopicMaker(Client):
    """Makes topics, and remembers those that were promised."""

    def __init__(self, clients: "Clients") -> None:
        super().__init__(clients, "admin")
        self.made: dict[str, bytes] = {}
        self._number = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.cluster.chance.expovariate(0.5))
            if not self.clients.is_quiet and self._number < 12:
                self._number += 1
                name = f"made-{self._number}"
                try:
                    self.made[name] = await self.make(name, 1, is_one_try=True)
                    self.cluster.checker.require(
                        self.made[name] == ZERO or name in self.cluster.newest_image().topics,
                        f"topic {name} is answered for and not committed",
                    )
                except HeadraceError:
                    continue

    async def make(self, name: str, partitions: int, *, is_one_try: bool = False) -> bytes:
        async def attempt() -> bytes | None:
            request = topics.CreateTopicsRequest(
                [topics.CreatableTopic(name, partitions, 3)], timeout_ms=2_000
            )
            answer = await self.channel(self.any_node()).ask(request, timeout_s=_TIMEOUT_S)
            one = answer.topics[0]
            if ERROR_NAMES.get(one.error_code) == "TOPIC_ALREADY_EXISTS":
                return ZERO
            return None if one.error_code else bytes(one.topic_id)

        if is_one_try:
            made = await attempt()
            if made is None:
                raise HeadraceError("not made")
            return made
        return bytes(await self.until(attempt))


class Clients:
    """All clients of a simulation, on a machine of their own."""

    def __init__(self, cluster: "Cluster") -> None:
        self.cluster = cluster
        self.is_quiet = False
        self.producers: list[Producer] = []
        self.readers: list[Reader] = []
        self.admin = TopicMaker(self)
        self.seen: dict[TopicPartition, dict[int, bytes]] = {}
        self.process = Process("clients")
        cluster.processes.append(self.process)

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = self.process.start(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.cluster.loop.problems.append(f"a client failed: {error!r}")

    def start_all(self, partitions: list[TopicPartition]) -> None:
        for number, name in enumerate(partitions):
            self.producers.append(Producer(self, number, name))
            self.readers.append(Reader(self, number, name))
        if len(partitions) < 3:
            self.producers.append(Producer(self, len(partitions), partitions[0]))
        runs = [one.run() for one in self.producers] + [one.run() for one in self.readers]
        for run in (*runs, self.admin.run()):
            self.start(run)

    def unanswered(self) -> str:
        """Return what clients still wait for."""
        for producer in self.producers:
            if producer.is_waiting:
                return f"{producer.name} waits for an answer"
        for reader in self.readers:
            end, _ = self.cluster.checker.ends.get(reader.partition, (0, -1))
            if reader.offset < end:
                return f"{reader.name} has read up to {reader.offset} of {end}"
        return ""

    def check_promises(self) -> None:
        """Every acknowledged record is where it was, once, and in its producer's order."""
        require = self.cluster.checker.require
        for producer in self.producers:
            content = self.values_of(producer.partition)
            places: dict[bytes, int] = {}
            for offset, value in content.items():
                require(value not in places, f"{value!r} is twice in {producer.partition}")
                places[value] = offset
            last = -1
            for offset, value in producer.acknowledged:
                found = content.get(offset)
                require(
                    found == value,
                    f"{producer.partition} {offset} was acknowledged as {value!r} and is {found!r}",
                )
                require(offset > last, f"{producer.name} was reordered at {offset}")
                last = offset
        image = self.cluster.newest_image()
        for name, topic_id in self.admin.made.items():
            topic = image.topics.get(name)
            require(
                topic is not None and topic_id in (ZERO, topic.id),
                f"topic {name} was made and is gone",
            )

    def values_of(self, name: TopicPartition) -> dict[int, bytes]:
        values = {}
        for _, batch in sorted(self.cluster.checker.committed.get(name, {}).items()):
            for record in records_of(batch):
                values[record.offset] = record.value or b""
        return values
