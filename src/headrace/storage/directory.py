"""One of a node's log directories: its lock, its checkpoints, and what is found in it."""

import logging
from collections.abc import Callable, Mapping

import msgspec

from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.uuids import Uuid
from headrace.runtime import files
from headrace.runtime.files import OpenFile
from headrace.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOCK,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    UNKNOWN_BROKER_EPOCH,
    CorruptCheckpoint,
    decode_clean_shutdown,
    encode_clean_shutdown,
    read_offsets,
    write_offsets,
)
from headrace.storage.flushing import run_all
from headrace.storage.log import Log
from headrace.storage.resources import Resources
from headrace.storage.room import Room
from headrace.storage.topic_partition import (
    DELETE_SUFFIX,
    TopicPartition,
    is_aside,
    parse_directory_name,
)

_log = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


class CheckpointPlan(msgspec.Struct, frozen=True):
    """Offsets as of a moment, to be written to checkpoint files in a thread."""

    directory: "LogDirectory"
    contents: Mapping[str, Offsets]

    def run(self) -> None:
        for name, offsets in self.contents.items():
            write_offsets(f"{self.directory.path}/{name}", offsets)
            self.directory.written[name] = offsets


class LogDirectory:
    """A directory with partition directories below it. Offline if it has a `failure`."""

    __slots__ = (
        "_lock",
        "failure",
        "high_watermarks",
        "id",
        "log_start_offsets",
        "logs",
        "on_failure",
        "path",
        "postponed",
        "previous_broker_epoch",
        "recovery_points",
        "room",
        "unclaimed",
        "was_clean",
        "written",
    )

    def __init__(self, path: str, directory_id: Uuid) -> None:
        self.path = path
        self.id = directory_id
        self.failure: str | None = None
        self.was_clean = False
        self.previous_broker_epoch = UNKNOWN_BROKER_EPOCH
        self.logs: dict[TopicPartition, Log] = {}
        # Partition directories that are there and were not asked for yet.
        self.unclaimed: dict[TopicPartition, str] = {}
        # Such that were asked for when there was no room to open them; they can be again.
        self.postponed: dict[TopicPartition, str] = {}
        self.room = Room(path)
        self.recovery_points: Offsets = {}
        self.log_start_offsets: Offsets = {}
        self.high_watermarks: Offsets = {}
        self.written: dict[str, Offsets] = {}
        self.on_failure: Callable[[OSError], None] | None = None
        self._lock: OpenFile | None = None

    def __repr__(self) -> str:
        return f"LogDirectory({self.path!r})"

    def open(self, resources: Resources) -> None:
        """Lock the directory, take note of how it was left, and list its partitions.

        The marker of a clean stop goes at once: from here on a crash is a crash.
        """
        files.make_directories(self.path)
        self._lock = files.lock(f"{self.path}/{LOCK}")
        self._take_marker()
        self.recovery_points = self._read(RECOVERY_POINTS)
        self.log_start_offsets = self._read(LOG_START_OFFSETS)
        self.high_watermarks = self._read(HIGH_WATERMARKS)
        for name in files.subdirectories(self.path):
            topic_partition = parse_directory_name(name)
            # The metadata log lies among the others and is not ours to load.
            if topic_partition is not None and topic_partition.topic != METADATA_TOPIC:
                self.unclaimed[topic_partition] = f"{self.path}/{name}"
            elif is_aside(name, DELETE_SUFFIX):
                resources.deletions.add(f"{self.path}/{name}", 0)

    def _take_marker(self) -> None:
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        try:
            self.previous_broker_epoch = decode_clean_shutdown(files.read(path))
        except FileNotFoundError:
            return
        self.was_clean = True
        files.unlink(path)
        # A marker that came back after a power cut would vouch for what is written from now on.
        files.fsync_path(self.path)

    def _read(self, name: str) -> Offsets:
        """A checkpoint that cannot be read counts as empty: more is recovered, nothing is lost."""
        try:
            return read_offsets(f"{self.path}/{name}")
        except CorruptCheckpoint as error:
            _log.error("%s; its logs are recovered as far as needed without it", error)
            return {}

    @property
    def why_offline(self) -> str:
        return f"the log directory {self.path} is offline: {self.failure}"

    def crowding(self) -> float:
        """Partitions per free byte: a new partition goes where this is least."""
        _, usable_bytes = files.space(self.path)
        return (len(self.logs) + len(self.unclaimed) + 1) / (usable_bytes + 1)

    # Checkpoints

    def plan_high_watermarks(self) -> CheckpointPlan | None:
        return self._plan({HIGH_WATERMARKS: self._offsets(lambda log: log.high_watermark)})

    def plan_checkpoints(self) -> CheckpointPlan | None:
        """Recovery points, and the starts of those logs that do not start with a segment."""
        starts = {
            name: log.log_start_offset
            for name, log in self.logs.items()
            if log.log_start_offset > log.segments[0].base_offset
        }
        recovery_points = self._offsets(lambda log: log.recovery_point)
        return self._plan({RECOVERY_POINTS: recovery_points, LOG_START_OFFSETS: starts})

    def _offsets(self, offset_of: Callable[[Log], int]) -> Offsets:
        return {name: offset_of(log) for name, log in self.logs.items()}

    def _plan(self, contents: dict[str, Offsets]) -> CheckpointPlan | None:
        """Only what has changed since it was written last."""
        changed = {
            name: offsets for name, offsets in contents.items() if offsets != self.written.get(name)
        }
        return CheckpointPlan(self, changed) if changed else None

    # Stopping

    def close(self, broker_epoch: int) -> None:
        """Bring everything to the disk; the marker that says so comes last."""
        logs = list(self.logs.values())
        for log in logs:
            log.prepare_close()
        unsafe = [log for log in logs if log.is_unsafe]
        plans = [log.plan_flush() for log in unsafe]
        run_all(plans)
        for log, plan in zip(unsafe, plans, strict=True):
            log.flushed(plan, log.last_flush_ms)
        for checkpoint in (self.plan_checkpoints(), self.plan_high_watermarks()):
            if checkpoint is not None:
                checkpoint.run()
        marker = encode_clean_shutdown(broker_epoch)
        files.replace_file(f"{self.path}/{CLEAN_SHUTDOWN}", marker)

    def release(self) -> None:
        for log in self.logs.values():
            log.release()
        self.logs.clear()
        self._lock = None
