"""The share partitions that this node leads: loaded, given out, written, forgotten.

What a record's fate is, `shares/partition.py` decides. Here its decisions are written through the
persister (`persister.py`) before they count, locks are timed, and those who wait for records are
woken when some come back. A share partition lives from the first fetch of its group until the
partition's leader changes, its topic goes, or the last session of the group ends.
"""

import logging
from collections.abc import Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.broker.shares.dead_letters import DeadLetters
from headrace.broker.shares.locks import Locks
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
from headrace.runtime.eager import finish_now
from headrace.shares.partition import Acknowledgement, Acquired, SharePartition
from headrace.shares.runs import Change
from headrace.shares.selection import Wish
from headrace.shares.sessions import SessionKey, ShareSession, ShareSessions
from headrace.shares.state import UNINITIALIZED, SharePartitionKey, StateChange

if TYPE_CHECKING:
    from headrace.broker.delayed import Delayed
    from headrace.broker.node import Broker
    from headrace.broker.partitions import Partition
    from headrace.protocol.uuids import Uuid
    from headrace.storage.log import Log
    from headrace.storage.reading import LogSlice

_log = logging.getLogger(__name__)

_LOOK_AGAIN_MS = 100
_PASSES_MAX = 64  # Over batches that hold nothing for the group, in one turn of the loop.


class Taken(NamedTuple):
    """Records for one member, still in their file, and which of them it may have."""

    records: "LogSlice"
    acquired: list[Acquired]


class LedSharePartition:
    """A partition that this node leads, as one group sees it."""

    __slots__ = (
        "core",
        "failure",
        "is_live",
        "key",
        "leader_epoch",
        "partition",
        "rings_at_ms",
        "waiters",
    )

    def __init__(self, key: SharePartitionKey, partition: "Partition") -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.core: SharePartition | None = None  # None while it is being loaded.
        self.failure: KafkaError | None = None
        self.is_live = True
        self.rings_at_ms = 0  # When its locks are looked at, or 0 while it has none.
        self.waiters: dict[Delayed, None] = {}

    @property
    def name(self) -> str:
        return f"{self.partition.topic.name}-{self.partition.index} of {self.key.group_id}"


