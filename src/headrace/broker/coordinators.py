"""The shell of all coordinators: state by partition of an internal topic, loaded, led, written.

A *shard* is the state that one partition of an internal topic describes. The node that leads the
partition has the shard and decides on it; when it begins to lead it replays the log, a slice per
turn of the loop, and requests meanwhile get COORDINATOR_LOAD_IN_PROGRESS; when it stops leading it
drops the shard and those who wait on it get NOT_COORDINATOR.

A decision (`coordination/effects.py`) is carried out in one go: its records become one batch, the
batch is appended, the records are replayed into the shard, timers are set, and the answers go out
when the high watermark covers the batch. With one replica that is at once, so a heartbeat or a
commit is answered without a task.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from headrace.broker.topics.internal_topics import create_internal
from headrace.coordination.batches import encode_batch, records_in
from headrace.coordination.effects import Effects, RecordFacts, ShardState, Ticket, TimerKey
from headrace.coordination.partitioning import partition_for
from headrace.coordination.timers import TimerQueue
from headrace.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotLeaderOrFollower,
    RecordListTooLarge,
    UnknownServerError,
)
from headrace.protocol.batches import headers
from headrace.protocol.uuids import ZERO, Uuid
from headrace.storage.coordinator_append import append_built
from headrace.storage.producer_replay import marker_of

if TYPE_CHECKING:
    from headrace.broker.node import Broker
    from headrace.broker.partitions import Partition
    from headrace.metadata.image import MetadataImage, TopicImage

log = logging.getLogger(__name__)

S = TypeVar("S", bound=ShardState)
R = TypeVar("R")

_LOAD_SLICE_BYTES = 128 * 1024
_KEYS_KNOWN_MAX = 50_000
_RING_AGAIN_MS = 1_000


class Timers:
    """The one heap of timers of all shards, behind one timer of the event loop."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._now_ms = broker.clock.monotonic_ms
        self._queue: TimerQueue[tuple[Shard[Any], TimerKey]] = TimerQueue()
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0

    def set(self, shard: "Shard[Any]", key: TimerKey, delay_ms: int) -> None:
        at_ms = self._now_ms() + delay_ms
        self._queue.set((shard, key), at_ms)
        self._arm(at_ms)

    def cancel(self, shard: "Shard[Any]", key: TimerKey) -> None:
        self._queue.cancel((shard, key))

    def _arm(self, at_ms: int) -> None:
        """Look at the heap then, at the latest."""
        if self._armed is not None:
            if self._armed_ms <= at_ms:
                return
            self._armed.cancel()
        self._armed_ms = at_ms
        delay_s = max(at_ms - self._now_ms(), 0) / 1000
        self._armed = self._broker.loop.call_later(delay_s, self._run)

    def _run(self) -> None:
        self._armed = None
        for shard, key in self._queue.pop_due(self._now_ms()):
            shard.ring(key)
        if (next_ms := self._queue.next_ms) is not None:
            self._arm(next_ms)  # What ringing has set may be later than what was there.


class _Parked(NamedTuple):
    """Effects whose records are written but not committed yet."""

    end_offset: int
    effects: Effects[Any]
    done: asyncio.Future[Any]


