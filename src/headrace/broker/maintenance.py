"""What a node does from time to time, beside its requests: checkpoints, syncs, retention.

Each round plans on the event loop, where the logs belong, and works in a thread, where the
disk may take its time.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.errors import KafkaStorageError
from headrace.storage.cleaner import Cleaner
from headrace.storage.resources import unlink_all
from headrace.storage.retention import delete_expired

if TYPE_CHECKING:
    from headrace.broker.hosting import Hosting
    from headrace.broker.node import Broker
    from headrace.storage.directory import CheckpointPlan
    from headrace.storage.log import Log

_log = logging.getLogger(__name__)

_DELETION_INTERVAL_MS = 1000
_ROOM_INTERVAL_MS = 1000
_METADATA_INTERVAL_MS = 60_000
_FLUSH_INTERVAL_MS_MAX = 1_000


class Maintenance:
    """The rounds of one node."""

    def __init__(self, broker: "Broker", hosting: "Hosting") -> None:
        self._broker = broker
        self._hosting = hosting
        self._cleaner = Cleaner(broker.settings, broker.background, broker.metrics.cleaner)

    def start(self) -> None:
        every = self._broker.tasks.every
        settings = self._broker.settings
        later_ms = settings.log_initial_task_delay_ms
        every(
            lambda: self._broker.settings.replica_high_watermark_checkpoint_interval_ms,
            self.checkpoint_high_watermarks,
            "high watermark checkpoint",
        )
        every(
            lambda: self._broker.settings.log_flush_offset_checkpoint_interval_ms,
            self.checkpoint,
            "recovery point checkpoint",
        )
        every(self._flush_interval_ms, self.flush_due_logs, "log flush")
        every(lambda: _DELETION_INTERVAL_MS, self.delete_files, "deletion of files")
        every(lambda: _ROOM_INTERVAL_MS, self.look_for_room, "look for room on full disks")
        every(lambda: _METADATA_INTERVAL_MS, self._broker.controller.maintain, "metadata snapshot")
        every(
            lambda: self._broker.settings.log_retention_check_interval_ms,
            self.enforce_retention,
            "log retention",
            first_ms=later_ms,
        )
        every(
            lambda: self._broker.settings.log_cleaner_backoff_ms,
            self.compact,
            "log compaction",
        )
        every(
            lambda: self._broker.settings.producer_id_expiration_check_interval_ms,
            self.expire_producers,
            "producer expiry",
        )
        every(
            lambda: self._broker.settings.share_coordinator_state_topic_prune_interval_ms,
            self._broker.share_coordinator.prune,
            "pruning of share states",
        )

    async def checkpoint_high_watermarks(self) -> None:
        await self._write(self._broker.directories.plan_high_watermarks())

    async def checkpoint(self) -> None:
        await self._write(self._broker.directories.plan_checkpoints())

    async def _write(self, plans: "list[CheckpointPlan]") -> None:
        for plan in plans:
            failure = None
            try:
                await self._broker.background(plan.run)
            except OSError as error:
                failure = error
            self._broker.directories.checkpointed(plan, failure)

    def _flush_interval_ms(self) -> int:
        """How often to look; a `flush.ms` shorter than this is of no use."""
        return min(self._broker.settings.log_flush_scheduler_interval_ms, _FLUSH_INTERVAL_MS_MAX)

    async def flush_due_logs(self) -> None:
        """Sync what topics ask to have synced, and segments that are complete in any case."""
        for log, plan in self._broker.directories.plan_flushes(self._broker.clock.now_ms()):
            await self._broker.flusher.carry_out(log, plan)

    async def delete_files(self) -> None:
        due = self._broker.directories.resources.deletions.due(self._broker.clock.now_ms())
        if due:
            await self._broker.background(unlink_all, due)

    def look_for_room(self) -> None:
        """Disks that were full may have room again, for records and for partitions not made yet."""
        self._hosting.try_again()
        self._broker.directories.look_for_room()

    async def enforce_retention(self) -> None:
        """Drop what the topics no longer keep, giving way to clients between two logs."""
        now_ms = self._broker.clock.now_ms()
        for log in list(self._broker.directories):
            if log.failure is None and not self._cleaner.is_cleaning(log):
                self._expire(log, now_ms)
                await asyncio.sleep(0)

    @staticmethod
    def _expire(log: "Log", now_ms: int) -> None:
        name = log.topic_partition
        try:
            count = delete_expired(log, now_ms)
        except KafkaStorageError as error:
            _log.error("retention of %s failed: %s", name, error)
            return
        if count:
            start = log.log_start_offset
            _log.info(
                "retention took %d segments of %s, which now starts at %d", count, name, start
            )

    async def compact(self) -> None:
        """Clean until nothing is dirty enough, several logs at a time if there are threads."""
        self._cleaner.settings = self._broker.settings
        async with asyncio.TaskGroup() as group:
            for _ in range(self._cleaner.threads):
                group.create_task(self._compact_one_by_one())

    async def _compact_one_by_one(self) -> None:
        while self._broker.settings.log_cleaner_enable:
            if not await self._cleaner.run(self._broker.directories, self._broker.clock.now_ms()):
                return

    def expire_producers(self) -> None:
        now_ms = self._broker.clock.now_ms()
        for log in self._broker.directories:
            log.expire_producers(now_ms)
