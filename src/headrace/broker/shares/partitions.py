"""The share partitions that this node leads: they are loaded, acquired from, written, unloaded.

`shares/partition.py` decides the state of each record. This module writes its decisions through the
persister (`persister.py`) before they take effect, expires locks, and wakes waiting requests when
records are released. A share partition is in memory from the first fetch of its group until the
partition's leader changes, its topic is deleted, or the last session of the group ends.
"""

import logging
from collections.abc import Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.broker.loop_timers import LoopTimers
from headrace.broker.shares.dead_letters import DeadLetters
from headrace.broker.shares.led_partition import LedSharePartition
from headrace.broker.shares.reading import read_batches
from headrace.broker.shares.rules import GroupRules, Rules
from headrace.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    FencedStateEpoch,
    GroupIdNotFound,
    KafkaError,
    NotCoordinator,
    NotLeaderOrFollower,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from headrace.protocol.uuids import to_text
from headrace.runtime.eager import finish_each, finish_now
from headrace.shares.partition import Acknowledgement, Acquired, SharePartition
from headrace.shares.runs import Change
from headrace.shares.selection import Pick
from headrace.shares.sessions import SessionKey, ShareSession, ShareSessions
from headrace.shares.state import UNINITIALIZED, SharePartitionKey, StateChange

if TYPE_CHECKING:
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.leaders import Leaders
    from headrace.broker.metadata import ClusterMetadata
    from headrace.broker.shares.persister import SharePersister
    from headrace.protocol.uuids import Uuid
    from headrace.replication.delayed import WakeUps
    from headrace.replication.partition import Partition
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Tasks
    from headrace.storage.log import Log
    from headrace.storage.reading import LogSlice

_log = logging.getLogger(__name__)

_EXPIRE_AGAIN_MS = 100
_PASSES_MAX = 64  # Over batches without records for the group, in one turn of the loop.


class AcquiredRecords(NamedTuple):
    """Records for one member, still in their file, and the offsets that it acquired."""

    records: "LogSlice"
    acquired: list[Acquired]