class Shard(Generic[S]):
    """The state of one partition, and the hand that writes it."""

    __slots__ = ("_broker", "_parked", "_timer_keys", "is_live", "partition", "state")

    def __init__(self, broker: "Broker", partition: "Partition", state: S) -> None:
        self._broker = broker
        self._parked: deque[_Parked] = deque()
        self._timer_keys: set[TimerKey] = set()
        self.partition = partition
        self.state = state
        self.is_live = True

    def carry_out(self, effects: Effects[R]) -> R | Coroutine[Any, Any, R] | None:
        """Write, replay, set timers, answer; returns the reply, or what to await for it."""
        end_offset = self._write(effects) if effects.records else 0
        if effects.on_written is not None:
            effects.on_written()
        if effects.timers:
            self._set_timers(effects.timers)
        if not end_offset or self._is_committed(end_offset):
            for ticket, answer in effects.answers:
                give(ticket, answer)
            return effects.reply
        done: asyncio.Future[R] = self._broker.loop.create_future()
        self._parked.append(_Parked(end_offset, effects, done))
        return _result_of(done)

    async def carried_out(self, effects: Effects[R]) -> R:
        """The reply to a decision, once it is written and committed."""
        reply = self.carry_out(effects)
        return cast(R, await reply if isinstance(reply, Coroutine) else reply)

    def on_high_watermark(self) -> None:
        """More of the log is committed: hand out what waited for it."""
        while self._parked and self._is_committed(self._parked[0].end_offset):
            _, effects, done = self._parked.popleft()
            for ticket, answer in effects.answers:
                give(ticket, answer)
            give(done, effects.reply)

    def ring(self, key: TimerKey) -> None:
        """A timer has run out; what it leads to is tried again while the log refuses it."""
        self._timer_keys.discard(key)
        if not self.is_live:
            return
        try:
            self.carry_out(self.state.on_timer(key, self._broker.clock.now_ms()))
        except KafkaError as error:
            log.warning("%s of %s: %s", key[0], self.name, error)
            if key not in self._timer_keys:
                self._set_timers({key: _RING_AGAIN_MS})
        except Exception:
            log.exception("%s of %s failed", key[0], self.name)

    def give_up(self) -> None:
        """This node does not lead the partition any more."""
        self.is_live = False
        for key in self._timer_keys:
            self._broker.timers.cancel(self, key)
        error = NotCoordinator(f"{self.name} is not led by this broker any more")
        for ticket in [*self.state.tickets(), *(parked.done for parked in self._parked)]:
            give(ticket, error)
        self._parked.clear()

    @property
    def name(self) -> str:
        return f"{self.partition.topic.name}-{self.partition.index}"

    def _write(self, effects: Effects[Any]) -> int:
        """Append the records as one batch and replay them; the offset after it."""
        now_ms = self._broker.clock.now_ms()
        partition = self.partition
        records, producer = effects.records, effects.producer
        try:
            batch = encode_batch(records, now_ms, producer)
            partition_log = partition.log or partition.online_log()
            offset = append_built(
                partition_log,
                batch,
                len(records),
                partition.leader_epoch,
                now_ms,
                has_producer=producer is not None,
            )
        except KafkaError as error:
            refusal = as_told_by_coordinator(error)
            if effects.on_refused is not None:
                self.carry_out(effects.on_refused(refusal))
            raise refusal from error
        partition_log.advance_high_watermark(partition_log.log_end_offset)
        producer_id, epoch = producer or (-1, -1)
        if effects.take_in is not None:
            effects.take_in(RecordFacts(offset, now_ms, producer_id, epoch))
        else:
            replay = self.state.replay
            for place, record in enumerate(records, offset):
                replay(record, RecordFacts(place, now_ms, producer_id, epoch))
        if partition.waiters:
            self._broker.wake_ups.changed(partition)
        return offset + len(records)

    def _is_committed(self, end_offset: int) -> bool:
        partition_log = self.partition.log
        return partition_log is not None and partition_log.high_watermark >= end_offset

    def _set_timers(self, timers: dict[TimerKey, int | None]) -> None:
        all_timers = self._broker.timers
        for key, delay_ms in timers.items():
            if delay_ms is None:
                self._timer_keys.discard(key)
                all_timers.cancel(self, key)
            else:
                self._timer_keys.add(key)
                all_timers.set(self, key, delay_ms)


