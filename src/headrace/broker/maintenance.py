"""Periodic work of a node: checkpoints, syncs, retention, compaction.

Each round plans on the event loop, which owns the logs, and waits for the disk in a thread.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.errors import KafkaStorageError
from headrace.storage.compaction.cleaner import Cleaner
from headrace.storage.resources import unlink_all
from headrace.storage.retention import delete_expired

if TYPE_CHECKING:
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.flushing import Flusher
    from headrace.broker.hosting import Hosting
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Action, Tasks
    from headrace.settings.broker import BrokerSettings
    from headrace.storage.compaction.cleaner import CleanerMetrics
    from headrace.storage.directories import LogDirectories
    from headrace.storage.directory import CheckpointPlan
    from headrace.storage.log import Log

_log = logging.getLogger(__name__)

_DELETION_INTERVAL_MS = 1000
_ROOM_INTERVAL_MS = 1000
_FLUSH_INTERVAL_MS_MAX = 1_000


class Maintenance:
    """The periodic tasks of one node."""

    def __init__(
        self,
        tasks: "Tasks",
        clock: "Clock",
        configs: "TopicConfigs",
        directories: "LogDirectories",
        hosting: "Hosting",
        flusher: "Flusher",
        metrics: "CleanerMetrics",
    ) -> None:
        self._tasks = tasks
        self._clock = clock
        self._configs = configs
        self._directories = directories
        self._hosting = hosting
        self._flusher = flusher
        self._writing_checkpoints = asyncio.Lock()
        """Truncations of several fetchers ask for checkpoints at the same moment."""
        self._cleaner = Cleaner(configs.settings, tasks.in_thread, metrics)

    def start(self, prune: "Action") -> None:
        """Start all tasks; `prune` serves the share coordinator."""
        every = self._tasks.every
        every(
            lambda: self._settings.replica_high_watermark_checkpoint_interval_ms,
            self.checkpoint_high_watermarks,
            "high watermark checkpoint",
        )
        every(
            lambda: self._settings.log_flush_offset_checkpoint_interval_ms,
            self.checkpoint,
            "recovery point checkpoint",
        )
        every(self._flush_interval_ms, self.flush_due_logs, "log flush")
        every(lambda: _DELETION_INTERVAL_MS, self.delete_files, "deletion of files")
        every(lambda: _ROOM_INTERVAL_MS, self.look_for_room, "look for room on full disks")
        every(
            lambda: self._settings.log_retention_check_interval_ms,
            self.enforce_retention,
            "log retention",
            first_ms=self._settings.log_initial_task_delay_ms,
        )
        every(lambda: self._settings.log_cleaner_backoff_ms, self.compact, "log compaction")
        every(
            lambda: self._settings.producer_id_expiration_check_interval_ms,
            self.expire_producers,
            "producer expiry",
        )
        every(
            lambda: self._settings.share_coordinator_state_topic_prune_interval_ms,
            prune,
            "pruning of share states",
        )

    @property
    def _settings(self) -> "BrokerSettings":
        return self._configs.settings

    async def checkpoint_high_watermarks(self) -> None:
        async with self._writing_checkpoints:
            await self._write(self._directories.plan_high_watermarks())

    async def checkpoint(self) -> None:
        """Write the recovery points of this moment; an older plan never replaces a newer one."""
        async with self._writing_checkpoints:
            await self._write(self._directories.plan_checkpoints())

    async def _write(self, plans: "list[CheckpointPlan]") -> None:
        for plan in plans:
            failure = None
            try:
                await self._tasks.in_thread(plan.run)
            except OSError as error:
                failure = error
            self._directories.checkpointed(plan, failure)

    def _flush_interval_ms(self) -> int:
        """The interval between two checks, which is the shortest `flush.ms` that has an effect."""
        return min(self._settings.log_flush_scheduler_interval_ms, _FLUSH_INTERVAL_MS_MAX)

    async def flush_due_logs(self) -> None:
        """Sync logs whose topic sets an interval, and segments that are complete."""
        for log, plan in self._directories.plan_flushes(self._clock.now_ms()):
            await self._flusher.run(log, plan)

    async def delete_files(self) -> None:
        due = self._directories.resources.deletions.due(self._clock.now_ms())
        if due:
            await self._tasks.in_thread(unlink_all, due)

    def look_for_room(self) -> None:
        """Retry writes and new partitions on disks that were full."""
        self._hosting.try_again()
        self._directories.look_for_room()

    async def enforce_retention(self) -> None:
        """Delete expired segments; other tasks of the loop run between two logs."""
        now_ms = self._clock.now_ms()
        for log in list(self._directories):
            if log.failure is None and not self._cleaner.is_cleaning(log):
                self._expire(log, now_ms)
                await asyncio.sleep(0)

    @staticmethod
    def _expire(log: "Log", now_ms: int) -> None:
        topic, partition = log.topic_partition
        try:
            count = delete_expired(log, now_ms)
        except KafkaStorageError as error:
            _log.error(
                "retention failed",
                extra={"topic": topic, "partition": partition, "error": str(error)},
            )
            return
        if count:
            _log.info(
                "segments deleted by retention",
                extra={
                    "topic": topic,
                    "partition": partition,
                    "segments": count,
                    "log_start_offset": log.log_start_offset,
                },
            )

    async def compact(self) -> None:
        """Clean until no log is due, with as many logs at a time as there are cleaner threads."""
        self._cleaner.settings = self._settings
        async with asyncio.TaskGroup() as group:
            for _ in range(self._cleaner.threads):
                group.create_task(self._compact_one_by_one())

    async def _compact_one_by_one(self) -> None:
        while self._settings.log_cleaner_enable:
            if not await self._cleaner.run(self._directories, self._clock.now_ms()):
                return

    def expire_producers(self) -> None:
        now_ms = self._clock.now_ms()
        for log in self._directories:
            log.expire_producers(now_ms)
