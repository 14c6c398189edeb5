"""One of a node's log directories: its lock, its checkpoints and its partitions."""

import logging
from collections.abc import Callable, Mapping

import msgspec

from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.uuids import Uuid
from headrace.runtime import files
from headrace.runtime.files import OpenFile
from headrace.storage import checkpoints
from headrace.storage.flushing import run_all
from headrace.storage.free_space import FreeSpace
from headrace.storage.log import Log
from headrace.storage.resources import Resources
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
            checkpoints.write_offsets(f"{self.directory.path}/{name}", offsets)
            self.directory.written[name] = offsets


class LogDirectory:
    """A directory of partition directories; offline if it has a `failure`."""

    __slots__ = (
        "_lock",
        "failure",
        "free_space",
        "high_watermarks",
        "id",
        "log_start_offsets",
        "logs",
        "on_failure",
        "path",
        "postponed",
        "previous_broker_epoch",
        "recovery_points",
        "unclaimed",
        "was_clean",
        "written",
    )

    def __init__(self, path: str, directory_id: Uuid) -> None:
        self.path = path
        self.id = directory_id
        self.failure: str | None = None
        self.was_clean = False
        self.previous_broker_epoch = checkpoints.UNKNOWN_BROKER_EPOCH
        self.logs: dict[TopicPartition, Log] = {}
        # Existing partition directories without a log so far.
        self.unclaimed: dict[TopicPartition, str] = {}
        # Directories that could not be opened for lack of space; opening is retried.
        self.postponed: dict[TopicPartition, str] = {}
        self.free_space = FreeSpace(path)
        self.recovery_points: Offsets = {}
        self.log_start_offsets: Offsets = {}
        self.high_watermarks: Offsets = {}
        self.written: dict[str, Offsets] = {}
        self.on_failure: Callable[[OSError], None] | None = None
        self._lock: OpenFile | None = None

    def __repr__(self) -> str:
        return f"LogDirectory({self.path!r})"

    def open(self, resources: Resources) -> None:
        """Lock the directory, read how it was closed, and list its partitions.

        The marker of a clean stop is deleted immediately, so that a later crash is detected.
        """
        files.make_directories(self.path)
        self._lock = files.lock(f"{self.path}/{checkpoints.LOCK}")
        self._take_marker()
        self.recovery_points = self._read(checkpoints.RECOVERY_POINTS)
        self.log_start_offsets = self._read(checkpoints.LOG_START_OFFSETS)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARKS)
        for name in files.subdirectories(self.path):
            topic_partition = parse_directory_name(name)
            # The metadata log is in the same directory and is loaded elsewhere.
            if topic_partition is not None and topic_partition.topic != METADATA_TOPIC:
                self.unclaimed[topic_partition] = f"{self.path}/{name}"
            elif is_aside(name, DELETE_SUFFIX):
                resources.deletions.add(f"{self.path}/{name}", 0)

    def _take_marker(self) -> None:
        self.previous_broker_epoch = self._registered_since_boot()
        path = f"{self.path}/{checkpoints.CLEAN_SHUTDOWN}"
        try:
            self.previous_broker_epoch = checkpoints.decode_clean_shutdown(files.read(path))
        except FileNotFoundError:
            return
        self.was_clean = True
        files.unlink(path)
        # A marker that a power cut restores would cover later writes.
        files.fsync_path(self.path)

    def note_registration(self, broker_epoch: int) -> None:
        """Note the epoch of this process, and the boot of the machine whose memory has its writes.

        A process that dies loses none of them, only a machine does. No sync is needed: after a
        power cut the boot is another one, whatever the file contains.
        """
        if boot_id := files.boot_id():
            content = checkpoints.encode_registration(broker_epoch, boot_id)
            files.replace_file(f"{self.path}/{checkpoints.REGISTRATION}", content, sync=False)

    def _registered_since_boot(self) -> int:
        try:
            content = files.read(f"{self.path}/{checkpoints.REGISTRATION}")
        except FileNotFoundError:
            return checkpoints.UNKNOWN_BROKER_EPOCH
        return checkpoints.decode_registration(content, files.boot_id())

    def _read(self, name: str) -> Offsets:
        """A checkpoint that cannot be read counts as empty: more is recovered, nothing is lost."""
        try:
            return checkpoints.read_offsets(f"{self.path}/{name}")
        except checkpoints.CorruptCheckpoint as error:
            _log.error("checkpoint not readable, logs are recovered", extra={"error": str(error)})
            return {}

    @property
    def why_offline(self) -> str:
        return f"the log directory {self.path} is offline: {self.failure}"

    def crowding(self) -> float:
        """Partitions per free byte; a new partition gets the directory with the smallest load."""
        _, usable_bytes = files.space(self.path)
        return (len(self.logs) + len(self.unclaimed) + 1) / (usable_bytes + 1)

    # Checkpoints

    def plan_high_watermarks(self) -> CheckpointPlan | None:
        offsets = self._not_loaded(self.high_watermarks)
        offsets |= self._offsets(lambda log: log.high_watermark)
        return self._plan({checkpoints.HIGH_WATERMARKS: offsets})

    def plan_checkpoints(self) -> CheckpointPlan | None:
        """Recovery points, and the starts of those logs that do not start with a segment."""
        starts = self._not_loaded(self.log_start_offsets)
        starts |= {
            name: log.log_start_offset
            for name, log in self.logs.items()
            if log.log_start_offset > log.segments[0].base_offset
        }
        recovery_points = self._offsets(lambda log: log.recovery_point)
        return self._plan(
            {checkpoints.RECOVERY_POINTS: recovery_points, checkpoints.LOG_START_OFFSETS: starts}
        )

    def _not_loaded(self, offsets: Offsets) -> Offsets:
        """Return the read offsets of partitions whose logs are not open yet, to keep them."""
        return {
            name: offset
            for name, offset in offsets.items()
            if name in self.unclaimed or name in self.postponed
        }

    def _offsets(self, offset_of: Callable[[Log], int]) -> Offsets:
        return {name: offset_of(log) for name, log in self.logs.items()}

    def _plan(self, contents: dict[str, Offsets]) -> CheckpointPlan | None:
        """The changes since the last checkpoint."""
        changed = {
            name: offsets for name, offsets in contents.items() if offsets != self.written.get(name)
        }
        return CheckpointPlan(self, changed) if changed else None

    # Stopping

    def close(self, broker_epoch: int) -> None:
        """Sync everything to the disk; write the marker of a clean stop last."""
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
        marker = checkpoints.encode_clean_shutdown(broker_epoch)
        files.replace_file(f"{self.path}/{checkpoints.CLEAN_SHUTDOWN}", marker)

    def release(self) -> None:
        for log in self.logs.values():
            log.release()
        self.logs.clear()
        self._lock = None
