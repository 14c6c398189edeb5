"""The log of one partition: batches appended at the end, read anywhere, deleted at the start.

A log is a list of segments, the last of which is active. A log belongs to the event loop's thread;
work that may block for long (syncs, unlinking, compaction) is returned as plans, which threads run
on files that do not change.

Appends are in `appending.py`. They and `read` are the hot paths: a read costs a bisect in memory
and usually no look at the file; the bytes themselves go from the page cache to the socket.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from headrace.errors import KafkaStorageError, OffsetOutOfRange
from headrace.protocol.uuids import ZERO, Uuid
from headrace.runtime import files
from headrace.storage.config import LogConfig
from headrace.storage.flushing import FlushPlan
from headrace.storage.indexes import AbortedTransaction
from headrace.storage.leader_epochs import LeaderEpochs
from headrace.storage.log_files import LogFiles
from headrace.storage.producer_state import ProducerStates
from headrace.storage.reading import LogSlice, end_of_slice, read_sealed
from headrace.storage.resources import Resources
from headrace.storage.rolling import RollClock
from headrace.storage.segment import Segment
from headrace.storage.segments import segment_index
from headrace.storage.timestamps import TimestampOffset, find_latest, find_timestamp
from headrace.storage.topic_partition import TopicPartition
from headrace.storage.validation import usual_limits

_UNKNOWN_EPOCH = -2


class Log:
    """One partition's records and their state."""

    __slots__ = (
        "_files",
        "config",
        "failure",
        "high_watermark",
        "last_flush_ms",
        "latest_epoch",
        "loaded_producers",
        "log_end_offset",
        "log_start_offset",
        "on_failure",
        "on_refusal",
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
        # Mirrors `leader_epochs.latest_epoch`; unknown until the first append.
        self.latest_epoch = _UNKNOWN_EPOCH
        self.failure: str | None = None
        self.config = config
        self.usual_limits = usual_limits(config)
        self.writable: Segment | None = None
        self.roll_clock = RollClock()
        self.loaded_producers = producers
        if producers is not None:
            producers.on_high_watermark(high_watermark)
        # Reports a failed disk to the log's directory.
        self.on_failure: Callable[[OSError], None] | None = None
        # Reports a full disk to the log's directory.
        self.on_refusal: Callable[[TopicPartition, OSError, int], None] | None = None
        self._files = log_files

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
        """The log of a new partition, with its directory and its first, empty segment."""
        log_files = LogFiles.create(
            directory,
            config,
            resources or Resources(),
            topic_id=topic_id,
            start_offset=start_offset,
        )
        log = cls(
            topic_partition,
            config,
            log_files,
            topic_id=topic_id,
            log_start_offset=start_offset,
            log_end_offset=start_offset,
            recovery_point=start_offset,
            high_watermark=start_offset,
            producers=ProducerStates(start_offset),
        )
        log.writable = log_files.segments[0]
        return log

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, {self.log_start_offset}-{self.log_end_offset})"

    # Growing

    def begin_epoch(self, leader_epoch: int) -> None:
        """Begin a leader epoch at the end of the log, at its start or at its first append."""
        self.assign_epoch(leader_epoch, self.log_end_offset)

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """Record the start offset of a leader epoch."""
        with self._on_disk():
            self.leader_epochs.assign(leader_epoch, start_offset)
        self._files.note_unsynced(self._files.epochs_path)
        self.latest_epoch = leader_epoch

    def warm(self, now_ms: int) -> Segment:
        """Make the active segment ready for the first append after a start."""
        segment = self.segments[-1]
        with self._on_disk():
            segment.warm()
            if segment.size:
                self.roll_clock.start(segment.first_timestamp(), now_ms, self.config)
        self.latest_epoch = self.leader_epochs.latest_epoch
        self.writable = segment
        return segment

    def roll(self) -> Segment:
        """Begin a new segment at the end of the log, unless the active one is empty.

        The old one's indexes are final from here on, and a snapshot of the producers goes with
        the new one. If the disk is full the log stays as it was, and the next append tries again.
        """
        active = self.segments[-1]
        if active.size > 0 or active.base_offset != self.log_end_offset:
            with self._on_disk():
                active = self._files.roll(self.log_end_offset, self.producers, self.config)
            self.writable = active
            self.roll_clock.stop()
        return active

    # Reading

    def read(
        self, offset: int, size_max: int, end_offset: int, *, at_least_one: bool = True
    ) -> LogSlice:
        """Whole batches from the one that holds an offset, none of which reaches `end_offset`.

        The end is the high watermark for consumers, the last stable offset for read_committed
        consumers and the log's end for replicas. A first batch larger than `size_max` is
        returned whole, unless `at_least_one` is off; the slice ends with its segment at the latest.
        """
        if self.failure is not None:
            self.refuse()
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
                return read_sealed(
                    self.segments,
                    log_end_offset,
                    offset,
                    size_max,
                    end_offset,
                    at_least_one=at_least_one,
                )
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

    def end_of(self, slice_: LogSlice, offset: int) -> int:
        """The offset after the last batch of a slice that was read from an offset."""
        with self._on_disk():
            return end_of_slice(self.segments, self.log_end_offset, slice_, offset)

    def aborted_transactions(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions among these records, for read_committed consumers."""
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

    # Committed and stable offsets

    def advance_high_watermark(self, offset: int) -> None:
        """Commit the records below this offset; only truncation moves it back."""
        if offset > self.high_watermark:
            end_offset = self.log_end_offset
            self.high_watermark = offset if offset < end_offset else end_offset
            if self.loaded_producers is not None and not self.loaded_producers.is_stable:
                self.loaded_producers.on_high_watermark(self.high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """The end for read_committed consumers: the start of the first open transaction."""
        producers = self.loaded_producers or self.producers
        if producers.is_stable:
            return self.high_watermark
        unstable = producers.first_unstable_offset()
        assert unstable is not None
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    @property
    def producers(self) -> ProducerStates:
        """The producers of this log; read from the disk on first use."""
        if self.loaded_producers is None:
            with self._on_disk():
                states = self._files.load_producers(self.log_start_offset, self.log_end_offset)
            states.on_high_watermark(self.high_watermark)
            self.loaded_producers = states
        return self.loaded_producers

    @property
    def producer_count(self) -> int:
        """The number of producers; zero before they are loaded."""
        return 0 if self.loaded_producers is None else len(self.loaded_producers.entries)

    def expire_producers(self, now_ms: int) -> None:
        if self.loaded_producers is not None:
            self.loaded_producers.expire(now_ms, self.config.producer_id_expiration_ms)

    @property
    def leader_epochs(self) -> LeaderEpochs:
        """The leader epochs; read from the disk on first use."""
        if self._files.epochs is not None:
            return self._files.epochs
        with self._on_disk():
            return self._files.load_epochs(self.log_start_offset, self.log_end_offset)

    # Configuration, place, size

    def reconfigure(self, config: LogConfig) -> None:
        """Apply new settings from the next append on; sealed segments do not change."""
        self.roll_clock.move(config.roll_ms - self.config.roll_ms)
        self.config = config
        self.usual_limits = usual_limits(config)
        self.segments[-1].index_interval_bytes = config.index_interval_bytes

    @property
    def directory(self) -> str:
        return self._files.directory

    def move_to(self, resources: Resources) -> None:
        """Join the shared resources of a node, after recovery in a thread."""
        self._files.move_to(resources)

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
        """Return whether `flush.messages` or `flush.ms` requires a sync."""
        unflushed, config = self.unflushed_messages, self.config
        return unflushed > 0 and (
            unflushed >= config.flush_messages or now_ms - self.last_flush_ms >= config.flush_ms
        )

    def plan_due_flush(self, now_ms: int) -> FlushPlan | None:
        """The sync that the topic's settings require, sealed segments always included.

        Syncing sealed segments advances the recovery point, so that recovery after a crash scans
        only the last segment.
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
        """Return whether a power cut could lose records."""
        return self.log_end_offset > self.recovery_point or self._files.has_unsynced

    def plan_flush(self, end_offset: int | None = None) -> FlushPlan:
        """Return the plan that syncs the log up to an offset; `run` it in a thread."""
        end_offset = self.log_end_offset if end_offset is None else end_offset
        return self._files.plan_flush(self.recovery_point, end_offset)

    def flushed(self, plan: FlushPlan, now_ms: int) -> None:
        """Record the result of a plan."""
        self.last_flush_ms = now_ms
        self.recovery_point = max(self.recovery_point, min(plan.end_offset, self.log_end_offset))

    def flush(self) -> None:
        """Sync the whole log; blocks."""
        with self._on_disk():
            plan = self.plan_flush()
            plan.run()
        self.flushed(plan, self.last_flush_ms)

    # Forgetting

    def delete_records_before(self, offset: int) -> int:
        """Move the start of the log, delete whole segments before it, and return the new start."""
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
        self._files.note_unsynced(self._files.epochs_path)

    def delete_segments(self, oldest: Sequence[Segment]) -> None:
        """Drop the oldest segments, for retention and after `delete_records_before`.

        If no segment would be left, a new empty one is created first. The start of the log moves
        to the first segment left.
        """
        if not oldest:
            return
        if oldest[-1] is self.segments[-1]:
            self.roll()
            if oldest[-1] is self.segments[-1]:
                oldest = oldest[:-1]  # It is empty: there is nothing to delete in it.
        assert list(oldest) == self.segments[: len(oldest)], "only the oldest segments may go"
        with self._on_disk():
            self._files.drop_first(len(oldest), self.config.file_delete_delay_ms)
        start_offset = self.segments[0].base_offset
        if start_offset > self.log_start_offset:
            self.log_start_offset = start_offset
            self._forget_epochs_before_start()

    def truncate_to(self, offset: int) -> None:
        """Remove the records from an offset on, where a follower diverges from its leader.

        A batch that holds the offset goes as a whole, and the log ends where it began: an offset
        in between would leave a gap that is never fetched. The epoch of a leadership that wrote
        nothing goes even if no record does, for it may be the point of divergence.
        """
        if offset >= self.log_end_offset:
            with self._on_disk():
                self.leader_epochs.truncate_from_end(self.log_end_offset)
            self.latest_epoch = self.leader_epochs.latest_epoch
            return
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        with self._on_disk():
            offset = max(self._batch_start(offset), min(offset, self.log_start_offset))
            self._files.truncate(offset, self.config.file_delete_delay_ms)
            self.leader_epochs.truncate_from_end(offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self._end_at(offset)

    def _batch_start(self, offset: int) -> int:
        """The first offset of the batch that holds an offset; the offset if none does."""
        segment = self.segments[segment_index(self.segments, offset)]
        position = segment.locate(offset)
        if position == segment.size:
            return offset
        return min(offset, segment.base_offset_at(position))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Delete all records; the next record has this offset."""
        with self._on_disk():
            self._files.restart_at(offset, self.config)
            self.leader_epochs.clear()
        self.log_start_offset = offset
        self._end_at(offset)
        self.high_watermark = offset

    def _end_at(self, offset: int) -> None:
        """Lower all offsets that are beyond the new end."""
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.latest_epoch = self.leader_epochs.latest_epoch
        self.loaded_producers = None
        self.writable = None
        self.roll_clock.stop()

    def replace_segments(self, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        """Replace segments by compacted ones."""
        with self._on_disk():
            self._files.replace(old, new, self.config.file_delete_delay_ms)

    # Ending

    def prepare_close(self) -> None:
        """Write the state that is only in memory, so that the next start need not scan."""
        if self.failure is None:
            with self._on_disk():
                self.segments[-1].seal()
                if self.log_end_offset > self.log_start_offset:
                    self._files.take_snapshot(self.log_end_offset, self.producers)

    def release(self) -> None:
        """Release files and memory; the log is not used after this."""
        self._files.release()
        self.writable = None

    def close(self) -> None:
        """Close the log so that it can be opened without recovery."""
        self.prepare_close()
        if self.failure is None and self.is_unsafe:
            self.flush()
        self.release()

    def move_directory(self, directory: str) -> None:
        """Rename the directory, to set the partition aside."""
        self._files.move(directory)

    # Failing

    def fail(self, error: OSError) -> None:
        """Mark the log as failed: reject all requests from now on."""
        if self.failure is None:
            self.failure = str(error)
            self.release()
            if self.on_failure is not None:
                self.on_failure(error)

    def refuse(self) -> NoReturn:
        """Raise the error of a log that has failed."""
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
        """The client's error. A full disk is temporary; other failures take the log offline."""
        if not files.is_passing(error):
            self.fail(error)
        elif self.on_refusal is not None:
            self.on_refusal(self.topic_partition, error, self.log_end_offset)
        return KafkaStorageError(f"{self.topic_partition} cannot be used at the moment: {error}")
