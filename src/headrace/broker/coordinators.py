"""The shell of all coordinators: loads, leads and writes the partitions of an internal topic.

A *shard* is the state that one partition of an internal topic describes. The leader of the
partition owns the shard:

- When the node becomes leader it replays the log, a slice per turn of the loop. Requests get
  COORDINATOR_LOAD_IN_PROGRESS until the replay ends.
- When the node stops leading it drops the shard. Waiting requests get NOT_COORDINATOR.

A decision (`coordination/effects.py`) is carried out without a pause: its records are appended as
one batch and replayed into the shard, and its timers are set. The answers are sent when the high
watermark covers the batch. With one replica it does so immediately, so a heartbeat or a commit
needs no task.

With several replicas the state is ahead of the high watermark, and a failover may take the newest
records back. So every answer that depends on the state waits for the records written before it: a
decision without records, and a read (`when_committed`).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from headrace.broker.loop_timers import LoopTimers
from headrace.coordination.batches import encode_batch, records_in
from headrace.coordination.effects import Effects, RecordFacts, ShardState, Ticket, TimerKey
from headrace.coordination.partitioning import partition_for
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
from headrace.storage.producer_replay import marker_of

if TYPE_CHECKING:
    from headrace.metadata.image import MetadataImage, TopicImage
    from headrace.peers.pool import Peers
    from headrace.replication.partition import Partition
    from headrace.replication.partitions import Partitions
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Tasks

_log = logging.getLogger(__name__)

S = TypeVar("S", bound=ShardState)
R = TypeVar("R")

_LOAD_SLICE_BYTES = 128 * 1024
_KEYS_KNOWN_MAX = 50_000
_TIMER_RETRY_MS = 1_000
_COMMIT_TIMEOUT_S = 5.0
"""The time that a request waits for the replicas, as in Kafka; the client then asks again."""


class CoordinatorResources(NamedTuple):
    """The parts of a node that its coordinators share."""

    node_id: int
    partitions: "Partitions"
    clock: "Clock"
    timers: "ShardTimers"
    create_topic: Callable[[str], Awaitable[None]]
    """Creates an internal topic unless it exists."""
    channels: "Callable[[str], Peers]"
    """Opens channels to other brokers for one purpose. A broker answers the requests of a
    connection in order, so those that wait for commits must not delay others."""
    tasks: "Tasks"


ShardTimers = LoopTimers[tuple["Shard[Any]", TimerKey]]


class _Parked(NamedTuple):
    """Effects whose records are written but not committed yet."""

    end_offset: int
    effects: Effects[Any]
    done: asyncio.Future[Any]
    deadline_s: float


class Shard(Generic[S]):
    """The state of one partition, and the only writer of that partition."""

    __slots__ = (
        "_clock",
        "_expiry",
        "_parked",
        "_timer_keys",
        "_timers",
        "is_live",
        "leader_epoch",
        "partition",
        "state",
    )

    def __init__(self, node: CoordinatorResources, partition: "Partition", state: S) -> None:
        self._clock = node.clock
        self._timers = node.timers
        self._parked: deque[_Parked] = deque()
        self._expiry: asyncio.TimerHandle | None = None
        self._timer_keys: set[TimerKey] = set()
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state = state
        self.is_live = True
        partition.on_committed = self.on_committed

    def apply(self, effects: Effects[R]) -> R | Coroutine[Any, Any, R] | None:
        """Write, replay, set timers, answer; returns the reply, or a coroutine for it.

        Without records the answers wait for the records of earlier decisions.
        """
        if not self.is_live:
            raise NotCoordinator(f"{self.name} is no longer led by this broker")
        if effects.records:
            end_offset = self._write(effects)
        else:
            end_offset = self._parked[-1].end_offset if self._parked else 0
        if effects.on_written is not None:
            effects.on_written()
        if effects.timers:
            self._set_timers(effects.timers)
        if not end_offset or self.partition.is_committed(end_offset):
            for ticket, answer in effects.answers:
                resolve(ticket, answer)
            return effects.reply
        return _result_of(self._park(end_offset, effects))

    def post(self, effects: Effects[Any]) -> None:
        """Carry out effects without a request that waits for the reply."""
        reply = self.apply(effects)
        if reply is not None and isinstance(reply, Coroutine):
            reply.close()

    async def applied(self, effects: Effects[R]) -> R:
        """Return the reply to a decision once its records are committed."""
        reply = self.apply(effects)
        return cast(R, await reply if isinstance(reply, Coroutine) else reply)

    def wait_for(self, end_offset: int) -> asyncio.Future[None] | None:
        """Make later answers wait until all records before an offset are committed.

        Returns None if they are. The future fails when the shard is given up.
        """
        if self.partition.is_committed(end_offset):
            return None
        if self._parked:
            end_offset = max(end_offset, self._parked[-1].end_offset)
        return self._park(end_offset, Effects())

    def settling(self) -> asyncio.Future[None] | None:
        """Return a future for the commit of all records that the state contains, or None."""
        return self.wait_for(self._parked[-1].end_offset) if self._parked else None

    async def settled(self) -> None:
        """Wait until all records that the state contains are committed."""
        settling = self.settling()
        if settling is not None:
            await settling

    def on_committed(self) -> None:
        """Answer the requests whose records are committed by now."""
        while self._parked and self.partition.is_committed(self._parked[0].end_offset):
            _, effects, done, _ = self._parked.popleft()
            for ticket, answer in effects.answers:
                resolve(ticket, answer)
            resolve(done, effects.reply)

    def _park(self, end_offset: int, effects: Effects[R]) -> "asyncio.Future[R]":
        loop = asyncio.get_running_loop()
        done: asyncio.Future[R] = loop.create_future()
        deadline_s = loop.time() + _COMMIT_TIMEOUT_S
        self._parked.append(_Parked(end_offset, effects, done, deadline_s))
        if self._expiry is None:
            self._expiry = loop.call_at(deadline_s, self._expire, loop)
        return done

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse requests that have waited too long; their records may still be committed.

        Their places are kept, so that later answers wait for these records as well.
        """
        now_s = max(loop.time(), self._expiry.when() if self._expiry is not None else 0.0)
        self._expiry = None
        for parked in self._parked:
            if parked.deadline_s > now_s:
                self._expiry = loop.call_at(parked.deadline_s, self._expire, loop)
                break
            resolve(
                parked.done,
                CoordinatorNotAvailable(f"the replicas of {self.name} do not follow; try again"),
            )

    def on_timer(self, key: TimerKey) -> None:
        """Apply the effects of a timer; retry later while the log rejects them."""
        self._timer_keys.discard(key)
        if not self.is_live:
            return
        try:
            self.post(self.state.on_timer(key, self._clock.now_ms()))
        except KafkaError as error:
            _log.warning(
                "coordinator timer postponed",
                extra={"timer": key[0], "shard": self.name, "error": str(error)},
            )
            if key not in self._timer_keys:
                self._set_timers({key: _TIMER_RETRY_MS})
        except Exception:
            _log.exception("coordinator timer failed", extra={"timer": key[0], "shard": self.name})

    def give_up(self) -> None:
        """Drop the state, because this node no longer leads the partition in this epoch."""
        self.is_live = False
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self.partition.on_committed == self.on_committed:
            self.partition.on_committed = None
        for key in self._timer_keys:
            self._timers.cancel((self, key))
        error = NotCoordinator(f"{self.name} is no longer led by this broker")
        for ticket in [*self.state.tickets(), *(parked.done for parked in self._parked)]:
            resolve(ticket, error)
        self._parked.clear()

    @property
    def is_ahead(self) -> bool:
        """Return whether the state contains records that are not committed."""
        return bool(self._parked)

    @property
    def name(self) -> str:
        return f"{self.partition.topic.name}-{self.partition.index}"

    def _write(self, effects: Effects[Any]) -> int:
        """Append the records as one batch and replay them; return the offset after the batch."""
        now_ms = self._clock.now_ms()
        partition = self.partition
        records, producer = effects.records, effects.producer
        try:
            batch = encode_batch(records, now_ms, producer)
            offset = partition.append_built(
                batch, len(records), now_ms, has_producer=producer is not None
            )
        except KafkaError as error:
            refusal = coordinator_error(error)
            if effects.on_refused is not None:
                self.post(effects.on_refused(refusal))
            raise refusal from error
        producer_id, epoch = producer or (-1, -1)
        if effects.apply_records is not None:
            effects.apply_records(RecordFacts(offset, now_ms, producer_id, epoch))
        else:
            replay = self.state.replay
            for record_offset, record in enumerate(records, offset):
                replay(record, RecordFacts(record_offset, now_ms, producer_id, epoch))
        return offset + len(records)

    def _set_timers(self, timers: dict[TimerKey, int | None]) -> None:
        all_timers, monotonic_ms = self._timers, self._clock.monotonic_ms()
        for key, delay_ms in timers.items():
            if delay_ms is None:
                self._timer_keys.discard(key)
                all_timers.cancel((self, key))
            else:
                self._timer_keys.add(key)
                all_timers.set((self, key), monotonic_ms + delay_ms)