class SharePartitions:
    """Every share partition of this node, and the sessions of those who take from them."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._led: dict[SharePartitionKey, LedSharePartition] = {}
        self._by_group: dict[str, dict[SharePartitionKey, LedSharePartition]] = {}
        self._rules = Rules(broker)
        self._locks = Locks(broker, self._ring)
        self.sessions = ShareSessions(broker.settings.group_share_max_share_sessions)
        self.dead_letters = DeadLetters(broker, self)

    def rules_of(self, group_id: str) -> GroupRules:
        """A group's configs as of now."""
        return self._rules.of(group_id)

    # --- finding and loading --------------------------------------------------------------------

    def find(self, key: SharePartitionKey) -> LedSharePartition | None:
        """A share partition that is loaded."""
        led = self._led.get(key)
        return led if led is not None and led.core is not None else None

    def open(self, key: SharePartitionKey, partition: "Partition") -> LedSharePartition:
        """A share partition for a fetch; one that is not there yet begins to load."""
        led = self._led.get(key)
        if led is not None:
            if led.partition is partition and led.leader_epoch == partition.leader_epoch:
                return led
            self.forget(led)
        led = self._led[key] = LedSharePartition(key, partition)
        self._by_group.setdefault(key.group_id, {})[key] = led
        loading = finish_now(self._load(led))
        if loading is not None:
            self._broker.tasks.start(loading, f"load {led.name}")
        return led

    async def _load(self, led: LedSharePartition) -> None:
        try:
            core = await self._loaded(led)
        except KafkaError as error:
            led.failure = as_told_by_leader(error)
            self.forget(led)
            return
        except Exception:
            # Not kept: it would neither be loaded nor begin to be, and members would wait for ever.
            _log.exception("%s cannot be loaded", led.name)
            led.failure = UnknownServerError("the broker failed; its log has the details")
            self.forget(led)
            return
        if not led.is_live:
            return
        led.core = core
        self.dead_letters.collect(led)
        self._wake(led)

    async def _loaded(self, led: LedSharePartition) -> SharePartition:
        states = self._broker.share_persister
        state = await states.read(led.key, led.leader_epoch)
        log = led.partition.online_log()
        if state.start_offset != UNINITIALIZED:
            core = SharePartition.load(state, state.start_offset)
            core.drop_before(log.log_start_offset)
            return core
        start_offset = self._first_offset(led.key.group_id, log)
        # Written at once: else a crash before the first acknowledgement would let a group that
        # begins at the end begin at another end, and records between the two would be lost.
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
            found = log.offset_for_timestamp(self._broker.clock.now_ms() - duration_ms)
            if found is not None:
                return found.offset
        return log.high_watermark

    # --- giving out -----------------------------------------------------------------------------

    def take(
        self, led: LedSharePartition, wish: Wish, size_max: int, *, at_least_one: bool
    ) -> Taken | None:
        """Records for a member, if there are any that it may have now."""
        core = led.core
        if core is None:
            return None
        rules = self.rules_of(led.key.group_id)
        log = led.partition.online_log()
        if log.log_start_offset > core.start_offset:
            core.drop_before(log.log_start_offset)
        now_ms = self._broker.clock.monotonic_ms()
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
                acquired = core.acquire(wish, offset, batches, rules.limits, now_ms)
            except OSError as error:
                raise log.storage_error(error) from error
            if acquired:
                self._set_lock(led, now_ms + rules.limits.lock_duration_ms)
                records = batches.part(acquired[0].first, acquired[-1].last)
                return Taken(records, acquired)
            if core.fetch_offset() == offset:
                return None
        return None

    def read(self, led: LedSharePartition, taken: Taken) -> bytes:
        """The records themselves; if they cannot be read their locks run out and they come back."""
        try:
            return taken.records.read()
        except OSError as error:
            raise led.partition.online_log().storage_error(error) from error

    def readable_bytes(self, led: LedSharePartition, size_max: int) -> int:
        """How much there would be to send, for those who wait for more than a little."""
        core = led.core
        rules = self.rules_of(led.key.group_id)
        if core is None or not core.can_acquire(rules.limits):
            return 0
        log = led.partition.online_log()
        bound = log.last_stable_offset if rules.settings.is_read_committed else log.high_watermark
        offset = max(core.fetch_offset(), log.log_start_offset)
        return log.read(offset, size_max, bound).size if offset < bound else 0

    # --- taking back ----------------------------------------------------------------------------

    async def acknowledge(
        self, led: LedSharePartition, member_id: str, said: Sequence[Acknowledgement]
    ) -> None:
        """What a member says of its records, written when this returns."""
        assert led.core is not None, "only what is loaded can be found"
        limits = self.rules_of(led.key.group_id).limits
        now_ms = self._broker.clock.monotonic_ms()
        change = led.core.acknowledge(member_id, said, limits, now_ms)
        if change is not None:
            await self._commit(led, led.core, change)

    def end_session(self, key: SessionKey) -> Coroutine[Any, Any, None] | None:
        """A member's last request: what it still holds goes to others."""
        session = self.sessions.close(key)
        return None if session is None else finish_now(self._release(session))

    def disconnected(self, connection: object) -> None:
        """A member's connection is gone, and with it the sessions that it began there."""
        for session in self.sessions.disconnect(connection):
            self._in_background(finish_now(self._release(session)), "release")

    async def _release(self, session: ShareSession) -> None:
        group_id, member_id = session.key
        for target in session.targets:
            led = self.find(SharePartitionKey(group_id, target.topic_id, target.partition))
            if led is None or led.core is None:
                continue
            change = led.core.release(member_id, self.rules_of(group_id).limits)
            if change is not None:
                await self._commit_or_log(led, led.core, change)
        self._forget_unused(group_id)

    async def archive(self, led: LedSharePartition, letter: Acquired) -> None:
        """A dead letter is written: its records are done with."""
        if led.core is None or not led.is_live:
            return
        change = led.core.archive(letter.first, letter.last)
        if change is not None:
            await self._commit(led, led.core, change)

    async def _commit(self, led: LedSharePartition, core: SharePartition, change: Change) -> None:
        """Write a change, then let it count; if it cannot be written nothing has happened."""
        try:
            await self._write(led, core, change)
        except BaseException as error:
            core.roll_back(change)
            if isinstance(error, KafkaError):
                raise as_told_by_leader(error) from error
            raise
        self._apply(led, core, change)

    async def _commit_or_log(
        self, led: LedSharePartition, core: SharePartition, change: Change
    ) -> None:
        """What nobody asked for counts even if it cannot be written: nobody else has the records.

        The next leader would give them out again as well, only with one delivery less counted.
        """
        try:
            await self._write(led, core, change)
        except KafkaError as error:
            _log.warning("%s: records that came back were not written: %s", led.name, error)
        except Exception:
            _log.exception("%s: records that came back were not written", led.name)
        self._apply(led, core, change)

    async def _write(self, led: LedSharePartition, core: SharePartition, change: Change) -> None:
        try:
            await self._broker.share_persister.write(
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
        """Only the lock of a partition that runs out first needs a timer."""
        if led.rings_at_ms and led.rings_at_ms <= at_ms:
            return
        led.rings_at_ms = at_ms
        self._locks.set(led.key, at_ms)

    def _ring(self, key: SharePartitionKey, now_ms: int) -> None:
        led = self.find(key)
        if led is not None and led.core is not None:
            led.rings_at_ms = 0
            self._expire(led, led.core, now_ms)

    def _expire(self, led: LedSharePartition, core: SharePartition, now_ms: int) -> None:
        change = core.expire(now_ms, self.rules_of(led.key.group_id).limits)
        if change is not None:
            written = finish_now(self._commit_or_log(led, core, change))
            self._in_background(written, "expire")
        next_ms = core.next_deadline_ms()
        if next_ms is not None:
            # A lock whose end is just being written has no later one; it is looked at again soon.
            self._set_lock(led, max(next_ms, now_ms + _LOOK_AGAIN_MS))

    # --- forgetting -----------------------------------------------------------------------------

    def forget(self, led: LedSharePartition) -> None:
        """Let go of a share partition; whoever asks next loads it, here or elsewhere."""
        led.is_live = False
        if self._led.get(led.key) is led:
            del self._led[led.key]
            of_group = self._by_group[led.key.group_id]
            del of_group[led.key]
            if not of_group:
                del self._by_group[led.key.group_id]
            self._locks.cancel(led.key)  # If another has taken its place, the timer is that one's.
        self._wake(led)

    def letters_written(self, led: LedSharePartition) -> None:
        """A share partition that was kept for its dead letters may not be needed any more."""
        self._forget_unused(led.key.group_id)

    def _forget_unused(self, group_id: str) -> None:
        """Without sessions a group's partitions may be loaded elsewhere, or given new offsets.

        One whose dead letters are just being written is kept: it would write them twice.
        """
        if not self.sessions.serves(group_id):
            led = self._by_group.get(group_id, {}).values()
            self._forget_all(one for one in led if not self.dead_letters.is_at_work(one))

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
            self._broker.wake_ups.changed(led)

    def _in_background(self, work: Coroutine[Any, Any, None] | None, name: str) -> None:
        if work is not None:
            self._broker.tasks.start(work, f"{name} shared records")


def as_told_by_leader(error: KafkaError) -> KafkaError:
    """What members are told when the share coordinator refuses their partition's leader."""
    match error:
        case NotCoordinator() | CoordinatorNotAvailable() | CoordinatorLoadInProgress():
            return CoordinatorNotAvailable(str(error))
        case FencedLeaderEpoch() | FencedStateEpoch():
            return NotLeaderOrFollower(str(error))
        case GroupIdNotFound() | UnknownTopicOrPartition():
            return error
        case _:
            return UnknownServerError(str(error))