class Coordinator(Generic[S]):
    """The shards of one internal topic that live on this node."""

    def __init__(self, broker: "Broker", topic: str, new_state: Callable[[int], S]) -> None:
        self._broker = broker
        self.topic = topic
        self.shards: dict[int, Shard[S]] = {}
        self._new_state = new_state
        self._topic_id: Uuid = ZERO
        self._count = 0
        self._loads: deque[_Load[S]] = deque()
        self._loading: dict[int, _Load[S]] = {}
        self._records_loaded = 0
        self._shard_of: dict[str, Shard[S]] = {}
        self._creating: asyncio.Future[None] | None = None
        self._is_stopped = False

    # --- finding ------------------------------------------------------------------------------

    def shard_for(self, key: str) -> Shard[S]:
        """The shard of a group or id, or the error that says where else or when to ask."""
        shard = self._shard_of.get(key)
        if shard is not None:
            return shard
        if not self._count:
            raise NotCoordinator(f"{self.topic} does not exist yet; find the coordinator first")
        index = partition_for(key, self._count)
        shard = self.shards.get(index)
        if shard is None:
            if index in self._loading:
                raise CoordinatorLoadInProgress(f"{self.topic}-{index} is being loaded")
            raise NotCoordinator(f"{self.topic}-{index} is led by another broker")
        if len(self._shard_of) >= _KEYS_KNOWN_MAX:
            self._shard_of.clear()
        self._shard_of[key] = shard
        return shard

    def leader_of(self, key: str) -> int:
        """The broker that coordinates a key; the topic must be there."""
        topic = self._broker.image.topics.get(self.topic)
        if topic is None:
            raise CoordinatorNotAvailable(f"{self.topic} does not exist yet")
        return topic.partitions[partition_for(key, len(topic.partitions))].leader

    @property
    def exists(self) -> bool:
        """Whether the topic has been created."""
        return self._count > 0

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def partition_states(self) -> dict[str, int]:
        """How many partitions are served, and how many are being loaded."""
        return {"active": len(self.shards), "loading": len(self._loading)}

    async def ensure_topic(self) -> None:
        """Create the topic if it is not there; many may ask at once."""
        while not self._count:
            if self._creating is None:
                self._creating = asyncio.ensure_future(create_internal(self._broker, self.topic))
                self._creating.add_done_callback(self._created)
            await asyncio.shield(self._creating)
            if not self._count:
                raise CoordinatorNotAvailable(f"{self.topic} is being created")

    def _created(self, creating: asyncio.Future[None]) -> None:
        self._creating = None
        if not creating.cancelled():
            creating.exception()  # Each who waited is told; nobody need be.

    def for_each(self, decide: Callable[[S], Iterable[Effects[None]]]) -> None:
        """Have every shard decide about some news, in as many batches as it takes."""
        for shard in list(self.shards.values()):
            try:
                for effects in decide(shard.state):
                    shard.carry_out(effects)
            except KafkaError as error:
                log.warning("%s: %s", shard.name, error)

    def stop(self) -> None:
        """Give up all shards for good; whoever waits is sent elsewhere."""
        self._is_stopped = True
        self._forget()

    # --- following the metadata -----------------------------------------------------------------

    def follow(self, image: "MetadataImage") -> None:
        """Take up the partitions that this node leads by now, give up the others."""
        if self._is_stopped:
            return
        topic = image.topics.get(self.topic)
        if topic is None or topic.id != self._topic_id:
            self._forget()
        if topic is None:
            return
        if len(topic.partitions) != self._count:
            self._shard_of.clear()
        self._topic_id = topic.id
        self._count = len(topic.partitions)
        for index in range(self._count):
            self._follow_partition(topic, index)

    def _follow_partition(self, topic: "TopicImage", index: int) -> None:
        leads = topic.partitions[index].leader == self._broker.node_id
        if leads and index not in self.shards and index not in self._loading:
            partition = self._broker.partitions.find(self.topic, index)
            self._begin_load(_Load(Shard(self._broker, partition, self._new_state(index))))
        elif not leads:
            self._give_up(index)

    def _forget(self) -> None:
        for index in [*self.shards, *self._loading]:
            self._give_up(index)
        self._count = 0
        self._topic_id = ZERO

    def _give_up(self, index: int) -> None:
        loading = self._loading.pop(index, None)
        shard = self.shards.pop(index, None) or (loading.shard if loading is not None else None)
        if shard is not None:
            self._shard_of.clear()
            shard.give_up()

    # --- loading --------------------------------------------------------------------------------

    def _begin_load(self, load: "_Load[S]") -> None:
        """A partition that never had a record is ready at once, even without files."""
        index = load.shard.partition.index
        self._loading[index] = load
        if load.is_empty:
            self._loaded(load)
            return
        if not self._loads:
            self._broker.loop.call_soon(self._load_some)
        self._loads.append(load)

    def _load_some(self) -> None:
        load = self._loads[0]
        try:
            is_done = not load.shard.is_live or load.read_slice()
        except Exception as error:
            # Better no coordinator for these keys than one that has forgotten something.
            unexpected = not isinstance(error, KafkaError)
            log.error("%s cannot be loaded: %s", load.shard.name, error, exc_info=unexpected)
            self._loading.pop(load.shard.partition.index, None)
            self._loads.popleft()
        else:
            if is_done:
                self._loads.popleft()
                self._loaded(load)
        if self._loads:
            self._broker.loop.call_soon(self._load_some)

    def _loaded(self, load: "_Load[S]") -> None:
        shard = load.shard
        index = shard.partition.index
        if self._loading.get(index) is not load:
            return
        del self._loading[index]
        self.shards[index] = shard
        self._records_loaded += load.records
        if self._records_loaded and not self._loading:
            log.info("loaded %s: %d records", self.topic, self._records_loaded)
            self._records_loaded = 0
        try:
            shard.carry_out(shard.state.on_loaded(self._broker.clock.now_ms()))
        except KafkaError as error:
            log.warning("%s: %s", shard.name, error)

    def transaction_ended(
        self, partition: "Partition", producer_id: int, producer_epoch: int, *, committed: bool
    ) -> None:
        """A marker was written to a partition of the topic: the shard has to know."""
        shard = self.shards.get(partition.index)
        if shard is not None and shard.partition is partition:
            shard.state.end_transaction(producer_id, producer_epoch, committed=committed)


