"""The registered schemas of a registry, to validate records with.

The registry's topic is read when the first record must be validated, one slice per turn of the
loop; later only new records are read. A registry returns the id of a schema after it is committed,
so the topic read to its end contains every id that a correct producer can send.

A topic that another broker leads is read from there, as a consumer. Its end is known only after a
Fetch that began after the records arrived; records that came meanwhile share that Fetch. If the
leader cannot be reached the records are refused with an error that producers retry.
"""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.peer_batches import ask_peer
from headrace.coordination.batches import records_in
from headrace.errors import LeaderNotAvailable, OffsetOutOfRange, error_for
from headrace.metadata.image import NO_LEADER
from headrace.protocol.batches import BatchHeader, headers
from headrace.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headrace.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headrace.storage.producer_replay import marker_of

if TYPE_CHECKING:
    from headrace.peers.pool import Peers
    from headrace.protocol.coordinator_records import CoordinatorRecord
    from headrace.protocol.uuids import Uuid
    from headrace.replication.partition import HostedTopic
    from headrace.replication.partitions import Partitions
    from headrace.serdes.registered_ids import RegisteredIds
    from headrace.serdes.wire_format import SchemaId
    from headrace.storage.log import Log

_SLICE_BYTES = 128 * 1024
_NOTHING: frozenset[str] = frozenset()
_ANSWER_S = 10.0
_CONSUMER, _READ_COMMITTED = -1, 1
_EARLIEST = -2


class _Slice(NamedTuple):
    """Batches from the leader of the topic, and the end of the records that are stable there."""

    data: bytes
    stable_offset: int


class RegisteredSchemas:
    """The schemas of the registry's topic, as far as it was read."""

    def __init__(self, partitions: "Partitions", peers: "Peers", topic: str = "_schemas") -> None:
        self._name = topic
        self._wire_name = topic.encode()
        self._partitions = partitions
        self._peers = peers
        self._rounds = 0
        """Counts the times that the topic was read up to its end, to share them."""
        self._turn = asyncio.Lock()
        self._topic_id: Uuid | None = None
        self._ids: RegisteredIds | None = None
        self._next_offset = 0
        self._open: dict[int, list[CoordinatorRecord]] = {}
        """Records of transactions whose markers are not read yet."""

    def subjects_of(self, id_: "SchemaId") -> frozenset[str]:
        """Return the subjects of a schema; none if it is not registered."""
        ids = self._ids
        return _NOTHING if ids is None else ids.subjects_of(id_)

    @property
    def is_current(self) -> bool:
        """Return whether all committed records were read, as far as this node can know."""
        topic = self._topic()
        if topic is None:
            return self._topic_id is None
        partition = topic.partitions[0]
        source = partition.log if partition is not None and partition.is_led else None
        return (
            source is not None
            and topic.id == self._topic_id
            and self._next_offset >= source.last_stable_offset
        )

    async def catch_up(self) -> None:
        """Read the new records; other clients are served between two slices."""
        needed = self._rounds + (2 if self._turn.locked() else 1)
        async with self._turn:
            if self._rounds >= needed or self.is_current:
                return
            while not await self._read_some():
                await asyncio.sleep(0)
            self._rounds += 1

    def _topic(self) -> "HostedTopic | None":
        return self._partitions.by_wire_name.get(self._wire_name)

    async def _read_some(self) -> bool:
        """Read a slice where the topic is led; returns whether that was the end."""
        topic = self._topic()
        if topic is None or topic.id != self._topic_id:
            self._restart(topic)
        if topic is None:
            return True
        partition = topic.partitions[0]
        if partition is not None and partition.is_led:
            self._read_slice(partition.online_log())
            return self.is_current
        leader = topic.image.partitions[0].leader
        if leader in (NO_LEADER, topic.node_id):
            raise LeaderNotAvailable(f"{self._name} has no leader, so no record can be validated")
        return await self._fetch_slice(topic, leader)

    def _read_slice(self, source: "Log") -> None:
        self._next_offset = max(self._next_offset, source.log_start_offset)
        end = source.last_stable_offset
        if self._next_offset < end:
            self._replay(source.read(self._next_offset, _SLICE_BYTES, end).read(), end)

    async def _fetch_slice(self, topic: "HostedTopic", leader: int) -> bool:
        try:
            data, end = await self._fetch(topic, leader)
        except OffsetOutOfRange:
            # The log was cut at either side of the offset, so that nothing read is certain.
            self._restart(topic)
            self._next_offset = await self._start_of_log(leader)
            return False
        if self._topic_id != topic.id:
            return False
        self._replay(data, end)
        return self._next_offset >= end

    async def _fetch(self, topic: "HostedTopic", leader: int) -> _Slice:
        epoch = topic.image.partitions[0].leader_epoch
        wanted = FetchPartition(
            current_leader_epoch=epoch,
            fetch_offset=self._next_offset,
            partition_max_bytes=_SLICE_BYTES,
        )
        request = FetchRequest(
            max_bytes=_SLICE_BYTES,
            isolation_level=_READ_COMMITTED,
            topics=[FetchTopic(self._name, topic.id, [wanted])],
        )
        response: FetchResponse = await ask_peer(self._peers, leader, request, timeout_s=_ANSWER_S)
        if response.error_code:
            raise error_for(response.error_code)
        found = response.responses[0].partitions[0]
        if found.error_code:
            raise error_for(found.error_code)
        return _Slice(bytes(found.records or b""), found.last_stable_offset)

    async def _start_of_log(self, leader: int) -> int:
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            topics=[ListOffsetsTopic(self._name, [ListOffsetsPartition(timestamp=_EARLIEST)])],
        )
        response: ListOffsetsResponse = await ask_peer(
            self._peers, leader, request, timeout_s=_ANSWER_S
        )
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise error_for(found.error_code)
        return found.offset

    def _restart(self, topic: "HostedTopic | None") -> None:
        """Forget all ids, because the topic of that name was replaced, deleted or cut."""
        from headrace.serdes.registered_ids import RegisteredIds

        self._topic_id = topic.id if topic is not None else None
        self._ids = RegisteredIds()
        self._next_offset = 0
        self._open.clear()

    def _replay(self, data: bytes, end: int) -> None:
        for position, header in headers(data):
            if header.next_offset <= self._next_offset:
                continue
            if header.is_control:
                self._end_transaction(data, position, header)
            elif header.is_transactional:
                written = self._open.setdefault(header.producer_id, [])
                written.extend(record for record, _ in records_in(data, position, header))
            else:
                self._apply([record for record, _ in records_in(data, position, header)])
            self._next_offset = header.next_offset
        if not data and self._next_offset < end:
            self._next_offset = end  # Compaction has removed all records in between.

    def _end_transaction(self, data: bytes, position: int, header: BatchHeader) -> None:
        marker = marker_of(memoryview(data)[position : position + header.size])
        written = self._open.pop(header.producer_id, [])
        if marker is not None and marker.is_commit:
            self._apply(written)

    def _apply(self, records: "list[CoordinatorRecord]") -> None:
        assert self._ids is not None, "a slice is read after `_restart`"
        for key, value in records:
            self._ids.replay(key, value)
