"""A metadata log in memory, on a disk that a crash takes back to what was synced."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import msgspec

from headrace.protocol.batches import headers
from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.control import KRaftVersionRecord, VotersRecord
from headrace.raft.log import OffsetAndEpoch
from headrace.raft.quorum_state import QuorumState
from headrace.raft.replicas import VoterHistory


class Batch(msgspec.Struct, frozen=True):
    base_offset: int
    end_offset: int
    epoch: int
    data: bytes


class Snapshot(msgspec.Struct):
    """All batches before its end, and the voters: a state machine that forgets nothing."""

    batches: list[Batch]
    kraft_version: int
    voters: bytes


@dataclass
class Disk:
    """Batches in the page cache, those that are synced, snapshots, and `quorum-state`."""

    written: list[Batch] = field(default_factory=list)
    durable: list[Batch] = field(default_factory=list)
    start: OffsetAndEpoch = field(default_factory=lambda: OffsetAndEpoch(0, 0))
    snapshots: dict[OffsetAndEpoch, bytes] = field(default_factory=dict)
    state: QuorumState = field(default_factory=QuorumState)

    def sync(self, end_offset: int) -> None:
        """Make records durable; syncs may end in another order than they began."""
        synced = [one for one in self.written if one.end_offset <= end_offset]
        if self.written[: len(self.durable)] != self.durable or len(synced) > len(self.durable):
            self.durable = synced

    def lose_power(self, chance: Random) -> None:
        """Keep what is synced, and perhaps more of what was written behind it."""
        kept = list(self.durable)
        if self.written[: len(kept)] == kept:
            more = len(self.written) - len(kept)
            kept += self.written[len(kept) : len(kept) + chance.randint(0, more)]
        self.written, self.durable = kept, list(kept)


class ModelLog:
    """`RaftLog` over a disk in memory."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._received: dict[OffsetAndEpoch, bytearray] = {}

    @property
    def start_offset(self) -> int:
        return self.disk.start.end_offset

    @property
    def end_offset(self) -> int:
        written = self.disk.written
        return written[-1].end_offset if written else self.start_offset

    @property
    def last_epoch(self) -> int:
        written = self.disk.written
        return written[-1].epoch if written else self.disk.start.epoch

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        at = bisect_right(self.disk.written, epoch, key=lambda one: one.epoch)
        if at:
            return OffsetAndEpoch(
                self.disk.written[at - 1].end_offset, self.disk.written[at - 1].epoch
            )
        return OffsetAndEpoch(self.start_offset, min(epoch, self.disk.start.epoch))

    def append(self, batches: memoryview) -> None:
        for position, header in headers(batches):
            assert header.base_offset == self.end_offset, "batches follow each other"
            data = bytes(batches[position : position + header.size])
            batch = Batch(header.base_offset, header.next_offset, header.leader_epoch, data)
            self.disk.written.append(batch)

    def read(self, offset: int, size_max: int) -> bytes:
        data = bytearray()
        for one in self.disk.written:
            if data and len(data) + len(one.data) > size_max:
                break
            if one.end_offset > offset:
                data += one.data
        return bytes(data)

    def truncate(self, end_offset: int) -> None:
        self.disk.written = [one for one in self.disk.written if one.end_offset <= end_offset]

    @property
    def oldest_snapshot(self) -> OffsetAndEpoch | None:
        return min(self.disk.snapshots, default=None)

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        return max(self.disk.snapshots, default=None)

    def snapshot_size(self, snapshot: OffsetAndEpoch) -> int | None:
        data = self.disk.snapshots.get(snapshot)
        return None if data is None else len(data)

    def read_snapshot(self, snapshot: OffsetAndEpoch, position: int, size_max: int) -> bytes:
        return self.disk.snapshots[snapshot][position : position + size_max]

    def receive_snapshot(self, snapshot: OffsetAndEpoch, position: int, data: bytes) -> None:
        if position == 0:
            self._received[snapshot] = bytearray()
        assert len(self._received[snapshot]) == position, "pieces follow each other"
        self._received[snapshot] += data

    def install_snapshot(self, snapshot: OffsetAndEpoch) -> Sequence[Message]:
        data = bytes(self._received.pop(snapshot))
        self.disk.snapshots = {snapshot: data}
        self.disk.written, self.disk.durable, self.disk.start = [], [], snapshot
        return control_of(data)

    def take_snapshot(self, end_offset: int, history: VoterHistory, before: list[Batch]) -> None:
        """Write a snapshot of the records before an offset, and drop them from the log."""
        batches = [*before, *(one for one in self.disk.written if one.end_offset <= end_offset)]
        entry = history.at(end_offset)
        snapshot = OffsetAndEpoch(end_offset, batches[-1].epoch)
        content = Snapshot(batches, entry.kraft_version, bytes(encode(entry.voters.record(), 0)))
        self.disk.snapshots = {snapshot: msgspec.msgpack.encode(content)}
        self.disk.start = snapshot
        for batches in (self.disk.written, self.disk.durable):
            batches[:] = [one for one in batches if one.end_offset > end_offset]


def control_of(data: bytes) -> list[Message]:
    """Return the control records of a snapshot."""
    snapshot = msgspec.msgpack.decode(data, type=Snapshot)
    records: list[Message] = [KRaftVersionRecord(0, snapshot.kraft_version)]
    return [*records, decode(VotersRecord, 0, snapshot.voters)]
