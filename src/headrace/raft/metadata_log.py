"""`__cluster_metadata-0` of a node that is its own quorum.

With one voter there is no one to ask: what this node has synced is committed. Everything on disk
is nevertheless as any KRaft quorum has it, epochs and voters included, so a real one can take
over from these files.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from headrace.errors import HeadraceError, PolicyViolation
from headrace.metadata.features import DEFAULT_LEVELS
from headrace.metadata.image import Endpoint, MetadataImage
from headrace.metadata.image_records import feature_records
from headrace.metadata.loader import MetadataLoader
from headrace.metadata.records import (
    BATCH_SIZE_MAX,
    CorruptMetadata,
    MetadataBatch,
    VersionedRecord,
    decode_batches,
    encode_batch,
    encode_control_batch,
)
from headrace.metadata.snapshots import FORMATTED, SnapshotId, decode_snapshot
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC_ID
from headrace.protocol.schemas.records.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    VotersRecord,
)
from headrace.protocol.uuids import Uuid
from headrace.raft.formatting import (
    BOOTSTRAP_FILE,
    DYNAMIC_VOTERS,
    METADATA_PARTITION,
    voters_record,
)
from headrace.raft.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from headrace.raft.snapshot_files import (
    SnapshotPlan,
    delete_leftovers,
    delete_snapshot,
    list_snapshots,
    snapshot_path,
)
from headrace.runtime import files
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


class NotAQuorumOfOne(HeadraceError):
    """A directory whose quorum has other voters than this node."""


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
    """The log, its snapshots and its epoch; the event loop's thread owns it."""

    def __init__(
        self, directory: str, node_id: int, directory_id: Uuid, settings: MetadataLogSettings
    ) -> None:
        self.directory = f"{directory}/{METADATA_PARTITION}"
        self.node_id = node_id
        self.directory_id = directory_id
        self.leader_epoch = 0
        self.kraft_version = 0
        self.voters: VotersRecord | None = None
        self.snapshots: list[SnapshotId] = []
        self._settings = settings
        self._state = QuorumState()
        self._voters_are_in_log = False
        self._bytes_at_snapshot = 0
        self._snapshot_size = 0
        self._snapshot_ms = 0
        self._log: Log

    # Opening.

    @classmethod
    def open(
        cls,
        directory: str,
        node_id: int,
        directory_id: Uuid,
        *,
        settings: MetadataLogSettings | None = None,
        resources: Resources | None = None,
    ) -> "MetadataLog":
        """Open the metadata log below a log directory, repairing what a crash has left.

        Records before the newest snapshot are not looked at again: they were synced long ago,
        and the snapshot stands for them.
        """
        log = cls(directory, node_id, directory_id, settings or MetadataLogSettings())
        delete_leftovers(log.directory)
        log.snapshots = list_snapshots(log.directory)
        newest = log.snapshots[-1] if log.snapshots else FORMATTED
        log._state = read_quorum_state(log.directory)
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
        return log

    def _write_topic_id(self) -> None:
        path = f"{self.directory}/{PARTITION_METADATA}"
        if not files.exists(path):
            files.replace_file(path, encode_partition_metadata(METADATA_TOPIC_ID))

    def _align(self, newest: SnapshotId) -> None:
        """Bring log and snapshots together, where one of them is ahead of the other."""
        log = self._log
        is_ahead = (newest.epoch, newest.end_offset) > (
            log.leader_epochs.latest_epoch,
            log.log_end_offset,
        )
        if newest != FORMATTED and is_ahead:
            log.truncate_fully_and_start_at(newest.end_offset)
        for snapshot in [one for one in self.snapshots if one.end_offset < log.log_start_offset]:
            self.snapshots.remove(snapshot)
            delete_snapshot(self.directory, snapshot)
        if log.log_start_offset > 0 and not self.snapshots:
            raise CorruptMetadata(
                f"{self.directory} begins at offset {log.log_start_offset}, and no snapshot tells "
                "what came before"
            )

    def load(self, loader: MetadataLoader) -> None:
        """Replay the newest snapshot and what the log has after it."""
        offset = self._log.log_start_offset
        if self.snapshots:
            newest = self.snapshots[-1]
            self._load_snapshot(newest, loader)
            offset = newest.end_offset
        self._bytes_at_snapshot = self._log.size_bytes
        while offset < self._log.log_end_offset:
            data = self._log.read(offset, _READ_SIZE, self._log.log_end_offset).read()
            self._bytes_at_snapshot -= len(data)
            for batch in decode_batches(data):
                if batch.is_control:
                    self._note_control(batch.records, in_log=True)
                loader.replay(batch)
                offset = batch.last_offset + 1
        self._check_voters()

    def _load_snapshot(self, snapshot_id: SnapshotId, loader: MetadataLoader) -> None:
        path = snapshot_path(self.directory, snapshot_id)
        data = files.read(path)
        try:
            snapshot = decode_snapshot(data)
        except CorruptMetadata as error:
            raise CorruptMetadata(f"{path}: {error}") from error
        self._snapshot_size = len(data)
        self._snapshot_ms = files.modified_ms(path)
        control: list[Message] = []
        if snapshot.kraft_version is not None:
            control.append(KRaftVersionRecord(0, snapshot.kraft_version))
        if snapshot.voters is not None:
            control.append(snapshot.voters)
        self._note_control(control, in_log=snapshot_id != FORMATTED)
        if snapshot_id != FORMATTED:
            loader.replay_snapshot(
                snapshot.records,
                end_offset=snapshot_id.end_offset,
                epoch=snapshot_id.epoch,
                timestamp_ms=snapshot.timestamp_ms,
            )

    def _note_control(self, records: Sequence[Message], *, in_log: bool) -> None:
        """Voters count from the moment they are written."""
        for record in records:
            if isinstance(record, KRaftVersionRecord):
                self.kraft_version = record.kraft_version
            elif isinstance(record, VotersRecord):
                self.voters = record
                self._voters_are_in_log = in_log

    def _check_voters(self) -> None:
        if self.voters is not None:
            ids = [voter.voter_id for voter in self.voters.voters]
            mine = [
                voter
                for voter in self.voters.voters
                if voter.voter_id == self.node_id and voter.voter_directory_id == self.directory_id
            ]
        else:
            ids = list(self._state.static_voters or (self.node_id,))
            mine = []
        if ids != [self.node_id] or (self.voters is not None and not mine):
            raise NotAQuorumOfOne(
                f"the voters of {self.directory} are nodes {ids}; this version runs a quorum of "
                f"this node alone, which is node {self.node_id}, and cannot join another"
            )

    def read_bootstrap(self) -> Sequence[Message]:
        """The records that formatting left for the first leader, or the usual ones."""
        directory = self.directory.removesuffix(f"/{METADATA_PARTITION}")
        try:
            return decode_snapshot(files.read(f"{directory}/{BOOTSTRAP_FILE}")).records
        except FileNotFoundError:
            return feature_records(DEFAULT_LEVELS)

    # Leading.

    def take_over(self, endpoints: Sequence[Endpoint], now_ms: int) -> MetadataBatch:
        """Lead the next epoch: on disk first, then said in the log, with the voters if new there.

        `endpoints` are those of this node's controller listeners, if it has any open.
        """
        known = (
            self._state.leader_epoch,
            self._log.leader_epochs.latest_epoch,
            self.snapshots[-1].epoch if self.snapshots else 0,
        )
        self.leader_epoch = max(known) + 1
        is_dynamic = self.kraft_version >= DYNAMIC_VOTERS
        self._state = QuorumState(
            leader_id=self.node_id,
            leader_epoch=self.leader_epoch,
            static_voters=None if is_dynamic else (self.node_id,),
        )
        write_quorum_state(self.directory, self._state)
        voters = [LeaderChangeMessageVoter(self.node_id)]
        messages: list[Message] = [LeaderChangeMessage(0, self.node_id, voters, voters)]
        if is_dynamic and self._renew_voters(endpoints):
            assert self.voters is not None, "dynamic voters are known"
            messages += [KRaftVersionRecord(0, self.kraft_version), self.voters]
            self._voters_are_in_log = True
        offset = self.end_offset
        data = encode_control_batch(messages, offset, self.leader_epoch, now_ms)
        append_as_is(self._log, memoryview(data), now_ms)
        return MetadataBatch(offset, self.end_offset - 1, self.leader_epoch, now_ms, True, messages)

    def _renew_voters(self, endpoints: Sequence[Endpoint]) -> bool:
        """Whether the log must be told the voters: for the first time, or at a new address."""
        if endpoints:
            renewed = voters_record(self.node_id, self.directory_id, endpoints[0])
            if renewed != self.voters:
                self.voters = renewed
                return True
        return not self._voters_are_in_log

    # Writing.

    @property
    def end_offset(self) -> int:
        """Where the next record goes."""
        return self._log.log_end_offset

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def high_watermark(self) -> int:
        """Everything before it is committed, that is, synced here."""
        return self._log.high_watermark

    def prepare(self, records: Sequence[VersionedRecord], now_ms: int) -> list[PreparedBatch]:
        """Records as batches: one, unless there are too many for any follower to take at once."""
        prepared = []
        for first in range(0, len(records), _RECORDS_PER_BATCH):
            some = records[first : first + _RECORDS_PER_BATCH]
            offset = self.end_offset + first
            batch = MetadataBatch(
                offset,
                offset + len(some) - 1,
                self.leader_epoch,
                now_ms,
                False,
                [record.message for record in some],
            )
            data = encode_batch(some, offset, self.leader_epoch, now_ms)
            if len(data) > BATCH_SIZE_MAX:
                raise PolicyViolation(
                    f"the change would take {len(data):,} bytes of metadata records, and one batch "
                    f"may have {BATCH_SIZE_MAX:,}; split it into several requests"
                )
            prepared.append(PreparedBatch(data, batch))
        return prepared

    def append(self, prepared: Sequence[PreparedBatch]) -> None:
        """Write batches behind each other: all of them, or on an error none."""
        data = prepared[0].data
        for one in prepared[1:]:
            data += one.data
        append_as_is(self._log, memoryview(data), prepared[-1].batch.timestamp_ms)

    def plan_flush(self) -> FlushPlan:
        return self._log.plan_flush()

    def flushed(self, plan: FlushPlan, now_ms: int) -> None:
        """What is synced is committed."""
        self._log.flushed(plan, now_ms)
        self._log.advance_high_watermark(plan.end_offset)

    def fail(self, error: OSError) -> None:
        self._log.fail(error)

    def close(self) -> None:
        self._log.close()

    # Snapshots.

    def has_grown(self) -> bool:
        """Whether a snapshot is due for the size of what came after the last one.

        Earlier than Kafka would, whose 20 MiB of records it reads in a blink and we in seconds.
        """
        grown = self._log.size_bytes - self._bytes_at_snapshot
        acceptable = max(_REPLAY_BYTES_MAX, self._snapshot_size)
        return grown >= min(acceptable, self._settings.record_bytes_between_snapshots)

    def has_aged(self, now_ms: int) -> bool:
        """Whether a snapshot is due for the age of the last one, given there is any news."""
        if self.snapshots and self.snapshots[-1].end_offset >= self.high_watermark:
            return False
        interval_ms = self._settings.snapshot_interval_ms
        return 0 < interval_ms <= now_ms - self._snapshot_ms

    def plan_snapshot(self, image: MetadataImage, now_ms: int) -> SnapshotPlan:
        """A snapshot of a committed image, which ends where a batch ends."""
        assert image.offset < self.high_watermark, "a snapshot holds committed records only"
        self._snapshot_ms = now_ms
        return SnapshotPlan(
            directory=self.directory,
            id=SnapshotId(image.offset + 1, image.epoch),
            image=image,
            voters=self.voters,
            kraft_version=self.kraft_version,
            now_ms=now_ms,
            log_size_bytes=self._log.size_bytes,
        )

    def snapshot_taken(self, plan: SnapshotPlan) -> None:
        """Count a snapshot that is on disk, and begin a segment, so that starts read only that."""
        self.snapshots.append(plan.id)
        self._snapshot_size = files.file_size(snapshot_path(self.directory, plan.id))
        self._bytes_at_snapshot = plan.log_size_bytes
        self._log.roll()
        _log.info("wrote the metadata snapshot %s", plan.id.file_name)

    def clean(self, now_ms: int) -> None:
        """Delete the oldest snapshots, and the log before the next, beyond the retention limits."""
        while len(self.snapshots) > 1 and self._is_beyond_retention(now_ms):
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
