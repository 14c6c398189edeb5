"""`__cluster_metadata-0` on disk: the log of the quorum, with its snapshots.

The raft core decides what is appended, truncated and committed; this module does it (`RaftLog`).
Writes go to the page cache. `plan_flush` makes them durable, in a thread. The files are those of
any KRaft quorum, so Kafka can take over.
"""

import logging
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from headrace.errors import PolicyViolation
from headrace.metadata.features import DEFAULT_LEVELS
from headrace.metadata.image import MetadataImage
from headrace.metadata.image_records import feature_records
from headrace.metadata.loader import MetadataLoader
from headrace.metadata.log.formatting import BOOTSTRAP_FILE, METADATA_PARTITION
from headrace.metadata.log.snapshot_files import (
    ReceivedSnapshot,
    SnapshotPlan,
    delete_leftovers,
    delete_snapshot,
    list_snapshots,
    read_snapshot,
    snapshot_path,
)
from headrace.metadata.records import (
    BATCH_SIZE_MAX,
    CorruptMetadata,
    MetadataBatch,
    VersionedRecord,
    decode_batches,
    encode_batch,
)
from headrace.metadata.snapshots import FORMATTED, Snapshot, SnapshotId, decode_snapshot
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC_ID
from headrace.raft.following import control_records
from headrace.raft.log import OffsetAndEpoch
from headrace.raft.replicas import VoterHistory, VoterSet
from headrace.runtime import files
from headrace.runtime.clock import Clock, SystemClock
from headrace.storage.appending import append_as_is
from headrace.storage.checkpoints import PARTITION_METADATA, encode_partition_metadata
from headrace.storage.config import LogConfig
from headrace.storage.flushing import FlushPlan
from headrace.storage.log import Log
from headrace.storage.recovery import load_log
from headrace.storage.resources import Resources

_log = logging.getLogger(__name__)

_READ_SIZE = 8 << 20
_RECORDS_PER_BATCH = 10_000
_REPLAY_BYTES_MAX = 1 << 20
_DAY_MS = 24 * 60 * 60 * 1000


class MetadataLogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `metadata.*` settings; Kafka's defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    retention_bytes: int = 100 << 20
    retention_ms: int = 7 * _DAY_MS
    record_bytes_between_snapshots: int = 20 << 20
    snapshot_interval_ms: int = 60 * 60 * 1000


class PreparedBatch(NamedTuple):
    """A batch as bytes for the log, and as records for replay."""

    data: bytearray
    batch: MetadataBatch


