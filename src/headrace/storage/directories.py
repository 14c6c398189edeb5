"""The log directories of a node (`log.dirs`): which partition lies where, and what a failure takes.

Opening lists the names in each directory and reads its checkpoints; a partition's own files are
looked at when its log is asked for. So a node with thousands of partitions starts at once after a
clean stop. A disk that fails takes the partitions on it offline and no others.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os import urandom
from typing import TYPE_CHECKING, NamedTuple

from headrace.errors import KafkaError, KafkaStorageError
from headrace.protocol.uuids import ZERO, Uuid, is_reserved, to_text
from headrace.runtime import files
from headrace.storage.checkpoints import UNKNOWN_BROKER_EPOCH
from headrace.storage.config import LogConfig
from headrace.storage.directory import CheckpointPlan, LogDirectory
from headrace.storage.flushing import FlushPlan
from headrace.storage.log import Log
from headrace.storage.recovery import load_log, topic_id_of
from headrace.storage.resources import Resources
from headrace.storage.room import NoRoom
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
    """A partition's log directory is offline or not there; all of its partitions share this."""

    def __init__(self, message: str, directory_id: Uuid) -> None:
        super().__init__(message)
        self.directory_id = directory_id


class Wanted(NamedTuple):
    """A partition that this node should have, and what its log should be like."""

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
        """Lock the directories and list what is in them.

        One that cannot be used is offline from the start; it is an error if that leaves none.
        A directory that another broker uses is an error in any case.
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
        """The epoch in which the node stopped cleanly, -1 if it did not in some directory."""
        epochs = {directory.previous_broker_epoch for directory in self.online}
        return epochs.pop() if len(epochs) == 1 else UNKNOWN_BROKER_EPOCH

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
        """The log of a partition that this node should have: loaded if it is there, or made.

        Files of a topic that had the same name are not this topic's: they are set aside.
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
        """Begin to load, in threads, what a crash has left behind; `log_of` waits for its log.

        Reading and checksums do not hold the interpreter, so two threads are up to twice as fast
        as one. Each directory has as many of its own: disks do not share their speed.
        """
        for directory in self.online:
            there = [one for one in wanted if one.topic_partition in directory.unclaimed]
            if directory.was_clean or threads < 2 or len(there) < 2:
                continue
            from concurrent.futures import ThreadPoolExecutor  # Seldom needed.

            pool = ThreadPoolExecutor(threads, thread_name_prefix="recovery")
            for one in there:
                path = directory.unclaimed[one.topic_partition]
                self._recovering[one.topic_partition] = pool.submit(
                    self._recover, directory, path, one
                )
            pool.shutdown(wait=False)

    def has_files_of(self, topic_partition: TopicPartition) -> bool:
        """Whether an earlier run has left a directory for this partition."""
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
        """Open what is there; None if it belongs to another topic and was set aside."""
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
            directory.room.refuse(topic_partition, error)
            raise NoRoom(f"{path} cannot be loaded at the moment: {error}") from error
        except KafkaError as error:
            # Its files contradict each other: nothing is guessed, a person must look.
            _log.error("%s cannot be loaded and stays offline: %s", path, error)
            raise KafkaStorageError(f"{path} cannot be loaded: {error}") from error

    @staticmethod
    def _recover(directory: LogDirectory, path: str, wanted: "Wanted") -> Log | None:
        """In a thread: a log with resources of its own, since those of the node are not shared."""
        if topic_id_of(path) != wanted.topic_id:
            return None
        return _loaded(directory, path, wanted, Resources())

    def _directory_for_new(self, directory_id: Uuid) -> LogDirectory:
        """Where a new partition goes: where the metadata says, or where there is most room.

        Each directory gets partitions in proportion to its free space, which spreads them evenly
        over equal disks and keeps them off one that is nearly full.
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
        """Who cannot be read does not say its id either: it may be the one that is looked for."""
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
            directory.room.refuse(topic_partition, error)
            raise NoRoom(f"{path} cannot be made at the moment: {error}") from error

    def _adopt(self, log: Log, directory: LogDirectory) -> None:
        self.logs[log.topic_partition] = log
        directory.logs[log.topic_partition] = log
        log.on_failure = directory.on_failure
        log.on_refusal = directory.room.refuse

    def delete(self, log: Log) -> None:
        """Take a log out of service; its directory goes after `file.delete.delay.ms`."""
        directory = self.directory_of(log)
        del self.logs[log.topic_partition]
        del directory.logs[log.topic_partition]
        if directory.failure is not None:
            return
        name = directory_name_aside(log.topic_partition, urandom(16).hex(), DELETE_SUFFIX)
        try:
            log.move_directory(f"{directory.path}/{name}")
        except OSError as error:
            self.fail(directory, error)
            return
        log.release()
        self.resources.deletions.add(log.directory, log.config.file_delete_delay_ms)

    def set_strays_aside(self) -> list[TopicPartition]:
        """Rename the partition directories that nobody has asked for, once all were asked for.

        The metadata does not know them, so they must not be served; a person may want to look.
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
        aside = directory_name_aside(topic_partition, urandom(16).hex(), STRAY_SUFFIX)
        _log.warning("%s belongs to no topic here; it is kept as %s", path, aside)
        files.rename(path, f"{directory.path}/{aside}")

    # Failing

    def fail(self, directory: LogDirectory, error: OSError) -> None:
        """A disk has failed: its partitions answer with an error, the others go on."""
        if directory.failure is not None:
            return
        _log.error("the log directory %s is offline: %s", directory.path, error)
        directory.failure = str(error)
        for log in list(directory.logs.values()):
            log.fail(error)
        if self._on_offline is not None:
            self._on_offline(directory)

    # What is done from time to time; plans are run in a thread

    def plan_flushes(self, now_ms: int) -> list[tuple[Log, FlushPlan]]:
        """What `flush.messages`, `flush.ms` and rolls ask to sync; enter each by `Log.flushed`."""
        plans = ((log, self._plan_flush(log, now_ms)) for log in self.logs.values())
        return [(log, plan) for log, plan in plans if plan is not None]

    def _plan_flush(self, log: Log, now_ms: int) -> FlushPlan | None:
        """A log whose files cannot be opened any more must not keep the others from their syncs."""
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
        """Enter how the writing of checkpoints went.

        A checkpoint that falls behind costs a longer recovery, no more; but a disk that cannot
        take one is a disk that has failed, unless it is only full.
        """
        directory = plan.directory
        if error is None:
            directory.room.take_checkpoints()
        elif files.is_passing(error):
            directory.room.refuse_checkpoints(error)
        else:
            self.fail(directory, error)

    def look_for_room(self) -> None:
        """Tell the operator, once, of directories that were full and take writes again."""
        for directory in self.online:
            directory.room.look(directory.logs)

    # Stopping

    def close(self, broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> None:
        """Stop cleanly. A directory where that fails is recovered at the next start."""
        for directory in self.online:
            try:
                directory.close(broker_epoch)
            except (OSError, KafkaStorageError) as error:
                _log.error("%s was not closed cleanly: %s", directory.path, error)
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