class _Load(Generic[S]):
    """The replay of one partition's log, slice by slice."""

    def __init__(self, shard: Shard[S]) -> None:
        self.shard = shard
        self.records = 0
        self._offset = -1

    @property
    def is_empty(self) -> bool:
        partition = self.shard.partition
        if partition.log is None:
            return partition.make_log is not None
        return partition.log.log_start_offset == partition.log.log_end_offset

    def read_slice(self) -> bool:
        """Replay some more; true when the end of the log is reached."""
        source = self.shard.partition.online_log()
        if self._offset < source.log_start_offset:
            self._offset = source.log_start_offset
        if self._offset >= source.log_end_offset:
            return True
        data = source.read(self._offset, _LOAD_SLICE_BYTES, source.log_end_offset).read()
        state = self.shard.state
        for position, header in headers(data):
            if header.next_offset <= self._offset:
                continue
            if header.is_control:
                self._end_transaction(data, position, header.size)
            else:
                for record, facts in records_in(data, position, header):
                    state.replay(record, facts)
                    self.records += 1
            self._offset = header.next_offset
        return self._offset >= source.log_end_offset

    def _end_transaction(self, data: bytes, position: int, size: int) -> None:
        batch = memoryview(data)[position : position + size]
        marker = marker_of(batch)
        if marker is not None:
            ((_, header),) = headers(batch)
            self.shard.state.end_transaction(
                header.producer_id, header.producer_epoch, committed=marker.is_commit
            )


def give(ticket: Ticket, answer: Any) -> None:
    """Answer a request that waited; its client may be gone."""
    if ticket.done():
        return
    if isinstance(answer, KafkaError):
        ticket.set_exception(answer)
        ticket.exception()  # Whoever waits is told; nobody need.
    else:
        ticket.set_result(answer)


async def _result_of(done: asyncio.Future[R]) -> R:
    return await done


def as_told_by_coordinator(error: KafkaError) -> KafkaError:
    """What clients of a coordinator are told when its log cannot be written."""
    if isinstance(error, (KafkaStorageError, NotLeaderOrFollower)):
        return NotCoordinator(str(error))
    if isinstance(error, (MessageTooLarge, RecordListTooLarge)):
        return UnknownServerError(f"the coordinator's records are too large: {error}")
    return CoordinatorNotAvailable(str(error)) if error.retriable else error
