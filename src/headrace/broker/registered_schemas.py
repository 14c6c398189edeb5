"""The schemas of a registry whose topic is on this node, for topics that ask for registered ones.

The topic is read when a record must be judged and never before, a slice per turn of the loop, and
from then on only what was added. Whoever registers a schema is told its id when it is committed,
so what is read to the end knows every id that an honest producer can send.
"""

import asyncio
from typing import TYPE_CHECKING

from headrace.coordination.batches import records_in
from headrace.protocol.batches import BatchHeader, headers
from headrace.storage.producer_replay import marker_of

if TYPE_CHECKING:
    from headrace.broker.partitions import Partition, Partitions
    from headrace.protocol.coordinator_records import CoordinatorRecord
    from headrace.protocol.uuids import Uuid
    from headrace.serdes.registered_ids import RegisteredIds
    from headrace.serdes.wire_format import SchemaId
    from headrace.storage.log import Log

_SLICE_BYTES = 128 * 1024
_NOTHING: frozenset[str] = frozenset()


class RegisteredSchemas:
    """What the registry's topic says, as far as it was read."""

    def __init__(self, partitions: "Partitions", topic: str = "_schemas") -> None:
        self._wire_name = topic.encode()
        self._partitions = partitions
        self._turn = asyncio.Lock()
        self._topic_id: Uuid | None = None
        self._ids: RegisteredIds | None = None
        self._next_offset = 0
        self._open: dict[int, list[CoordinatorRecord]] = {}
        """What producers wrote in transactions that have not ended where we read."""

    def subjects_of(self, id_: "SchemaId") -> frozenset[str]:
        """The subjects under which a schema is registered; none if it is not."""
        ids = self._ids
        return _NOTHING if ids is None else ids.subjects_of(id_)

    @property
    def is_current(self) -> bool:
        """Whether all that is committed was read."""
        partition = self._partition()
        if partition is None:
            return self._topic_id is None
        source = partition.log
        return (
            source is not None
            and partition.topic_id == self._topic_id
            and self._next_offset >= source.last_stable_offset
        )

    async def catch_up(self) -> None:
        """Read what is new; other clients are served between two slices."""
        async with self._turn:
            while not self.is_current:
                self._read_slice()
                await asyncio.sleep(0)

    def _partition(self) -> "Partition | None":
        topic = self._partitions.by_wire_name.get(self._wire_name)
        return topic.partitions[0] if topic is not None else None

    def _read_slice(self) -> None:
        partition = self._partition()
        if partition is None or partition.topic_id != self._topic_id:
            self._begin_anew(partition)
        if partition is None:
            return
        source = partition.online_log()
        self._next_offset = max(self._next_offset, source.log_start_offset)
        end = source.last_stable_offset
        if self._next_offset < end:
            self._replay(source, end)

    def _begin_anew(self, partition: "Partition | None") -> None:
        """Another topic of that name, or none any more: its ids are not those of the last one."""
        from headrace.serdes.registered_ids import RegisteredIds

        self._topic_id = partition.topic_id if partition is not None else None
        self._ids = RegisteredIds()
        self._next_offset = 0
        self._open.clear()

    def _replay(self, source: "Log", end: int) -> None:
        data = source.read(self._next_offset, _SLICE_BYTES, end).read()
        for position, header in headers(data):
            if header.next_offset <= self._next_offset:
                continue
            if header.is_control:
                self._end_transaction(data, position, header)
            elif header.is_transactional:
                written = self._open.setdefault(header.producer_id, [])
                written.extend(record for record, _ in records_in(data, position, header))
            else:
                self._take_in([record for record, _ in records_in(data, position, header)])
            self._next_offset = header.next_offset
        if not data:
            self._next_offset = end  # Compaction has left nothing in between.

    def _end_transaction(self, data: bytes, position: int, header: BatchHeader) -> None:
        marker = marker_of(memoryview(data)[position : position + header.size])
        written = self._open.pop(header.producer_id, [])
        if marker is not None and marker.is_commit:
            self._take_in(written)

    def _take_in(self, records: "list[CoordinatorRecord]") -> None:
        assert self._ids is not None, "a slice is read after it was begun"
        for key, value in records:
            self._ids.replay(key, value)
