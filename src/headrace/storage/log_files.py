"""The files of one log: segments, producer snapshots, leader epochs, and unsynced files.

`Log` decides which offsets are committed and who may append. This module raises OSError, which
`Log` translates into errors for clients.
"""

from collections.abc import Iterable, Sequence
from os.path import dirname

from headrace.protocol.uuids import ZERO, Uuid
from headrace.runtime import files
from headrace.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    encode_partition_metadata,
)
from headrace.storage.config import LogConfig
from headrace.storage.flushing import FlushPlan
from headrace.storage.leader_epochs import LeaderEpochs
from headrace.storage.producer_replay import replay_segments
from headrace.storage.producer_snapshots import Snapshots
from headrace.storage.producer_state import ProducerStates
from headrace.storage.resources import Resources
from headrace.storage.segment import Segment
from headrace.storage.segments import discard, segment_index, swap


class LogFiles:
    """A directory with a list of segments, of which the last is active."""

    __slots__ = ("_unsynced", "directory", "epochs", "resources", "segments", "snapshots")

    def __init__(
        self,
        directory: str,
        segments: list[Segment],
        resources: Resources,
        snapshots: Snapshots | None = None,
    ) -> None:
        self.directory = directory
        self.segments = segments
        self.resources = resources
        self.snapshots = snapshots or Snapshots(directory, [])
        self.epochs: LeaderEpochs | None = None
        """None until they are loaded."""
        self._unsynced: tuple[str, ...] = ()

    @classmethod
    def create(
        cls,
        directory: str,
        config: LogConfig,
        resources: Resources,
        *,
        topic_id: Uuid = ZERO,
        start_offset: int = 0,
    ) -> "LogFiles":
        """Make the directory of a new partition, with its first, empty segment.

        The topic's id is written before anything else, because a directory without it is not
        served again. It is synced with the first flush, not here: a topic may have a thousand
        partitions.
        """
        files.mkdir(directory)
        identity = f"{directory}/{PARTITION_METADATA}"
        created = cls(directory, [], resources)
        try:
            if topic_id != ZERO:
                files.write(identity, encode_partition_metadata(topic_id))
            created.segments.append(created.create_segment(start_offset, config))
        except OSError:
            files.remove_tree(directory)
            raise
        created.epochs = LeaderEpochs(created.epochs_path)
        created.note_unsynced(dirname(directory), directory, identity)
        return created

    def create_segment(self, base_offset: int, config: LogConfig) -> Segment:
        return Segment.create(
            self.directory,
            base_offset,
            self.resources,
            index_interval_bytes=config.index_interval_bytes,
            index_bytes_max=config.segment_index_bytes,
            reserved_bytes=config.segment_bytes if config.preallocate else 0,
        )

    def move_to(self, resources: Resources) -> None:
        """Count open files and loaded indexes against the node's resources."""
        for segment in self.segments:
            segment.release_file()
            segment.release_indexes()
            segment.resources = resources
        resources.deletions.take_over(self.resources.deletions)
        self.resources = resources

    # State of the records

    @property
    def epochs_path(self) -> str:
        return f"{self.directory}/{LEADER_EPOCHS}"

    def load_epochs(self, start_offset: int, end_offset: int) -> LeaderEpochs:
        """Read the leader epochs of the records from one offset up to another.

        The file may be ahead of the records or behind the deletions that a crash kept.
        """
        epochs = LeaderEpochs.load(self.epochs_path)
        epochs.truncate_from_end(end_offset)
        epochs.truncate_from_start(start_offset)
        self.epochs = epochs
        return epochs

    def load_producers(self, start_offset: int, end_offset: int) -> ProducerStates:
        """The producers as of the log's end: from a snapshot, and the batches that follow it."""
        states = self.snapshots.load() or ProducerStates(start_offset)
        if states.end_offset < end_offset:
            first = max(0, segment_index(self.segments, states.end_offset))
            replay_segments(states, self.segments[first:], end_offset)
        return states

    # Growing

    def roll(self, end_offset: int, producers: ProducerStates, config: LogConfig) -> Segment:
        """Begin a new segment; on a full disk nothing changes, and a retry is possible."""
        sealed = self.segments[-1]
        sealed.seal()
        self.take_snapshot(end_offset, producers)
        active = self.create_segment(end_offset, config)
        self.segments.append(active)
        self.note_unsynced(self.directory, *sealed.index_paths())
        return active

    def take_snapshot(self, end_offset: int, producers: ProducerStates) -> None:
        """Write a snapshot of the producers at the end of the log, unless it exists."""
        if end_offset > self.snapshots.latest:
            self.snapshots.take(producers, end_offset)
            self.note_unsynced(self.snapshots.path(end_offset))

    # Syncing

    @property
    def has_unsynced(self) -> bool:
        """Return whether small files or names are unsynced; records are counted elsewhere."""
        return bool(self._unsynced)

    def note_unsynced(self, *paths: str) -> None:
        self._unsynced += tuple(path for path in paths if path not in self._unsynced)

    def plan_flush(self, recovery_point: int, end_offset: int) -> FlushPlan:
        first = max(0, segment_index(self.segments, recovery_point))
        paths, self._unsynced = self._unsynced, ()
        logs = tuple(
            segment.open() for segment in self.segments[first:] if segment.base_offset < end_offset
        )
        return FlushPlan(end_offset, logs, paths)

    # Shrinking

    def drop_first(self, count: int, delay_ms: int) -> None:
        """Set the oldest segments aside."""
        dropped = self.segments[:count]
        del self.segments[:count]
        self._discard(dropped, delay_ms)

    def truncate(self, offset: int, delay_ms: int) -> None:
        """Cut off the batches that hold an offset or later ones."""
        keep = segment_index(self.segments, offset) + 1
        dropped = self.segments[keep:]
        del self.segments[keep:]
        self._discard(dropped, delay_ms)
        self.segments[-1].truncate(offset)
        self.snapshots.drop_from(offset + 1)

    def restart_at(self, offset: int, config: LogConfig) -> None:
        """Set all segments aside, and begin an empty one."""
        self._discard(self.segments, config.file_delete_delay_ms)
        self.snapshots.drop_from(0)
        self.segments[:] = [self.create_segment(offset, config)]

    def replace(self, old: Sequence[Segment], new: Sequence[Segment], delay_ms: int) -> None:
        """Replace segments by compacted ones."""
        swap(self.segments, old, new, delay_ms)
        kept = {segment.base_offset for segment in new}
        self._drop_snapshots((one for one in old if one.base_offset not in kept), delay_ms)
        self.note_unsynced(self.directory)

    def _discard(self, segments: Sequence[Segment], delay_ms: int) -> None:
        discard(segments, delay_ms)
        self._drop_snapshots(segments, delay_ms)
        self.note_unsynced(self.directory)

    def _drop_snapshots(self, segments: Iterable[Segment], delay_ms: int) -> None:
        for segment in segments:
            self.snapshots.delete_later(segment.base_offset, self.resources.deletions, delay_ms)

    # Ending

    def release(self) -> None:
        """Release descriptors and memory."""
        for segment in self.segments:
            segment.close()

    def move(self, directory: str) -> None:
        """Rename the directory; open files stay readable."""
        files.rename(self.directory, directory)
        self.directory = self.snapshots.directory = directory
        for segment in self.segments:
            segment.directory = directory
        if self.epochs is not None:
            self.epochs.moved(self.epochs_path)
        self._unsynced = ()