def shard_timers(clock: "Clock") -> "ShardTimers":
    """Return the timers that all coordinators of a node share."""
    return LoopTimers(clock, lambda timer, now_ms: timer[0].on_timer(timer[1]))


class Coordinator(Generic[S]):
    """The shards of one internal topic on this node."""

    def __init__(
        self, node: CoordinatorResources, topic: str, new_state: Callable[[int], S]
    ) -> None:
        self._node = node
        self.topic = topic
        self.shards: dict[int, Shard[S]] = {}
        self._new_state = new_state
        self._image: TopicImage | None = None
        self._loads: deque[_Load[S]] = deque()
        self._loading: dict[int, _Load[S]] = {}
        self._records_loaded = 0
        self._shard_of: dict[str, Shard[S]] = {}
        self._creating: asyncio.Future[None] | None = None
        self._is_stopped = False

    # --- finding ------------------------------------------------------------------------------

    def shard_for(self, key: str) -> Shard[S]:
        """Return the shard of a group or id; raise NOT_COORDINATOR or a load in progress."""
        shard = self._shard_of.get(key)
        if shard is not None:
            return shard
        if self._image is None:
            raise NotCoordinator(f"{self.topic} does not exist yet; find the coordinator first")
        index = partition_for(key, len(self._image.partitions))
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
        """Return the broker that coordinates a key; the topic must exist."""
        if self._image is None:
            raise CoordinatorNotAvailable(f"{self.topic} does not exist yet")
        partitions = self._image.partitions
        return partitions[partition_for(key, len(partitions))].leader

    @property
    def exists(self) -> bool:
        """True once the topic has been created."""
        return self._image is not None

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def partition_states(self) -> dict[str, int]:
        """Count the partitions that are served, and those that are being loaded."""
        return {"active": len(self.shards), "loading": len(self._loading)}

    async def ensure_topic(self) -> None:
        """Create the topic unless it exists; concurrent callers share one request."""
        while not self.exists:
            if self._creating is None:
                self._creating = asyncio.ensure_future(self._node.create_topic(self.topic))
                self._creating.add_done_callback(self._created)
            await asyncio.shield(self._creating)
            if not self.exists:
                raise CoordinatorNotAvailable(f"{self.topic} is being created")

    def _created(self, creating: asyncio.Future[None]) -> None:
        self._creating = None
        if not creating.cancelled():
            creating.exception()  # Marks the error as seen, in case every caller is gone.

    def for_each(self, decide: Callable[[S], Iterable[Effects[None]]]) -> None:
        """Carry out a decision in every shard, in as many batches as it takes."""
        for shard in list(self.shards.values()):
            try:
                for effects in decide(shard.state):
                    shard.post(effects)
            except KafkaError as error:
                _log.warning(
                    "coordinator change not written",
                    extra={"shard": shard.name, "error": str(error)},
                )

    def listed(self, answer: R) -> R | Coroutine[Any, Any, R]:
        """Return an answer that lists what the shards contain, once all of that is committed.

        Clients retry a list only if it fails with COORDINATOR_LOAD_IN_PROGRESS.
        """
        waiting = when_committed(self.shards.values(), answer)
        return _listed(waiting) if isinstance(waiting, Coroutine) else waiting

    def stop(self) -> None:
        """Drop all shards for good; waiting requests get NOT_COORDINATOR."""
        self._is_stopped = True
        self._forget()

    # --- following the metadata -----------------------------------------------------------------

    def follow(self, image: "MetadataImage") -> None:
        """Load the partitions that this node now leads, and drop the others."""
        if self._is_stopped:
            return
        topic, before = image.topics.get(self.topic), self._image
        if topic is before:
            return
        if before is not None and (topic is None or topic.id != before.id):
            self._forget()
        if topic is None:
            return
        if before is None or len(topic.partitions) != len(before.partitions):
            self._shard_of.clear()
        self._image = topic
        for index in range(len(topic.partitions)):
            self._follow_partition(topic, index)

    def _follow_partition(self, topic: "TopicImage", index: int) -> None:
        """Load the state of a partition when this node begins to lead it, or a new epoch of it.

        Between two epochs another node may have led and written, so the state is loaded again.
        """
        image = topic.partitions[index]
        loading = self._loading.get(index)
        shard = self.shards.get(index) or (loading and loading.shard)
        leads = image.leader == self._node.node_id
        if shard and not (leads and shard.leader_epoch == image.leader_epoch):
            self._give_up(index)
            shard = None
        if leads and not shard:
            partition = self._node.partitions.led(self.topic, index)
            self._begin_load(_Load(Shard(self._node, partition, self._new_state(index))))

    def _forget(self) -> None:
        for index in [*self.shards, *self._loading]:
            self._give_up(index)
        self._image = None

    def _give_up(self, index: int) -> None:
        loading = self._loading.pop(index, None)
        shard = self.shards.pop(index, None) or (loading.shard if loading is not None else None)
        if shard is not None:
            self._shard_of.clear()
            shard.give_up()

    # --- loading --------------------------------------------------------------------------------

    def _begin_load(self, load: "_Load[S]") -> None:
        """Queue a load; a partition that never had a record is ready immediately."""
        index = load.shard.partition.index
        self._loading[index] = load
        if load.is_empty:
            self._loaded(load)
            return
        if not self._loads:
            asyncio.get_running_loop().call_soon(self._load_some)
        self._loads.append(load)

    def _load_some(self) -> None:
        load = self._loads[0]
        try:
            is_done = not load.shard.is_live or load.read_slice()
        except Exception as error:
            # A coordinator with a part of the state would be worse than none.
            _log.error(
                "coordinator partition not loaded",
                extra={"shard": load.shard.name, "error": str(error)},
                exc_info=not isinstance(error, KafkaError),
            )
            self._loading.pop(load.shard.partition.index, None)
            self._loads.popleft()
        else:
            if is_done:
                self._loads.popleft()
                self._loaded(load)
        if self._loads:
            asyncio.get_running_loop().call_soon(self._load_some)

    def _loaded(self, load: "_Load[S]") -> None:
        shard = load.shard
        index = shard.partition.index
        if self._loading.get(index) is not load:
            return
        del self._loading[index]
        self.shards[index] = shard
        self._records_loaded += load.records
        if self._records_loaded and not self._loading:
            _log.info(
                "coordinator loaded", extra={"topic": self.topic, "records": self._records_loaded}
            )
            self._records_loaded = 0
        log = shard.partition.log
        if log is not None:
            # The log of a new leader may end with records that are not committed yet.
            shard.wait_for(log.log_end_offset)
        try:
            shard.post(shard.state.on_loaded(self._node.clock.now_ms()))
        except KafkaError as error:
            _log.warning(
                "first step of a loaded coordinator partition not written",
                extra={"shard": shard.name, "error": str(error)},
            )

    def transaction_ended(
        self, partition: "Partition", producer_id: int, producer_epoch: int, *, committed: bool
    ) -> None:
        """End a transaction in a shard whose partition received the marker."""
        shard = self.shards.get(partition.index)
        if shard is not None and shard.partition is partition:
            shard.state.end_transaction(producer_id, producer_epoch, committed=committed)
            shard.wait_for(partition.online_log().log_end_offset)


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
        """Replay the next slice; return True at the end of the log."""
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