class MetadataLog:
    """The log and its snapshots; one thread owns them."""

    def __init__(self, directory: str, settings: MetadataLogSettings, clock: Clock) -> None:
        self.directory = f"{directory}/{METADATA_PARTITION}"
        self.snapshots: list[SnapshotId] = []
        self._settings = settings
        self._clock = clock
        self._received: ReceivedSnapshot | None = None
        self._bytes_at_snapshot = 0
        self._snapshot_size = 0
        self._snapshot_ms = 0
        self._log: Log

    # Opening.

    @classmethod
    def open(
        cls,
        directory: str,
        *,
        settings: MetadataLogSettings | None = None,
        resources: Resources | None = None,
        clock: Clock | None = None,
    ) -> "MetadataLog":
        """Open the metadata log below a log directory, and repair it after a crash.

        Records before the newest snapshot are not read again: they were synced before it, and
        the snapshot contains their state.
        """
        log = cls(directory, settings or MetadataLogSettings(), clock or SystemClock())
        files.make_directories(log.directory)
        delete_leftovers(log.directory)
        log.snapshots = list_snapshots(log.directory)
        newest = log.snapshots[-1] if log.snapshots else FORMATTED
        log._write_topic_id()
        log._log = load_log(
            METADATA_PARTITION,
            log.directory,
            LogConfig(
                segment_bytes=log._settings.segment_bytes,
                segment_ms=log._settings.segment_ms,
                max_message_bytes=BATCH_SIZE_MAX,
                cleanup_policy=frozenset(),
            ),
            resources or Resources(),
            recovery_point=newest.end_offset,
            clean=False,
        )
        log._align(newest)
        # A process that was killed may have left records that are in the page cache only. The
        # raft core takes all records of the log as durable.
        log._log.flush()
        log._bytes_at_snapshot = log._log.size_bytes
        log._snapshot_ms = log._time_of_newest()
        return log

    def _time_of_newest(self) -> int:
        """Return the time of the newest snapshot; a log without one counts as just begun."""
        if not self.snapshots:
            return self._clock.now_ms()
        return files.modified_ms(snapshot_path(self.directory, self.snapshots[-1]))

    def _write_topic_id(self) -> None:
        path = f"{self.directory}/{PARTITION_METADATA}"
        if not files.exists(path):
            files.replace_file(path, encode_partition_metadata(METADATA_TOPIC_ID))

    def _align(self, newest: SnapshotId) -> None:
        """Align log and snapshots if one of them is ahead of the other."""
        log = self._log
        is_ahead = (newest.epoch, newest.end_offset) > (
            log.leader_epochs.latest_epoch,
            log.log_end_offset,
        )
        if newest != FORMATTED and is_ahead:
            log.truncate_fully_and_start_at(newest.end_offset)
        oldest = self.snapshots[0] if self.snapshots else FORMATTED
        if log.log_start_offset < oldest.end_offset <= log.log_end_offset:
            # Records before the oldest snapshot share a segment with later ones. Their epochs are
            # forgotten, so a comparison with a follower there would give a wrong divergence.
            log.advance_high_watermark(oldest.end_offset)
            log.delete_records_before(oldest.end_offset)
        for snapshot in [one for one in self.snapshots if one.end_offset < log.log_start_offset]:
            self.snapshots.remove(snapshot)
            delete_snapshot(self.directory, snapshot)
        if log.log_start_offset > 0 and not self.snapshots:
            raise CorruptMetadata(
                f"{self.directory} begins at offset {log.log_start_offset}, and no snapshot "
                "has the records before it"
            )

    def voter_history(self, configured: VoterSet) -> VoterHistory:
        """Return the voter sets of the log; `configured` count until one is in the log."""
        history = VoterHistory(configured)
        if FORMATTED in self.snapshots:
            for record in self._decode(FORMATTED).control:
                history.append(-1, record)
        newest = self._newest()
        if newest is not None:
            history.restart_at(newest.end_offset, self._decode(newest).control)
        for data in self._pieces(self._start_of_replay(), self.end_offset):
            for offset, record in control_records(data):
                history.append(offset, record)
        return history

    def replay(self, loader: MetadataLoader, end_offset: int) -> None:
        """Replay the records after those of the loader, up to an offset.

        A loader that ends before the log begins starts again with the newest snapshot.
        """
        if loader.next_offset < self._start_of_replay():
            newest = self._newest()
            assert newest is not None, "the log begins with its records, or with a snapshot"
            self._replay_snapshot(newest, loader)
        for data in self._pieces(loader.next_offset, end_offset):
            for batch in decode_batches(data):
                if batch.base_offset >= loader.next_offset:
                    loader.replay(batch)

    def _start_of_replay(self) -> int:
        newest = self._newest()
        return self.start_offset if newest is None else newest.end_offset

    def _newest(self) -> SnapshotId | None:
        """Return the newest snapshot with records."""
        newest = self.snapshots[-1] if self.snapshots else FORMATTED
        return None if newest == FORMATTED else newest

    def _pieces(self, offset: int, end_offset: int) -> Iterator[bytes]:
        """Read the batches from an offset on, some megabytes at a time."""
        while offset < end_offset:
            slice_ = self._log.read(offset, _READ_SIZE, end_offset)
            if not slice_.size:
                return
            yield slice_.read()
            offset = self._log.end_of(slice_, offset)

    def _replay_snapshot(self, snapshot_id: SnapshotId, loader: MetadataLoader) -> None:
        snapshot = self._decode(snapshot_id)
        path = snapshot_path(self.directory, snapshot_id)
        self._snapshot_size = files.file_size(path)
        loader.replay_snapshot(
            snapshot.records,
            end_offset=snapshot_id.end_offset,
            epoch=snapshot_id.epoch,
            timestamp_ms=snapshot.timestamp_ms,
        )
        later = sum(map(len, self._pieces(snapshot_id.end_offset, self.end_offset)))
        self._bytes_at_snapshot = self._log.size_bytes - later

    def _decode(self, snapshot_id: SnapshotId) -> Snapshot:
        return read_snapshot(snapshot_path(self.directory, snapshot_id))

    def read_bootstrap(self) -> Sequence[Message]:
        """Return the records that formatting wrote for the first leader, or the default ones."""
        directory = self.directory.removesuffix(f"/{METADATA_PARTITION}")
        try:
            return decode_snapshot(files.read(f"{directory}/{BOOTSTRAP_FILE}")).records
        except FileNotFoundError:
            return feature_records(DEFAULT_LEVELS)

    # The log, as the raft core uses it (`RaftLog`).

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._log.log_end_offset

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def last_epoch(self) -> int:
        newest = self._newest()
        epochs = self._log.leader_epochs
        return max(epochs.latest_epoch, 0 if newest is None else newest.epoch)

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        entries = self._log.leader_epochs.entries
        higher = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        end = entries[higher].start_offset if higher < len(entries) else self.end_offset
        if higher:
            return OffsetAndEpoch(end, entries[higher - 1].epoch)
        oldest = self.oldest_snapshot
        return OffsetAndEpoch(self.start_offset, min(epoch, oldest.epoch if oldest else 0))

    def append(self, batches: memoryview) -> None:
        append_as_is(self._log, batches, self._clock.now_ms())

    def read(self, offset: int, size_max: int) -> bytes:
        return self._log.read(offset, min(size_max, _READ_SIZE), self.end_offset).read()

    def truncate(self, end_offset: int) -> None:
        self._log.truncate_to(end_offset)

    @property
    def oldest_snapshot(self) -> OffsetAndEpoch | None:
        with_records = (one for one in self.snapshots if one != FORMATTED)
        oldest = next(with_records, None)
        return None if oldest is None else OffsetAndEpoch(*oldest)

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        newest = self._newest()
        return None if newest is None else OffsetAndEpoch(*newest)

    def snapshot_size(self, snapshot: OffsetAndEpoch) -> int | None:
        if SnapshotId(*snapshot) not in self.snapshots:
            return None
        return files.file_size(snapshot_path(self.directory, SnapshotId(*snapshot)))

    def read_snapshot(self, snapshot: OffsetAndEpoch, position: int, size_max: int) -> bytes:
        path = snapshot_path(self.directory, SnapshotId(*snapshot))
        return files.read_part(path, position, size_max)

    def receive_snapshot(self, snapshot: OffsetAndEpoch, position: int, data: bytes) -> None:
        if position == 0:
            if self._received is not None:
                self._received.discard()
            self._received = ReceivedSnapshot(self.directory, SnapshotId(*snapshot))
        assert self._received is not None, "a snapshot begins at position 0"
        self._received.write(position, data)

    def install_snapshot(self, snapshot: OffsetAndEpoch) -> Sequence[Message]:
        assert self._received is not None, "a snapshot is received before it is installed"
        control = self._received.decode().control
        self._received.keep()
        self._received = None
        installed = SnapshotId(*snapshot)
        self.snapshots = [one for one in self.snapshots if one < installed]
        self.snapshots.append(installed)
        self._log.truncate_fully_and_start_at(installed.end_offset)
        for older in self.snapshots[:-1]:
            delete_snapshot(self.directory, older)
        self.snapshots = [installed]
        self._snapshot_ms = self._clock.now_ms()
        return control

    # Writing.

    @property
    def high_watermark(self) -> int:
        """The offset before which all records are committed, as far as reported here."""
        return self._log.high_watermark

    def commit(self, end_offset: int) -> None:
        """Note that the quorum has committed all records before an offset."""
        self._log.advance_high_watermark(end_offset)

    def prepare(
        self, records: Sequence[VersionedRecord], epoch: int, now_ms: int
    ) -> list[PreparedBatch]:
        """Encode records as one batch, or as several if followers would reject its size."""
        prepared = []
        for first in range(0, len(records), _RECORDS_PER_BATCH):
            some = records[first : first + _RECORDS_PER_BATCH]
            offset = self.end_offset + first
            batch = MetadataBatch(
                offset,
                offset + len(some) - 1,
                epoch,
                now_ms,
                False,
                [record.message for record in some],
            )
            data = encode_batch(some, offset, epoch, now_ms)
            if len(data) > BATCH_SIZE_MAX:
                raise PolicyViolation(
                    f"the change would take {len(data):,} bytes of metadata records, and one batch "
                    f"may have {BATCH_SIZE_MAX:,}; split it into several requests"
                )
            prepared.append(PreparedBatch(data, batch))
        return prepared

    def plan_flush(self) -> FlushPlan:
        return self._log.plan_flush()

    def flushed(self, plan: FlushPlan) -> None:
        """Note that a plan has run, and nothing was truncated meanwhile."""
        self._log.flushed(plan, self._clock.now_ms())

    @property
    def has_failed(self) -> bool:
        """True after a write that failed for another reason than a full disk."""
        return self._log.failure is not None

    def fail(self, error: OSError) -> None:
        self._log.fail(error)

    def close(self) -> None:
        self._log.close()

    # Snapshots.

    def has_grown(self) -> bool:
        """Return whether a snapshot is due because the log after the last one has grown.

        The limit is below Kafka's 20 MiB, because replay is slower in Python.
        """
        grown = self._log.size_bytes - self._bytes_at_snapshot
        acceptable = max(_REPLAY_BYTES_MAX, self._snapshot_size)
        return grown >= min(acceptable, self._settings.record_bytes_between_snapshots)

    def has_aged(self, now_ms: int) -> bool:
        """Return whether a snapshot is due because the last one is old and records follow it."""
        if self.snapshots and self.snapshots[-1].end_offset >= self.high_watermark:
            return False
        interval_ms = self._settings.snapshot_interval_ms
        return 0 < interval_ms <= now_ms - self._snapshot_ms

    def plan_snapshot(
        self, image: MetadataImage, history: VoterHistory, now_ms: int
    ) -> SnapshotPlan:
        """Plan a snapshot of a committed image, which ends at the end of a batch."""
        assert image.offset < self.high_watermark, "a snapshot holds committed records only"
        self._snapshot_ms = now_ms
        entry = history.at(image.offset + 1)
        return SnapshotPlan(
            directory=self.directory,
            id=SnapshotId(image.offset + 1, image.epoch),
            image=image,
            voters=entry.voters.record(),
            kraft_version=entry.kraft_version,
            now_ms=now_ms,
            log_size_bytes=self._log.size_bytes,
        )

    def snapshot_taken(self, plan: SnapshotPlan) -> None:
        """Register a written snapshot, and roll the log: a start reads only the new segment.

        A snapshot of the leader may have replaced the log in the meantime.
        """
        if self.snapshots and plan.id <= self.snapshots[-1]:
            if plan.id not in self.snapshots:
                delete_snapshot(self.directory, plan.id)
            return
        self.snapshots.append(plan.id)
        self._snapshot_size = files.file_size(snapshot_path(self.directory, plan.id))
        self._bytes_at_snapshot = plan.log_size_bytes
        self._log.roll()
        _log.info("metadata snapshot written", extra={"snapshot": plan.id.file_name})

    def clean(self, now_ms: int) -> None:
        """Delete the oldest snapshots, and the log before them, beyond the retention limits."""
        while (
            len(self.snapshots) > 1
            and self.snapshots[1].end_offset <= self.high_watermark
            and self._is_beyond_retention(now_ms)
        ):
            oldest = self.snapshots.pop(0)
            delete_snapshot(self.directory, oldest)
            before = self._log.size_bytes
            self._log.delete_records_before(self.snapshots[0].end_offset)
            self._bytes_at_snapshot -= before - self._log.size_bytes

    def _is_beyond_retention(self, now_ms: int) -> bool:
        paths = [snapshot_path(self.directory, snapshot) for snapshot in self.snapshots]
        size = self._log.size_bytes + sum(map(files.file_size, paths))
        is_old = now_ms - files.modified_ms(paths[0]) > self._settings.retention_ms
        is_large = size > self._settings.retention_bytes >= 0
        return is_large or (is_old and self._settings.retention_ms >= 0)
