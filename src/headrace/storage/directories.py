"""The log directories of a node (`log.dirs`): placement of partitions and failure of disks.

Opening lists the names in each directory and reads its checkpoints; a partition's files are opened
with its log. A node with thousands of partitions therefore starts immediately after a clean stop. A
failed disk takes only its own partitions offline.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headrace.errors import KafkaError, KafkaStorageError
from headrace.protocol.uuids import ZERO, Uuid, is_reserved, to_text
from headrace.runtime import chance, files, thread_pools
from headrace.storage.checkpoints import LAST_BROKER_EPOCH, UNKNOWN_BROKER_EPOCH
from headrace.storage.config import LogConfig
from headrace.storage.directory import CheckpointPlan, LogDirectory
from headrace.storage.flushing import FlushPlan
from headrace.storage.free_space import DiskFull
from headrace.storage.log import Log
from headrace.storage.recovery import load_log, topic_id_of
from headrace.storage.resources import Resources
from headrace.storage.topic_partition import (
    DELETE_SUFFIX,
    STRAY_SUFFIX,
    TopicPartition,
    directory_name_aside,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

_log = logging.getLogger(__name__)


class DirectoryLost(KafkaStorageError):
    """A log directory is offline or missing; all of its partitions share this error."""

    def __init__(self, message: str, directory_id: Uuid) -> None:
        super().__init__(message)
        self.directory_id = directory_id


class Wanted(NamedTuple):
    """A partition that this node should have, and the config of its log."""

    topic_partition: TopicPartition
    topic_id: Uuid
    config: LogConfig


class LogDirectories:
    """Every log of a node, by partition. Belongs to the event loop's thread, as the logs do."""

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        resources: Resources | None = None,
        on_offline: Callable[[LogDirectory], None] | None = None,
    ) -> None:
        self.directories = directories
        self.resources = resources or Resources()
        self.logs: dict[TopicPartition, Log] = {}
        self._on_offline = on_offline
        self._recovering: dict[TopicPartition, Future[Log | None]] = {}
        for directory in directories:
            directory.on_failure = partial(self.fail, directory)

    @classmethod
    def open(
        cls,
        paths: Sequence[str],
        directory_ids: Mapping[str, Uuid],
        *,
        resources: Resources | None = None,
        on_offline: Callable[[LogDirectory], None] | None = None,
    ) -> "LogDirectories":
        """Lock the directories and list their partitions.

        An unusable directory starts offline; it is an error if no usable directory is left.
        A directory that another broker uses is always an error.
        """
        directories = [LogDirectory(path, directory_ids.get(path, ZERO)) for path in paths]
        if resources is None:
            resources = Resources(open_files_max=files.descriptors_max() // 2)
        opened = cls(directories, resources, on_offline)
        for directory in directories:
            try:
                directory.open(opened.resources)
            except OSError as error:
                opened.fail(directory, error)
        if not opened.online:
            raise KafkaStorageError(f"none of the log directories {', '.join(paths)} can be used")
        return opened

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.failure is None]

    @property
    def previous_broker_epoch(self) -> int:
        """The epoch in which the node stopped without loss; -1 if data may be lost.

        Nothing is lost by a clean stop, and by the death of the process alone. A process that died
        while it registered may not know its epoch, so the result is LAST_BROKER_EPOCH.
        """
        epochs = {directory.previous_broker_epoch for directory in self.online}
        if LAST_BROKER_EPOCH in epochs and UNKNOWN_BROKER_EPOCH not in epochs:
            return LAST_BROKER_EPOCH
        return epochs.pop() if len(epochs) == 1 else UNKNOWN_BROKER_EPOCH

    def note_registration(self, broker_epoch: int) -> None:
        """Note the registration in each directory; without it a crash counts as loss."""
        for directory in self.online:
            try:
                directory.note_registration(broker_epoch)
            except OSError as error:
                if not files.is_passing(error):
                    self.fail(directory, error)

    def __iter__(self) -> Iterator[Log]:
        return iter(self.logs.values())

    # Finding, making, deleting logs

    def log_of(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        directory_id: Uuid = ZERO,
    ) -> Log:
        """Return the log of a partition that this node should have: load or create it.

        Files of an earlier topic with the same name are set aside.
        """
        log = self.logs.get(topic_partition)
        if log is not None:
            return log
        directory = self._directory_holding(topic_partition)
        if directory is not None:
            log = self._load(directory, topic_partition, topic_id, config)
        if log is None:
            directory = self._directory_for_new(directory_id)
            log = self._create(directory, topic_partition, topic_id, config)
        assert directory is not None
        self._adopt(log, directory)
        return log

    def recover(self, wanted: "Sequence[Wanted]", threads: int) -> None:
        """Start recovery of all logs in threads after a crash; `log_of` waits for its log.

        Reading and checksums do not hold the interpreter, so two threads are up to twice as fast
        as one. Each directory has as many of its own: disks do not share their speed. A single
        thread still leaves the event loop to heartbeats.
        """
        for directory in self.online:
            there = [one for one in wanted if one.topic_partition in directory.unclaimed]
            if directory.was_clean or not there:
                continue
            pool = thread_pools.new(threads, "recovery")
            for one in there:
                path = directory.unclaimed[one.topic_partition]
                self._recovering[one.topic_partition] = pool.submit(
                    self._recover, directory, path, one
                )
            pool.shutdown(wait=False)

    def recovery_of(self, topic_partition: TopicPartition) -> "Future[Log | None] | None":
        """Return the recovery of a log that a thread has begun, to wait for before `log_of`."""
        return self._recovering.get(topic_partition)

    def has_files_of(self, topic_partition: TopicPartition) -> bool:
        """Return whether an earlier run has left a directory for this partition."""
        return any(topic_partition in directory.unclaimed for directory in self.directories)

    def directory_of(self, log: Log) -> LogDirectory:
        path = log.directory.rpartition("/")[0]
        return next(directory for directory in self.directories if directory.path == path)

    def _directory_holding(self, topic_partition: TopicPartition) -> LogDirectory | None:
        for directory in self.directories:
            is_there = topic_partition in directory.unclaimed
            if (is_there or topic_partition in directory.postponed) and directory.failure is None:
                return directory
        return None

    def _load(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
    ) -> Log | None:
        """Open an existing log; None if it belongs to another topic and was set aside."""
        postponed = directory.postponed.pop(topic_partition, "")
        path = directory.unclaimed.pop(topic_partition, postponed)
        try:
            if topic_id_of(path) != topic_id:
                self._set_aside(directory, topic_partition, path)
                return None
            under_way = self._recovering.pop(topic_partition, None)
            recovered = under_way.result() if under_way is not None else None
            if recovered is not None:
                recovered.move_to(self.resources)
                return recovered
            wanted = Wanted(topic_partition, topic_id, config)
            return _loaded(directory, path, wanted, self.resources)
        except OSError as error:
            if not files.is_passing(error):
                self.fail(directory, error)
                raise KafkaStorageError(f"{path} cannot be loaded: {error}") from error
            directory.postponed[topic_partition] = path
            directory.free_space.refuse(topic_partition, error)
            raise DiskFull(f"{path} cannot be loaded at the moment: {error}") from error
        except KafkaError as error:
            # Its files contradict each other: an operator must look at them.
            _log.error(
                "log not loaded, partition offline", extra={"path": path, "error": str(error)}
            )
            raise KafkaStorageError(f"{path} cannot be loaded: {error}") from error

    @staticmethod
    def _recover(directory: LogDirectory, path: str, wanted: "Wanted") -> Log | None:
        """Recover in a thread, with resources of its own because the node's are not thread-safe."""
        if topic_id_of(path) != wanted.topic_id:
            return None
        return _loaded(directory, path, wanted, Resources())

    def _directory_for_new(self, directory_id: Uuid) -> LogDirectory:
        """The directory of a new partition: as assigned, or with the most free space.

        Each directory gets partitions in proportion to its free space: equal disks get equal
        numbers, and a nearly full one gets few.
        """
        for directory in self.directories:
            if directory.id == directory_id != ZERO:
                if directory.failure is not None:
                    raise DirectoryLost(directory.why_offline, directory_id)
                return directory
        if not is_reserved(directory_id):
            raise DirectoryLost(self._why_missing(directory_id), directory_id)
        candidates = []
        for directory in self.online:
            try:
                candidates.append((directory.crowding(), directory))
            except OSError as error:
                self.fail(directory, error)
        if not candidates:
            raise KafkaStorageError("all log directories are offline; see the broker's log")
        return min(candidates, key=lambda candidate: candidate[0])[1]

    def _why_missing(self, directory_id: Uuid) -> str:
        """The reason for a missing directory id; an unreadable directory may have this id."""
        unread = [one.path for one in self.directories if one.id == ZERO and one.failure]
        text = f"the log directory {to_text(directory_id)} is not there"
        if unread:
            return f"{text}; it may be {' or '.join(unread)}, which cannot be used"
        return f"{text}; was it taken out of log.dirs?"

    def _create(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
    ) -> Log:
        path = f"{directory.path}/{topic_partition}"
        try:
            return Log.create(topic_partition, path, config, self.resources, topic_id=topic_id)
        except FileExistsError as error:
            raise KafkaStorageError(f"{path} is there and could not be loaded") from error
        except OSError as error:
            if not files.is_passing(error):
                self.fail(directory, error)
                raise KafkaStorageError(f"{path} cannot be made: {error}") from error
            directory.free_space.refuse(topic_partition, error)
            raise DiskFull(f"{path} cannot be made at the moment: {error}") from error

    def _adopt(self, log: Log, directory: LogDirectory) -> None:
        self.logs[log.topic_partition] = log
        directory.logs[log.topic_partition] = log
        log.on_failure = directory.on_failure
        log.on_refusal = directory.free_space.refuse

    def delete(self, log: Log) -> None:
        """Take a log out of service; its directory goes after `file.delete.delay.ms`."""
        directory = self.directory_of(log)
        del self.logs[log.topic_partition]
        del directory.logs[log.topic_partition]
        if directory.failure is not None:
            return
        name = directory_name_aside(log.topic_partition, chance.urandom(16).hex(), DELETE_SUFFIX)
        try:
            log.move_directory(f"{directory.path}/{name}")
        except OSError as error:
            self.fail(directory, error)
            return
        log.release()
        self.resources.deletions.add(log.directory, log.config.file_delete_delay_ms)

    def set_strays_aside(self) -> list[TopicPartition]:
        """Rename the partition directories that are not in the metadata.

        They must not be served, but an operator may want to inspect them.
        """
        strays = []
        for directory in self.online:
            for topic_partition, path in list(directory.unclaimed.items()):
                del directory.unclaimed[topic_partition]
                try:
                    self._set_aside(directory, topic_partition, path)
                except OSError as error:
                    self.fail(directory, error)
                    break
                strays.append(topic_partition)
        return strays

    def _set_aside(
        self, directory: LogDirectory, topic_partition: TopicPartition, path: str
    ) -> None:
        aside = directory_name_aside(topic_partition, chance.urandom(16).hex(), STRAY_SUFFIX)
        _log.warning("stray partition directory renamed", extra={"path": path, "renamed": aside})
        files.rename(path, f"{directory.path}/{aside}")

    # Failing

    def fail(self, directory: LogDirectory, error: OSError) -> None:
        """Take a failed directory offline: its partitions return an error, the others work."""
        if directory.failure is not None:
            return
        _log.error("log directory offline", extra={"path": directory.path, "error": str(error)})
        directory.failure = str(error)
        for log in list(directory.logs.values()):
            log.fail(error)
        if self._on_offline is not None:
            self._on_offline(directory)

    # Periodic work; plans are run in a thread

    def plan_flushes(self, now_ms: int) -> list[tuple[Log, FlushPlan]]:
        """Return the syncs due by `flush.messages`, `flush.ms` and rolls, for `Log.flushed`."""
        plans = ((log, self._plan_flush(log, now_ms)) for log in self.logs.values())
        return [(log, plan) for log, plan in plans if plan is not None]

    def _plan_flush(self, log: Log, now_ms: int) -> FlushPlan | None:
        """The flush plan of a log; a log that cannot be opened must not block the others."""
        if log.failure is not None:
            return None
        try:
            return log.plan_due_flush(now_ms)
        except OSError as error:
            log.storage_error(error)
            return None

    def plan_high_watermarks(self) -> list[CheckpointPlan]:
        """For every `replica.high.watermark.checkpoint.interval.ms`."""
        plans = [directory.plan_high_watermarks() for directory in self.online]
        return [plan for plan in plans if plan is not None]

    def plan_checkpoints(self) -> list[CheckpointPlan]:
        """For every `log.flush.offset.checkpoint.interval.ms`."""
        plans = [directory.plan_checkpoints() for directory in self.online]
        return [plan for plan in plans if plan is not None]

    def checkpointed(self, plan: CheckpointPlan, error: OSError | None) -> None:
        """Record the outcome of writing checkpoints.

        A late checkpoint only makes recovery longer. But if it cannot be written, the disk has
        failed, unless it is only full.
        """
        directory = plan.directory
        if error is None:
            directory.free_space.accept_checkpoints()
        elif files.is_passing(error):
            directory.free_space.refuse_checkpoints(error)
        else:
            self.fail(directory, error)

    def look_for_room(self) -> None:
        """Log once that a full directory accepts writes again."""
        for directory in self.online:
            directory.free_space.check(directory.logs)

    # Stopping

    def close(self, broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> None:
        """Stop cleanly. A directory where that fails is recovered at the next start."""
        for directory in self.online:
            try:
                directory.close(broker_epoch)
            except (OSError, KafkaStorageError) as error:
                _log.error(
                    "log directory not closed cleanly",
                    extra={"path": directory.path, "error": str(error)},
                )
            directory.release()
        self.logs.clear()


def _loaded(directory: LogDirectory, path: str, wanted: Wanted, resources: Resources) -> Log:
    partition = wanted.topic_partition
    return load_log(
        partition,
        path,
        wanted.config,
        resources,
        topic_id=wanted.topic_id,
        clean=directory.was_clean,
        recovery_point=directory.recovery_points.get(partition, 0),
        log_start_offset=directory.log_start_offsets.get(partition, 0),
        high_watermark=directory.high_watermarks.get(partition, 0),
    )