class SharePartitions:
    """Every share partition of this node, and the sessions of their members."""

    def __init__(
        self,
        states: "SharePersister",
        leaders: "Leaders",
        controller: "ClusterMetadata",
        configs: "TopicConfigs",
        clock: "Clock",
        tasks: "Tasks",
        wake_ups: "WakeUps",
    ) -> None:
        self._states = states
        self._clock = clock
        self._tasks = tasks
        self._wake_ups = wake_ups
        self._led: dict[SharePartitionKey, LedSharePartition] = {}
        self._by_group: dict[str, dict[SharePartitionKey, LedSharePartition]] = {}
        self._rules = Rules(controller, configs)
        self._locks: LoopTimers[SharePartitionKey] = LoopTimers(clock, self._expire_due)
        self.sessions = ShareSessions(configs.settings.group_share_max_share_sessions)
        self.dead_letters = DeadLetters(self, leaders, controller, configs, clock, tasks)

    def rules_of(self, group_id: str) -> GroupRules:
        """Return a group's current configs."""
        return self._rules.of(group_id)

    # --- finding and loading --------------------------------------------------------------------

    def find(self, key: SharePartitionKey) -> LedSharePartition | None:
        """Return a share partition if it is loaded in the present leadership."""
        led = self._led.get(key)
        if led is None or led.core is None:
            return None
        if not led.is_current:
            self.forget(led)
            return None
        return led

    def open(self, key: SharePartitionKey, partition: "Partition") -> LedSharePartition:
        """Return a share partition for a fetch; start to load one that is not in memory."""
        led = self._led.get(key)
        if led is not None:
            if led.partition is partition and led.is_current:
                return led
            self.forget(led)
        led = self._led[key] = LedSharePartition(key, partition)
        self._by_group.setdefault(key.group_id, {})[key] = led
        loading = finish_now(self._load(led))
        if loading is not None:
            self._tasks.start(loading, f"load {led.name}")
        return led

    async def _load(self, led: LedSharePartition) -> None:
        try:
            core = await self._loaded(led)
        except KafkaError as error:
            led.failure = leader_error(error)
            self.forget(led)
            return
        except Exception:
            # Forgotten, because a kept one would never load, and members would wait for ever.
            _log.exception("share partition not loaded", extra=led.log_fields)
            led.failure = UnknownServerError("the broker failed; its log has the details")
            self.forget(led)
            return
        if not led.is_live:
            return
        if not led.is_current:
            led.failure = led.partition.topic.not_led(led.partition.index)
            self.forget(led)
            return
        led.core = core
        self.dead_letters.collect(led)
        self._wake(led)

    async def _loaded(self, led: LedSharePartition) -> SharePartition:
        states = self._states
        state = await states.read(led.key, led.leader_epoch)
        log = led.partition.online_log()
        if state.start_offset != UNINITIALIZED:
            core = SharePartition.load(state, state.start_offset)
            core.drop_before(log.log_start_offset)
            return core
        start_offset = self._first_offset(led.key.group_id, log)
        # Written at once: after a crash before the first acknowledgement, a group that starts at
        # the end would otherwise start at a later end, and records between would be skipped.
        await states.write(
            led.key, StateChange(state.state_epoch, led.leader_epoch, start_offset, 0)
        )
        return SharePartition(start_offset, state.state_epoch)

    def _first_offset(self, group_id: str, log: "Log") -> int:
        settings = self.rules_of(group_id).settings
        if settings.auto_offset_reset == "earliest":
            return log.log_start_offset
        duration_ms = settings.reset_duration_ms
        if duration_ms is not None:
            found = log.offset_for_timestamp(self._clock.now_ms() - duration_ms)
            if found is not None:
                return found.offset
        return log.high_watermark

    # --- acquiring ------------------------------------------------------------------------------

    def take(
        self, led: LedSharePartition, pick: Pick, size_max: int, *, at_least_one: bool
    ) -> AcquiredRecords | None:
        """Acquire records for a member; None if it may have none now."""
        core = led.core
        if core is None:
            return None
        rules = self.rules_of(led.key.group_id)
        log = led.partition.online_log()
        if log.log_start_offset > core.start_offset:
            core.drop_before(log.log_start_offset)
        now_ms = self._clock.monotonic_ms()
        for _ in range(_PASSES_MAX):
            if not core.can_acquire(rules.limits):
                return None
            offset = core.fetch_offset()
            batches = read_batches(
                log,
                offset,
                size_max,
                at_least_one=at_least_one,
                is_read_committed=rules.settings.is_read_committed,
            )
            if batches is None:
                return None
            try:
                acquired = core.acquire(pick, offset, batches, rules.limits, now_ms)
            except OSError as error:
                raise log.storage_error(error) from error
            if acquired:
                self._set_lock(led, now_ms + rules.limits.lock_duration_ms)
                records = batches.part(acquired[0].first, acquired[-1].last)
                return AcquiredRecords(records, acquired)
            if core.fetch_offset() == offset:
                return None
        return None

    def read(self, led: LedSharePartition, taken: AcquiredRecords) -> bytes:
        """Read the records; if that fails, their locks expire and they are released."""
        try:
            return taken.records.read()
        except OSError as error:
            raise led.partition.online_log().storage_error(error) from error

    def readable_bytes(self, led: LedSharePartition, size_max: int) -> int:
        """Return the number of bytes that could be sent, for requests with `min_bytes`."""
        core = led.core
        rules = self.rules_of(led.key.group_id)
        if core is None or not core.can_acquire(rules.limits):
            return 0
        log = led.partition.online_log()
        bound = log.last_stable_offset if rules.settings.is_read_committed else log.high_watermark
        offset = max(core.fetch_offset(), log.log_start_offset)
        return log.read(offset, size_max, bound).size if offset < bound else 0

    # --- releasing ------------------------------------------------------------------------------

    async def acknowledge(
        self, led: LedSharePartition, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> None:
        """Apply and write a member's acknowledgements."""
        assert led.core is not None, "`find` returns loaded ones only"
        limits = self.rules_of(led.key.group_id).limits
        now_ms = self._clock.monotonic_ms()
        change = led.core.acknowledge(member_id, acknowledgements, limits, now_ms)
        if change is not None:
            await self._commit(led, led.core, change)

    def end_session(self, key: SessionKey) -> Coroutine[Any, Any, None] | None:
        """Close a member's session and release its records."""
        session = self.sessions.close(key)
        return None if session is None else finish_now(self._release(session))

    def disconnected(self, connection: object) -> None:
        """Close the sessions of a lost connection and release their records."""
        for session in self.sessions.disconnect(connection):
            self._in_background(finish_now(self._release(session)), "release")

    async def _release(self, session: ShareSession) -> None:
        group_id, member_id = session.key
        releases = []
        for target in session.targets:
            led = self.find(SharePartitionKey(group_id, target.topic_id, target.partition))
            if led is None or led.core is None:
                continue
            change = led.core.release(member_id, self.rules_of(group_id).limits)
            if change is not None:
                releases.append(self._commit_or_log(led, led.core, change))
        await finish_each(releases)
        self._forget_unused(group_id)

    async def archive(self, led: LedSharePartition, letter: Acquired) -> None:
        """Archive the records of a dead letter that is written."""
        if led.core is None or not led.is_live:
            return
        change = led.core.archive(letter.first, letter.last)
        if change is not None:
            await self._commit(led, led.core, change)

    async def _commit(self, led: LedSharePartition, core: SharePartition, change: Change) -> None:
        """Write a change, then apply it; roll it back if it cannot be written."""
        try:
            await self._write(led, core, change)
        except BaseException as error:
            core.roll_back(change)
            if isinstance(error, KafkaError):
                raise leader_error(error) from error
            raise
        self._apply(led, core, change)

    async def _commit_or_log(
        self, led: LedSharePartition, core: SharePartition, change: Change
    ) -> None:
        """Write a release or an expiry, and apply it even if the write fails.

        No other member has the records. The next leader would also deliver them again, with one
        delivery less counted.
        """
        try:
            await self._write(led, core, change)
        except KafkaError as error:
            _log.warning(
                "released records not written", extra=led.log_fields | {"error": str(error)}
            )
        except Exception:
            _log.exception("writing released records failed", extra=led.log_fields)
        self._apply(led, core, change)

    async def _write(self, led: LedSharePartition, core: SharePartition, change: Change) -> None:
        try:
            await self._states.write(
                led.key,
                StateChange(
                    state_epoch=core.state_epoch,
                    leader_epoch=led.leader_epoch,
                    start_offset=change.start_offset,
                    delivery_complete_count=change.delivery_complete_count,
                    batches=change.batches,
                ),
            )
        except (FencedLeaderEpoch, FencedStateEpoch, GroupIdNotFound, UnknownTopicOrPartition):
            self.forget(led)
            raise

    def _apply(self, led: LedSharePartition, core: SharePartition, change: Change) -> None:
        if core.apply(change):
            self.dead_letters.collect(led)
        self._wake(led)

    # --- locks ----------------------------------------------------------------------------------

    def _set_lock(self, led: LedSharePartition, at_ms: int) -> None:
        """Set the timer of a partition, which is that of its earliest lock."""
        if led.expires_at_ms and led.expires_at_ms <= at_ms:
            return
        led.expires_at_ms = at_ms
        self._locks.set(led.key, at_ms)

    def _expire_due(self, key: SharePartitionKey, now_ms: int) -> None:
        led = self.find(key)
        if led is None or led.core is None:
            return
        led.expires_at_ms = 0
        try:
            self._expire(led, led.core, now_ms)
        except Exception:  # Or the other locks would never expire.
            _log.exception(
                "expiring record locks failed",
                extra={
                    "group": key.group_id,
                    "topic_id": to_text(key.topic_id),
                    "partition": key.partition,
                },
            )

    def _expire(self, led: LedSharePartition, core: SharePartition, now_ms: int) -> None:
        change = core.expire(now_ms, self.rules_of(led.key.group_id).limits)
        if change is not None:
            written = finish_now(self._commit_or_log(led, core, change))
            self._in_background(written, "expire")
        next_ms = core.next_deadline_ms()
        if next_ms is not None:
            # A lock whose expiry is being written keeps its deadline, so check it again soon.
            self._set_lock(led, max(next_ms, now_ms + _EXPIRE_AGAIN_MS))

    # --- forgetting -----------------------------------------------------------------------------

    def forget(self, led: LedSharePartition) -> None:
        """Unload a share partition; the next fetch loads it, here or on another node."""
        led.is_live = False
        if self._led.get(led.key) is led:
            del self._led[led.key]
            of_group = self._by_group[led.key.group_id]
            del of_group[led.key]
            if not of_group:
                del self._by_group[led.key.group_id]
            self._locks.cancel(led.key)  # Unless replaced: the timer is then that of the new one.
        self._wake(led)

    def letters_written(self, led: LedSharePartition) -> None:
        """Unload a share partition that was kept only for its dead letters."""
        self._forget_unused(led.key.group_id)

    def _forget_unused(self, group_id: str) -> None:
        """Unload the partitions of a group without sessions: their offsets may be altered.

        One whose dead letters are being written is kept, or they would be written twice.
        """
        if not self.sessions.serves(group_id):
            led = self._by_group.get(group_id, {}).values()
            self._forget_all(one for one in led if not self.dead_letters.is_writing(one))

    def forget_moved(self) -> None:
        """Unload the share partitions whose leadership has ended; waiting members look again."""
        self._forget_all(led for led in self._led.values() if not led.is_current)

    def forget_topics(self, topic_ids: "Iterable[Uuid]") -> None:
        gone = set(topic_ids)
        self._forget_all(led for led in self._led.values() if led.key.topic_id in gone)

    def _forget_all(self, found: Iterable[LedSharePartition]) -> None:
        for led in list(found):
            self.forget(led)

    def stop(self) -> None:
        self._locks.stop()
        self._forget_all(self._led.values())

    def _wake(self, led: LedSharePartition) -> None:
        if led.waiters:
            self._wake_ups.changed(led)

    def _in_background(self, work: Coroutine[Any, Any, None] | None, name: str) -> None:
        if work is not None:
            self._tasks.start(work, f"{name} shared records")


def leader_error(error: KafkaError) -> KafkaError:
    """Return the error for members when the share coordinator rejects their leader."""
    match error:
        case NotCoordinator() | CoordinatorNotAvailable() | CoordinatorLoadInProgress():
            return CoordinatorNotAvailable(str(error))
        case FencedLeaderEpoch() | FencedStateEpoch():
            return NotLeaderOrFollower(str(error))
        case GroupIdNotFound() | UnknownTopicOrPartition():
            return error
        case _:
            return UnknownServerError(str(error))