def when_committed(shards: Collection[Shard[Any]], answer: R) -> R | Coroutine[Any, Any, R]:
    """Return an answer that was read from shards; a coroutine if a part of it may be taken back.

    The coroutine raises NOT_COORDINATOR if this node stops leading one of them meanwhile.
    """
    for shard in shards:
        if shard.is_ahead:
            waits = [settling for one in shards if (settling := one.settling()) is not None]
            return _after(waits, answer)
    return answer


async def _after(waits: Iterable[asyncio.Future[None]], answer: R) -> R:
    for settling in waits:
        await settling
    return answer


async def _listed(waiting: Coroutine[Any, Any, R]) -> R:
    try:
        return await waiting
    except NotCoordinator as error:
        raise CoordinatorLoadInProgress(str(error)) from error


def resolve(ticket: Ticket, answer: Any) -> None:
    """Answer a waiting request, whose client may be gone."""
    if ticket.done():
        return
    if isinstance(answer, KafkaError):
        ticket.set_exception(answer)
        ticket.exception()  # Marks the error as seen, in case the client is gone.
    else:
        ticket.set_result(answer)


async def _result_of(done: asyncio.Future[R]) -> R:
    return await done


def coordinator_error(error: KafkaError) -> KafkaError:
    """Return the error for clients of a coordinator whose log cannot be written."""
    if isinstance(error, (KafkaStorageError, NotLeaderOrFollower)):
        return NotCoordinator(str(error))
    if isinstance(error, (MessageTooLarge, RecordListTooLarge)):
        return UnknownServerError(f"the coordinator's records are too large: {error}")
    return CoordinatorNotAvailable(str(error)) if error.retriable else error
