"""The log of one partition: batches appended at one end, read anywhere, forgotten at the other.

A log is a row of segments, the last of which is active. All of it belongs to the event loop's
thread; what may block for long (syncs, unlinking, compaction) is handed out as plans that
threads carry out on files nobody changes.

The hot paths are `append_as_leader` and `read`. An append costs one header check, one write and a
few integers; a read costs a bisect in memory and usually no look at the file: the bytes
themselves go from the page cache to the socket.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os.path import dirname
from struct import Struct
from typing import NoReturn

import msgspec

from headrace.errors import KafkaStorageError, OffsetOutOfRange, RecordListTooLarge
from headrace.protocol.batches import CONTROL, LOG_APPEND_TIME, LOG_OVERHEAD, BatchHeader
from headrace.protocol.uuids import ZERO, Uuid
from headrace.runtime import files
from headrace.runtime.files import OpenFile
from headrace.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    encode_partition_metadata,
)
from headrace.storage.config import LogConfig
from headrace.storage.flushing import FlushPlan
from headrace.storage.indexes import AbortedTransaction
from headrace.storage.leader_epochs import LeaderEpochs
from headrace.storage.log_files import LogFiles
from headrace.storage.producer_replay import marker_of, replay_segments
from headrace.storage.producer_state import Origin, ProducerStates, RememberedBatch
from headrace.storage.resources import Resources
from headrace.storage.rolling import RollClock
from headrace.storage.segment import RELATIVE_OFFSET_MAX, Segment
from headrace.storage.segments import segment_index
from headrace.storage.timestamps import TimestampOffset, find_latest, find_timestamp
from headrace.storage.topic_partition import TopicPartition
from headrace.storage.validation import check_batches, check_replicated, usual_limits

_OFFSET_AND_EPOCH = Struct(">qii")
_UNKNOWN_EPOCH = -2


class AppendInfo(msgspec.Struct, frozen=True, gc=False):
    """What a producer is told of its batches."""

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool = False


class LogSlice(msgspec.Struct, gc=False):
    """Whole batches in one segment file, from the one that holds the offset asked for.

    It keeps the file open while it is being sent, even if the segment is deleted meanwhile.
    """

    file: OpenFile | None
    position: int
    size: int

    def fileno(self) -> int:
        assert self.file is not None, "an empty slice has no file"
        return self.file.fd

    def read(self) -> bytes:
        return files.pread(self.file.fd, self.size, self.position) if self.file else b""


class Log:
    """One partition's records and what is known about them."""

    __slots__ = (
        "_config",
        "_files",
        "_leader_epochs",
        "_producers",
        "failure",
        "high_watermark",
        "last_flush_ms",
        "latest_epoch",
        "log_end_offset",
        "log_start_offset",
        "on_failure",
        "recovery_point",
        "roll_clock",
        "segments",
        "topic_id",
        "topic_partition",
        "usual_limits",
        "writable",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: LogConfig,
        log_files: LogFiles,
        *,
        topic_id: Uuid = ZERO,
        log_start_offset: int = 0,
        log_end_offset: int = 0,
        recovery_point: int = 0,
        high_watermark: int = 0,
        producers: ProducerStates | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.segments = log_files.segments
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = high_watermark
        self.recovery_point = recovery_point
        self.last_flush_ms = 0
        # Mirrors `leader_epochs.latest_epoch`; unknown until the first append asks.
        self.latest_epoch = _UNKNOWN_EPOCH
        self.failure: str | None = None
        self._config = config
        self._files = log_files
        self.usual_limits = usual_limits(config)
        self.writable: Segment | None = None
        self.roll_clock = RollClock()
        self._leader_epochs: LeaderEpochs | None = None
        self._producers = producers
        if producers is not None:
            producers.on_high_watermark(high_watermark)
        # Tells somebody, the log's directory, that the disk below has failed.
        self.on_failure: Callable[[OSError], None] | None = None

    @classmethod
    def create(
        cls,
        topic_partition: TopicPartition,
        directory: str,
        config: LogConfig,
        resources: Resources | None = None,
        *,
        topic_id: Uuid = ZERO,
        start_offset: int = 0,
    ) -> "Log":
        """Make the directory of a new partition, with its first, empty segment.

        The topic's id is written before anything else, because a directory without it is not
        served again. It is synced with the first flush, not here: a topic may have a thousand
        partitions.
        """
        files.mkdir(directory)
        try:
            if topic_id != ZERO:
                content = encode_partition_metadata(topic_id)
                files.write(f"{directory}/{PARTITION_METADATA}", content)
            log_files = LogFiles(directory, [], resources or Resources())
            log_files.segments.append(log_files.create_segment(start_offset, config))
        except OSError:
            files.remove_tree(directory)
            raise
        log = cls(
            topic_partition,
            config,
            log_files,
            topic_id=topic_id,
            log_start_offset=start_offset,
            log_end_offset=start_offset,
            recovery_point=start_offset,
            high_watermark=start_offset,
        )
        log.writable = log_files.segments[0]
        log._producers = ProducerStates(start_offset)
        log._leader_epochs = LeaderEpochs(f"{directory}/{LEADER_EPOCHS}")
        log_files.note_unsynced(dirname(directory), directory, f"{directory}/{PARTITION_METADATA}")
        return log

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, {self.log_start_offset}-{self.log_end_offset})"

    # Appending

    def append_as_leader(
        self,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
    ) -> AppendInfo:
        """Append one batch and give its records the next offsets.

        The batch is checked, its offset and epoch are patched where it lies, and one write puts
        it into the file. Whatever goes wrong, nothing of it stays behind.
        """
        if self.failure is not None:
            self._refuse()
        records, header = check_batches(
            records, self._config, now_ms, from_client=origin is Origin.CLIENT
        )
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        producers = None
        if header.producer_id >= 0:
            producers = self._producers or self.producers
            if origin is not Origin.CLIENT:
                self._check_coordinator(records, header)
            elif (duplicate := producers.check(header)) is not None:
                return self._answer_duplicate(duplicate)
        segment = self.writable or self._warm(now_ms)
        size = header.size
        max_timestamp = header.max_timestamp
        if (
            segment.size + size > self._config.segment_bytes
            or max_timestamp > self.roll_clock.deadline
            or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
            or segment.indexes_are_full
        ):
            segment = self._roll_if_due(segment, size, max_timestamp, last_offset, now_ms)
        if leader_epoch != self.latest_epoch:
            self.begin_epoch(leader_epoch)
        _OFFSET_AND_EPOCH.pack_into(records, 0, base_offset, size - LOG_OVERHEAD, leader_epoch)
        try:
            position = segment.write(records)
        except OSError as error:
            raise self.storage_error(error) from error
        segment.note_batch(position, size, last_offset, max_timestamp)
        self.log_end_offset = last_offset + 1
        if position == 0:
            self.roll_clock.start(max_timestamp, now_ms, self._config)
        if producers is not None:
            if header.attributes & CONTROL:
                self._note_marker(records, header, base_offset, segment)
            else:
                producers.replay(header, base_offset)
        return AppendInfo(
            base_offset,
            last_offset,
            max_timestamp if header.attributes & LOG_APPEND_TIME else -1,
            self.log_start_offset,
        )

    def append_as_is(self, records: memoryview, now_ms: int = 0) -> None:
        """Append batches that have their offsets and epochs: from a leader, or of the raft log."""
        if self.failure is not None:
            self._refuse()
        headers = check_replicated(records, self.log_end_offset)
        if not headers:
            return
        # Before the write: what loads the producers now must not meet these batches already.
        producers = self._producers or self.producers
        segment = self.writable or self._warm(now_ms)
        max_timestamp = max(header.max_timestamp for header in headers)
        segment = self._roll_if_due(
            segment, len(records), max_timestamp, headers[-1].last_offset, now_ms
        )
        try:
            position = segment.write(records)
        except OSError as error:
            raise self.storage_error(error) from error
        if position == 0:
            self.roll_clock.start(headers[0].max_timestamp, now_ms, self._config)
        start = 0
        for header in headers:
            segment.note_batch(
                position + start, header.size, header.last_offset, header.max_timestamp
            )
            if header.leader_epoch != self.latest_epoch:
                self._assign_epoch(header.leader_epoch, header.base_offset)
            self.log_end_offset = header.next_offset
            if header.producer_id >= 0:
                if header.is_control:
                    batch = records[start : start + header.size]
                    self._note_marker(batch, header, header.base_offset, segment)
                else:
                    producers.replay(header, header.base_offset)
            start += header.size

    def _check_coordinator(self, records: memoryview, header: BatchHeader) -> None:
        """Coordinators write without sequence numbers, and they end transactions."""
        marker = marker_of(records) if header.is_control else None
        if marker is not None:
            self.producers.check_marker(header, marker)
        else:
            self.producers.check_epoch(header)

    def _note_marker(
        self, batch: memoryview, header: BatchHeader, base_offset: int, segment: Segment
    ) -> None:
        marker = marker_of(batch)
        if marker is not None:
            aborted = self.producers.replay_marker(header, marker, base_offset)
            if aborted is not None:
                segment.note_aborted(aborted)

    def _answer_duplicate(self, duplicate: RememberedBatch) -> AppendInfo:
        uses_append_time = self._config.message_timestamp_type == "LogAppendTime"
        return AppendInfo(
            duplicate.first_offset,
            duplicate.last_offset,
            duplicate.timestamp if uses_append_time else -1,
            self.log_start_offset,
            True,
        )

    def begin_epoch(self, leader_epoch: int) -> None:
        """A leadership begins where the log ends; called at its start or by its first append."""
        self._assign_epoch(leader_epoch, self.log_end_offset)

    def _assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        with self._on_disk():
            self.leader_epochs.assign(leader_epoch, start_offset)
        self._files.note_unsynced(self._epochs_path)
        self.latest_epoch = leader_epoch

    def _warm(self, now_ms: int) -> Segment:
        """Make the active segment ready for the first append after a start."""
        segment = self.segments[-1]
        with self._on_disk():
            segment.warm()
            if segment.size:
                self.roll_clock.start(segment.first_timestamp(), now_ms, self._config)
        self.latest_epoch = self.leader_epochs.latest_epoch
        self.writable = segment
        return segment

    # Rolling

    def _roll_if_due(
        self, segment: Segment, size: int, max_timestamp: int, last_offset: int, now_ms: int
    ) -> Segment:
        config = self._config
        if size > config.segment_bytes:
            raise RecordListTooLarge(
                f"{size} bytes do not fit a segment of {self.topic_partition}, "
                f"which may have {config.segment_bytes} (segment.bytes)"
            )
        if (
            (segment.size > 0 and self.roll_clock.is_over(max_timestamp, now_ms, config))
            or segment.size + size > config.segment_bytes
            or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
            or segment.indexes_are_full
        ):
            return self.roll()
        return segment

    def roll(self) -> Segment:
        """Begin a new segment at the end of the log, unless the active one is empty.

        The old one's indexes are final from here on, and a snapshot of the producers goes with
        the new one. If the disk is full the log stays as it was, and the next append tries again.
        """
        active = self.segments[-1]
        if active.size > 0 or active.base_offset != self.log_end_offset:
            with self._on_disk():
                active = self._files.roll(self.log_end_offset, self.producers, self._config)
            self.writable = active
            self.roll_clock.stop()
        return active

    # Reading

    def read(
        self, offset: int, size_max: int, end_offset: int, *, at_least_one: bool = True
    ) -> LogSlice:
        """Whole batches from the one that holds an offset, none of which reaches `end_offset`.

        The end is the high watermark for consumers, the last stable offset for careful ones and
        the log's end for replicas. A batch larger than `size_max` is given whole if it is the
        first, unless `at_least_one` is off; the slice ends with its segment at the latest.
        """
        if self.failure is not None:
            self._refuse()
        log_end_offset = self.log_end_offset
        if offset < self.log_start_offset or offset > log_end_offset:
            raise OffsetOutOfRange(
                f"{self.topic_partition} holds the offsets {self.log_start_offset} to "
                f"{log_end_offset}, and not {offset}"
            )
        segment = self.segments[-1]
        if offset >= end_offset:
            if offset == log_end_offset:
                segment.remember(offset, segment.size)
            return LogSlice(None, 0, 0)
        try:
            if offset < segment.base_offset:
                return self._read_sealed(offset, size_max, end_offset, at_least_one)
            position = segment.locate(offset)
            end_position = segment.size
            if end_offset < log_end_offset:
                end_position = segment.locate(end_offset)
            if end_position - position > size_max:
                end_position = segment.boundary(
                    position, end_position, size_max, at_least_one=at_least_one
                )
            elif end_offset >= log_end_offset:
                segment.remember(log_end_offset, end_position)
            return LogSlice(segment.open(), position, end_position - position)
        except OSError as error:
            raise self.storage_error(error) from error

    def _read_sealed(
        self, offset: int, size_max: int, end_offset: int, at_least_one: bool
    ) -> LogSlice:
        at = segment_index(self.segments, offset)
        segment = self.segments[at]
        position = segment.locate(offset)
        while position >= segment.size and at + 1 < len(self.segments):
            # Compaction left nothing of the rest of this segment.
            at += 1
            segment = self.segments[at]
            position = 0
        end_position = segment.size
        is_last = at + 1 == len(self.segments)
        if end_offset < (self.log_end_offset if is_last else self.segments[at + 1].base_offset):
            end_position = max(position, segment.locate(end_offset))
        end_position = segment.boundary(position, end_position, size_max, at_least_one=at_least_one)
        return LogSlice(segment.open(), position, end_position - position)

    def aborted_transactions(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """What a read_committed consumer must skip among these records."""
        found: list[AbortedTransaction] = []
        for segment in self.segments[max(0, segment_index(self.segments, offset)) :]:
            found.extend(segment.transactions.overlapping(offset, end_offset))
            if segment.transactions.covers(end_offset):
                break
        return found

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record that is at least as late as a timestamp."""
        with self._on_disk():
            return find_timestamp(self.segments, self.log_start_offset, timestamp)

    def max_timestamp(self) -> TimestampOffset | None:
        """The latest record, the first of them if there are several."""
        with self._on_disk():
            return find_latest(self.segments)

    def earliest(self) -> TimestampOffset:
        """Where the log starts, and the epoch of what is there."""
        first = self.leader_epochs.earliest
        known = first is not None and first.start_offset <= self.log_start_offset
        return TimestampOffset(-1, self.log_start_offset, first.epoch if first and known else -1)

    # What is committed, and what is stable

    def advance_high_watermark(self, offset: int) -> None:
        """Records below this offset are committed; it never goes back but by truncation."""
        if offset > self.high_watermark:
            end_offset = self.log_end_offset
            self.high_watermark = offset if offset < end_offset else end_offset
            if self._producers is not None and not self._producers.is_stable:
                self._producers.on_high_watermark(self.high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed consumers stop: at the first transaction whose end is not known."""
        producers = self._producers or self.producers
        if producers.is_stable:
            return self.high_watermark
        unstable = producers.first_unstable_offset()
        assert unstable is not None
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    @property
    def producers(self) -> ProducerStates:
        if self._producers is None:
            states = self._files.snapshots.load() or ProducerStates(self.log_start_offset)
            if states.end_offset < self.log_end_offset:
                first = max(0, segment_index(self.segments, states.end_offset))
                replay_segments(states, self.segments[first:], self.log_end_offset)
            states.on_high_watermark(self.high_watermark)
            self._producers = states
        return self._producers

    @property
    def leader_epochs(self) -> LeaderEpochs:
        if self._leader_epochs is None:
            epochs = LeaderEpochs.load(self._epochs_path)
            # The file may be ahead of the records or behind the deletions that a crash kept.
            epochs.truncate_from_end(self.log_end_offset)
            epochs.truncate_from_start(self.log_start_offset)
            self._leader_epochs = epochs
        return self._leader_epochs

    @property
    def _epochs_path(self) -> str:
        return f"{self._files.directory}/{LEADER_EPOCHS}"

    # Configuration, place, size

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        """New settings count from the next append on; they change no segment that is sealed."""
        self.roll_clock.move(config.roll_ms - self._config.roll_ms)
        self._config = config
        self.usual_limits = usual_limits(config)
        self.segments[-1].index_interval_bytes = config.index_interval_bytes

    @property
    def directory(self) -> str:
        return self._files.directory

    @property
    def resources(self) -> Resources:
        return self._files.resources

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    # Flushing

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    def flush_needed(self, now_ms: int) -> bool:
        """Whether `flush.messages` or `flush.ms` asks for a sync of what was appended."""
        unflushed = self.log_end_offset - self.recovery_point
        config = self._config
        return unflushed > 0 and (
            unflushed >= config.flush_messages or now_ms - self.last_flush_ms >= config.flush_ms
        )

    def plan_due_flush(self, now_ms: int) -> FlushPlan | None:
        """What the topic's settings ask to sync, and sealed segments in any case.

        Syncing what is sealed moves the recovery point on, so that no start after a crash has more
        than the last segment to walk through.
        """
        if self.flush_needed(now_ms):
            return self.plan_flush()
        active_offset = self.segments[-1].base_offset
        if self.recovery_point < active_offset or (
            self._files.has_unsynced and len(self.segments) > 1
        ):
            return self.plan_flush(active_offset)
        return None

    @property
    def is_unsafe(self) -> bool:
        """Whether a power cut could take anything of it."""
        return self.log_end_offset > self.recovery_point or self._files.has_unsynced

    def plan_flush(self, end_offset: int | None = None) -> FlushPlan:
        """What to sync so that the log is safe up to an offset; `run` it in a thread."""
        end_offset = self.log_end_offset if end_offset is None else end_offset
        return self._files.plan_flush(self.recovery_point, end_offset)

    def flushed(self, plan: FlushPlan, now_ms: int) -> None:
        """Enter what a plan has made safe."""
        self.last_flush_ms = now_ms
        self.recovery_point = max(self.recovery_point, min(plan.end_offset, self.log_end_offset))

    def flush(self) -> None:
        """Sync all of it here and now, for those who may block."""
        with self._on_disk():
            plan = self.plan_flush()
            plan.run()
        self.flushed(plan, self.last_flush_ms)

    # Forgetting

    def delete_records_before(self, offset: int) -> int:
        """Move the start of the log; whole segments before it go. Returns the new start."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(
                f"{self.topic_partition} is committed up to {self.high_watermark}; "
                f"records before {offset} cannot be deleted"
            )
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self._forget_epochs_before_start()
            before = max(0, segment_index(self.segments, offset))
            self.delete_segments(self.segments[:before])
        return self.log_start_offset

    def _forget_epochs_before_start(self) -> None:
        with self._on_disk():
            self.leader_epochs.truncate_from_start(self.log_start_offset)
        self._files.note_unsynced(self._epochs_path)

    def delete_segments(self, oldest: Sequence[Segment]) -> None:
        """Drop the oldest segments, for retention and after `delete_records_before`.

        When they are all there are, a new, empty one takes their place first. The start of the
        log moves up to what is left.
        """
        if not oldest:
            return
        if oldest[-1] is self.segments[-1]:
            self.roll()
            if oldest[-1] is self.segments[-1]:
                oldest = oldest[:-1]  # It is empty: there is nothing to delete in it.
        assert list(oldest) == self.segments[: len(oldest)], "only the oldest segments may go"
        with self._on_disk():
            self._files.drop_first(len(oldest), self._config.file_delete_delay_ms)
        start_offset = self.segments[0].base_offset
        if start_offset > self.log_start_offset:
            self.log_start_offset = start_offset
            self._forget_epochs_before_start()

    def truncate_to(self, offset: int) -> None:
        """Cut off the records from an offset on: a follower does so when its leader says other."""
        if offset >= self.log_end_offset:
            return
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        with self._on_disk():
            self._files.truncate(offset, self._config.file_delete_delay_ms)
            self.leader_epochs.truncate_from_end(offset)
        self._end_at(offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget everything; the next record has this offset."""
        with self._on_disk():
            self._files.restart_at(offset, self._config)
            self.leader_epochs.clear()
        self.log_start_offset = offset
        self._end_at(offset)
        self.high_watermark = offset

    def _end_at(self, offset: int) -> None:
        """Bring everything that counts beyond the new end back to it."""
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.latest_epoch = self.leader_epochs.latest_epoch
        self._producers = None
        self.writable = None
        self.roll_clock.stop()

    def replace_segments(self, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        """Put what compaction made of some segments in their place."""
        with self._on_disk():
            self._files.replace(old, new, self._config.file_delete_delay_ms)

    # Ending

    def prepare_close(self) -> None:
        """Write what is still in memory only, so that the next start need not scan."""
        if self.failure is None:
            with self._on_disk():
                self.segments[-1].seal()
                if self.log_end_offset > self.log_start_offset:
                    self._files.take_snapshot(self.log_end_offset, self.producers)

    def release(self) -> None:
        """Let go of files and memory; the log is not used after this."""
        self._files.release()
        self.writable = None

    def close(self) -> None:
        """Leave a log behind that can be opened without recovery."""
        self.prepare_close()
        if self.failure is None and self.is_unsafe:
            self.flush()
        self.release()

    def move_directory(self, directory: str) -> None:
        """Rename the directory, to set the partition aside."""
        self._files.move(directory)
        if self._leader_epochs is not None:
            self._leader_epochs.moved(self._epochs_path)

    # Failing

    def fail(self, error: OSError) -> None:
        """The disk has failed: refuse everything from now on."""
        if self.failure is None:
            self.failure = str(error)
            self.release()
            if self.on_failure is not None:
                self.on_failure(error)

    def _refuse(self) -> NoReturn:
        raise KafkaStorageError(
            f"{self.topic_partition} is offline, since its log directory failed: {self.failure}"
        )

    @contextmanager
    def _on_disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.storage_error(error) from error

    def storage_error(self, error: OSError) -> KafkaStorageError:
        """What a client is told. A full disk passes; any other failure takes the log offline."""
        if not files.is_passing(error):
            self.fail(error)
        return KafkaStorageError(f"{self.topic_partition} cannot be used at the moment: {error}")

    def expire_producers(self, now_ms: int) -> None:
        if self._producers is not None:
            self._producers.expire(now_ms, self._config.producer_id_expiration_ms)
