"""The two logs that a quorum can run on, behind the same few steps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from headrace.metadata.image import MetadataImage
from headrace.metadata.log.metadata_log import MetadataLog, MetadataLogSettings
from headrace.protocol.batches import Record, build_batch
from headrace.raft.log import OffsetAndEpoch, RaftLog
from headrace.raft.replicas import VoterHistory, VoterSet
from tests.builders.metadata_nodes import NOW_MS, formatted
from tests.builders.raft_logs import Disk, ModelLog, Snapshot

NO_VOTERS = VoterHistory(VoterSet())


def batch_of(offset: int, epoch: int, count: int = 1, size: int = 10) -> bytes:
    records = [Record(offset + number, 0, None, bytes(size)) for number in range(count)]
    return bytes(build_batch(records, leader_epoch=epoch))


class SomeLog(Protocol):
    """A log with the steps of a test."""

    @property
    def log(self) -> RaftLog: ...

    def snapshot(self, end_offset: int) -> OffsetAndEpoch:
        """Take a snapshot of the records before an offset, and delete them."""
        ...

    def close(self) -> None: ...


def append(one: SomeLog, epoch: int, count: int = 1, size: int = 10) -> None:
    one.log.append(memoryview(bytearray(batch_of(one.log.end_offset, epoch, count, size))))


class InMemory:
    """The model."""

    def __init__(self) -> None:
        self.log = ModelLog(Disk())

    def snapshot(self, end_offset: int) -> OffsetAndEpoch:
        before = [
            batch
            for data in self.log.disk.snapshots.values()
            for batch in msgspec.msgpack.decode(data, type=Snapshot).batches
        ]
        self.log.take_snapshot(end_offset, NO_VOTERS, before)
        newest = self.log.newest_snapshot
        assert newest is not None
        return newest

    def close(self) -> None:
        """Nothing to close."""


class OnDisk:
    """The metadata log, with segments of a few batches."""

    def __init__(self, directory: Path) -> None:
        settings = MetadataLogSettings(segment_bytes=400, retention_bytes=0)
        self.log = MetadataLog.open(str(formatted(directory)), settings=settings)

    def snapshot(self, end_offset: int) -> OffsetAndEpoch:
        epoch = epoch_before(self.log, end_offset)
        image = MetadataImage(offset=end_offset - 1, epoch=epoch)
        self.log.commit(self.log.end_offset)
        plan = self.log.plan_snapshot(image, NO_VOTERS, NOW_MS)
        plan.run()
        self.log.snapshot_taken(plan)
        self.log.clean(NOW_MS)
        return OffsetAndEpoch(*plan.id)

    def close(self) -> None:
        self.log.close()


def epoch_before(log: RaftLog, end_offset: int) -> int:
    """The epoch of the record before an offset."""
    epochs = range(log.last_epoch + 1)
    return next(one for one in epochs if log.end_of_epoch(one).end_offset >= end_offset)


def both(directory: Path) -> Sequence[SomeLog]:
    return InMemory(), OnDisk(directory)
