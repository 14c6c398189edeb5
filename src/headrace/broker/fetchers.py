"""Replica fetchers: the connections through which this broker follows leaders.

There is one task, connection and fetch session for each leader (`num.replica.fetchers` more if
set). A task sends one Fetch request after the other and carries out the steps that
`replication/following.py` decides. All logs belong to the event loop, so a partition starts and
stops being followed without waiting for its fetcher; a late answer for it is ignored.

A fetch waits at the leader for records, and a connection serves one request at a time. When
partitions are added meanwhile, the fetcher opens another connection rather than let them wait: a
producer with acks=all waits for them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from headrace.errors import (
    ERROR_NAMES,
    CorruptMessage,
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    HeadraceError,
    InvalidFetchSessionEpoch,
    InvalidRecord,
    KafkaStorageError,
)
from headrace.metadata.image import NO_LEADER
from headrace.replication.following import (
    EARLIEST,
    LATEST,
    UNDEFINED_EPOCH,
    FetchLimits,
    Followed,
    Key,
    LeaderSession,
    Reset,
    Step,
    divergence,
    list_offsets,
    reset_by_end,
    reset_by_start,
)
from headrace.replication.metrics import FetcherMetrics, Lag

if TYPE_CHECKING:
    from headrace.broker.flushing import Flusher, Lost
    from headrace.broker.replication_throttles import ReplicationThrottle
    from headrace.metadata.image import MetadataImage
    from headrace.protocol.message import Message
    from headrace.protocol.schemas.fetch import FetchResponse, PartitionData
    from headrace.replication.metrics import FollowingMetrics
    from headrace.replication.partition import Partition
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Tasks
    from headrace.settings.broker import BrokerSettings
    from headrace.storage.log import Log

_log = logging.getLogger(__name__)

_TURN_S = 0.004
"""Time for which answers are applied before other tasks of the loop run."""
_RECONNECT_DELAY_MS = 50
_GATHER_MS = 10
"""Time for which added partitions gather before a waiting fetch is given up."""
_INTERRUPTION_INTERVAL_MS = 100
_WARN_AFTER_FAILURES = 8

_OF_SESSION = {
    FetchSessionIdNotFound.code,
    InvalidFetchSessionEpoch.code,
    FetchSessionTopicIdError.code,
}


class LeaderChannel(Protocol):
    """Requests to one broker, without ApiVersions; the next one after a loss connects again.

    `close` fails the request under way. Record sets of an answer are views that stay valid.
    """

    async def ask(
        self, request: "Message", *, version: int | None = None, timeout_s: float = 30.0
    ) -> Any: ...

    def close(self) -> None: ...


OpenChannel = Callable[[int, str], LeaderChannel]
"""Makes a channel to a broker under a client id; raises a `HeadraceError` without an address."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the node that fetchers use."""

    node_id: int
    loop: asyncio.AbstractEventLoop
    clock: "Clock"
    tasks: "Tasks"
    flusher: "Flusher"
    metrics: "FollowingMetrics"
    open_channel: OpenChannel
    broker_epoch: Callable[[], int]
    image: "Callable[[], MetadataImage]"
    settings: "Callable[[], BrokerSettings]"
    throttle: "ReplicationThrottle"
    checkpoint: Callable[[], Awaitable[None]]
    """Writes the recovery points, which a truncation has lowered."""

    def limits(self) -> FetchLimits:
        settings = self.settings()
        return FetchLimits(
            replica_id=self.node_id,
            broker_epoch=self.broker_epoch(),
            metadata_version=self.image().metadata_version,
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            partition_max_bytes=settings.replica_fetch_max_bytes,
            backoff_ms=settings.replica_fetch_backoff_ms,
        )


class ReplicaFetchers:
    """All partitions that this broker follows, by their leaders."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._by_partition: dict[Key, Fetcher] = {}
        self._failed: set[Key] = set()

    def __len__(self) -> int:
        return len(self._by_partition)

    def follow(self, partition: "Partition") -> None:
        """Fetch from the partition's leader; again after each change of its leader epoch."""
        self.stop(partition)
        leader_id = partition.image.leader
        if leader_id == NO_LEADER or partition.is_led or partition.log is None:
            return
        followed = Followed(partition)
        try:
            _prepare(followed, partition.online_log())
        except KafkaStorageError as error:
            self.fail(followed, str(error))
            return
        fetcher = self._fetcher(leader_id, followed.key)
        self._by_partition[followed.key] = fetcher
        fetcher.follow(followed)

    def stop(self, partition: "Partition") -> None:
        """Fetch a partition no longer: it has another leader, or its replica leaves this node."""
        key = partition.topic_id, partition.index
        if key in self._failed:
            self._failed.discard(key)
            self._surroundings.metrics.failed_partitions = len(self._failed)
        fetcher = self._by_partition.pop(key, None)
        if fetcher is not None:
            fetcher.stop(key)

    def fail(self, followed: Followed, reason: str) -> None:
        """Stop following a partition until its metadata changes."""
        self.wait_for_metadata(followed)
        _log.error(
            "partition not followed until its metadata changes",
            extra={**_where(followed.replica), "error": reason},
        )

    def wait_for_metadata(self, followed: Followed) -> None:
        """Stop following a partition; its leader has a newer epoch than this node."""
        self.stop(followed.replica)
        self._failed.add(followed.key)
        self._surroundings.metrics.failed_partitions = len(self._failed)

    def _fetcher(self, leader_id: int, key: Key) -> "Fetcher":
        number = (
            int.from_bytes(key[0][:4]) + key[1]
        ) % self._surroundings.settings().num_replica_fetchers
        name = leader_id, number
        fetcher = self._fetchers.get(name)
        if fetcher is None:
            fetcher = self._fetchers[name] = Fetcher(leader_id, number, self, self._surroundings)
            metrics = self._surroundings.metrics
            metrics.fetchers[fetcher.metrics.name] = fetcher.metrics
            self._surroundings.tasks.start(fetcher.run(), fetcher.metrics.name)
        return fetcher

    def ended(self, fetcher: "Fetcher") -> None:
        """Forget a fetcher that follows nothing any more."""
        del self._fetchers[fetcher.leader_id, fetcher.number]
        del self._surroundings.metrics.fetchers[fetcher.metrics.name]


class Fetcher:
    """Follows some partitions of one leader."""

    def __init__(
        self, leader_id: int, number: int, owner: ReplicaFetchers, surroundings: Surroundings
    ) -> None:
        self.leader_id = leader_id
        self.number = number
        self._owner = owner
        self._node = surroundings
        self._session = LeaderSession()
        self.metrics = FetcherMetrics(f"ReplicaFetcherThread-{number}-{leader_id}", self._lags)
        self._client_id = f"broker-{surroundings.node_id}-fetcher-{number}"
        self._channel: LeaderChannel | None = None
        self._news = asyncio.Event()
        self._is_asking = False
        self._was_interrupted = False
        self._interruption: asyncio.TimerHandle | None = None
        self._interrupted_ms = -_INTERRUPTION_INTERVAL_MS
        self._failures = 0

    # --- partitions -----------------------------------------------------------------------------

    def follow(self, followed: Followed) -> None:
        self._session.follow(followed)
        self._news.set()
        if self._is_asking and self._interruption is None:
            since_ms = self._node.clock.monotonic_ms() - self._interrupted_ms
            delay_ms = max(_GATHER_MS, _INTERRUPTION_INTERVAL_MS - since_ms)
            self._interruption = self._node.loop.call_later(delay_ms / 1000, self._interrupt)

    def stop(self, key: Key) -> None:
        self._session.stop(key)
        self._news.set()
        if self._is_asking and not self._session.followed:
            self._interrupt()

    def _interrupt(self) -> None:
        """Give up the request that waits at the leader; its session ends with the next one."""
        self._was_interrupted = True
        self._interrupted_ms = self._node.clock.monotonic_ms()
        self._close()

    def _lags(self) -> Iterator[Lag]:
        for one in self._session.followed.values():
            yield Lag(one.replica.topic.name, one.index, one.lag)

    # --- rounds ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Fetch until no partition is left."""
        try:
            while self._session.followed:
                try:
                    await self._round()
                except Exception:
                    _log.exception("fetch failed, retrying", extra={"leader": self.leader_id})
                    await self._recover()
        finally:
            self._close()
            self._owner.ended(self)

    async def _round(self) -> None:
        limits = self._node.limits()
        now_ms = self._node.clock.monotonic_ms()
        self._news.clear()
        if self._node.throttle.replicas:
            self._hold_back(now_ms)
        request = self._session.request(limits, now_ms)
        if request is None:
            due_ms = self._session.due_ms
            await self._pause(limits.backoff_ms if due_ms is None else due_ms - now_ms)
            return
        try:
            answer: FetchResponse = await self._ask(request, limits.fetch_version)
        except HeadraceError as error:
            await self._not_answered(error)
            return
        self.metrics.requests += 1
        if not self._session.answered(answer.session_id, answer.error_code):
            if answer.error_code not in _OF_SESSION:
                await self._not_answered(HeadraceError(ERROR_NAMES[answer.error_code]))
            return
        if self._failures:
            self._failures = 0
            _log.info("leader reached again", extra={"leader": self.leader_id})
        await self._apply(answer, limits)

    def _hold_back(self, now_ms: int) -> None:
        """Leave out throttled partitions that lag, while the throttle's rate is exceeded."""
        throttle = self._node.throttle
        if not throttle.is_exceeded():
            return
        due_ms = now_ms + throttle.delay_ms()
        for followed in self._session.followed.values():
            is_throttled = throttle.is_throttled(followed.replica.topic.name, followed.index)
            if is_throttled and followed.lag > 0:
                self._session.hold_back(followed, due_ms)

    async def _ask(self, request: "Message", version: int) -> Any:
        if self._channel is None:
            self._channel = self._node.open_channel(self.leader_id, self._client_id)
        timeout_s = self._node.settings().replica_socket_timeout_ms / 1000
        self._is_asking = True
        self._was_interrupted = False
        try:
            return await self._channel.ask(request, version=version, timeout_s=timeout_s)
        except asyncio.CancelledError:
            # A channel that is closed while it connects may end its request in this way.
            task = asyncio.current_task()
            if not self._was_interrupted or task is None or task.cancelling():
                raise
            raise HeadraceError("the request was given up") from None
        finally:
            self._is_asking = False
            if self._interruption is not None:
                self._interruption.cancel()
                self._interruption = None

    async def _not_answered(self, error: HeadraceError) -> None:
        if self._was_interrupted:
            self._was_interrupted = False
            self._session.lost()
            return
        if not self._failures:
            _log.info(
                "leader not reached, retrying",
                extra={"leader": self.leader_id, "error": str(error)},
            )
        await self._recover()

    async def _recover(self) -> None:
        """Wait longer after each failure, and begin with another connection and session."""
        self._session.lost()
        self._close()
        delay_max_ms = self._node.settings().replica_fetch_backoff_ms
        delay_ms = min(_RECONNECT_DELAY_MS << min(self._failures, 16), delay_max_ms)
        self._failures += 1
        self._news.clear()
        await self._pause(delay_ms)

    async def _pause(self, duration_ms: float) -> None:
        """Wait for a time, or until partitions are added or taken away."""
        try:
            async with asyncio.timeout(max(duration_ms, 0) / 1000):
                await self._news.wait()
        except TimeoutError:
            pass

    def _close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    # --- answers --------------------------------------------------------------------------------

    async def _apply(self, answer: "FetchResponse", limits: FetchLimits) -> None:
        """Carry out the steps of an answer, and let other tasks run in between."""
        out_of_range: list[Followed] = []
        unsynced: dict[Log, Followed] = {}
        was_truncated = False
        began = perf_counter()
        for topic in answer.responses:
            for one in topic.partitions:
                followed, step = self._session.step_after(
                    (topic.topic_id, one.partition_index), one
                )
                if followed is None or step is Step.IGNORE:
                    continue
                if step is Step.LOOK_UP:
                    out_of_range.append(followed)
                    continue
                was_truncated |= step is Step.TRUNCATE
                if (log := self._take(followed, step, one, limits)) is not None:
                    unsynced[log] = followed
                if perf_counter() - began > _TURN_S:
                    await asyncio.sleep(0)
                    began = perf_counter()
        if out_of_range:
            was_truncated |= await self._reset(out_of_range, limits)
        if was_truncated:
            await self._node.checkpoint()
        if unsynced:
            await self._sync(unsynced)

    def _take(
        self, followed: Followed, step: Step, answer: "PartitionData", limits: FetchLimits
    ) -> "Log | None":
        """Carry out one step; return the log if it must be synced before the next fetch."""
        now_ms = self._node.clock.monotonic_ms()
        try:
            log = followed.replica.online_log()
            match step:
                case Step.APPEND:
                    return self._append(followed, log, answer, limits)
                case Step.TRUNCATE:
                    self._truncate(followed, log, answer, limits)
                case Step.STOP if answer.error_code == FencedLeaderEpoch.code:
                    self._owner.wait_for_metadata(followed)
                case Step.STOP:
                    self._owner.fail(followed, ERROR_NAMES[answer.error_code])
                case _:
                    self._back_off(followed, ERROR_NAMES[answer.error_code], limits)
        except KafkaStorageError as error:
            self._storage_failed(followed, error, limits)
        except (CorruptMessage, InvalidRecord) as error:
            if not followed.failures:
                _log.error(
                    "records of the leader refused, retrying",
                    extra={
                        **_where(followed.replica),
                        "offset": followed.fetch_offset,
                        "error": str(error),
                    },
                )
            self._session.back_off(followed, now_ms, limits.backoff_ms)
        return None

    def _append(
        self, followed: Followed, log: "Log", answer: "PartitionData", limits: FetchLimits
    ) -> "Log | None":
        records = answer.records
        partition = followed.replica
        now_ms = self._node.clock.now_ms()
        taken_bytes = 0
        if records:
            taken_bytes = partition.append_fetched(memoryview(records), now_ms)
            self.metrics.bytes += taken_bytes
            self._node.metrics.bytes_in += taken_bytes
            if self._node.throttle.is_throttled(partition.topic.name, followed.index):
                self._node.throttle.record(taken_bytes)
        partition.follow_offsets(answer.high_watermark, answer.log_start_offset)
        _note(followed, log)
        followed.lag = max(0, answer.high_watermark - followed.fetch_offset)
        if records and not taken_bytes:
            # A batch of a newer epoch, for which the metadata is under way.
            self._session.back_off(followed, self._node.clock.monotonic_ms(), limits.backoff_ms)
            return None
        self._session.succeeded(followed)
        self._session.moved(followed)
        return log if taken_bytes and log.flush_needed(now_ms) else None

    def _truncate(
        self, followed: Followed, log: "Log", answer: "PartitionData", limits: FetchLimits
    ) -> None:
        at_leader = answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset
        here = log.leader_epochs.end_offset_for(at_leader[0], log.log_end_offset)
        before = followed.position
        _cut(followed, log, divergence(at_leader, here, log.log_end_offset))
        if followed.position == before:
            self._back_off(followed, "divergence without a difference", limits)
        else:
            self._session.moved(followed)

    def _back_off(self, followed: Followed, error: str, limits: FetchLimits) -> None:
        self._session.back_off(followed, self._node.clock.monotonic_ms(), limits.backoff_ms)
        if followed.failures == _WARN_AFTER_FAILURES:
            _log.warning(
                "partition not fetched, retrying",
                extra={**_where(followed.replica), "leader": self.leader_id, "error": error},
            )

    def _storage_failed(
        self, followed: Followed, error: KafkaStorageError, limits: FetchLimits
    ) -> None:
        """A full disk may have room later; a failed one takes its partitions offline."""
        log = followed.replica.log
        if log is None or log.failure is not None:
            self._owner.fail(followed, str(error))
        else:
            _note(followed, log)
            self._session.back_off(followed, self._node.clock.monotonic_ms(), limits.backoff_ms)

    async def _sync(self, appended: "dict[Log, Followed]") -> None:
        """Sync logs whose topics want it: the next fetch acknowledges only what is on disk."""
        done: asyncio.Future[Lost] = self._node.loop.create_future()
        self._node.flusher.flush(list(appended), done.set_result)
        for log, error in (await done).items():
            followed = appended[log]
            if self._session.followed.get(followed.key) is followed:
                self._owner.fail(followed, str(error))

    # --- out of range ---------------------------------------------------------------------------

    async def _reset(self, wanted: list[Followed], limits: FetchLimits) -> bool:
        """Move partitions into the leader's range of offsets; return whether a log was cut."""
        was_cut = False
        by_start: list[Followed] = []
        async for followed, leader_end in self._offsets(wanted, LATEST, limits):
            reset = reset_by_end(leader_end, followed.fetch_offset)
            if reset is None:
                by_start.append(followed)
            else:
                was_cut |= self._carry_out(followed, reset, limits)
        async for followed, leader_start in self._offsets(by_start, EARLIEST, limits):
            reset = reset_by_start(leader_start, followed.fetch_offset)
            if reset is None:
                self._back_off(followed, "OFFSET_OUT_OF_RANGE", limits)
            else:
                was_cut |= self._carry_out(followed, reset, limits)
        return was_cut

    async def _offsets(
        self, wanted: list[Followed], timestamp: int, limits: FetchLimits
    ) -> AsyncIterator[tuple[Followed, int]]:
        """Ask for one end of the leader's logs; partitions with an error are tried again later."""
        if not wanted:
            return
        version = limits.list_offsets_version
        positions = {one.key: one.position for one in wanted}
        try:
            answer = await self._ask(list_offsets(wanted, timestamp, limits), version)
        except HeadraceError as error:
            for one in wanted:
                if self._session.followed.get(one.key) is one:
                    self._back_off(one, str(error), limits)
            await self._not_answered(error)
            return
        found = {
            (topic.name, one.partition_index): one
            for topic in answer.topics
            for one in topic.partitions
        }
        for one in wanted:
            part = found.get((one.replica.topic.name, one.index))
            if self._session.followed.get(one.key) is not one or one.position != positions[one.key]:
                continue  # It has another leader by now.
            if part is None or (part.offset < 0 and not part.error_code):
                self._back_off(one, "no answer to ListOffsets", limits)
            elif part.error_code == FencedLeaderEpoch.code:
                self._owner.wait_for_metadata(one)
            elif part.error_code:
                self._back_off(one, ERROR_NAMES[part.error_code], limits)
            else:
                yield one, part.offset

    def _carry_out(self, followed: Followed, reset: Reset, limits: FetchLimits) -> bool:
        try:
            log = followed.replica.online_log()
            if reset.restarts:
                _log.info(
                    "log restarted at the start of its leader's",
                    extra={**_where(followed.replica), "offset": reset.offset},
                )
                log.truncate_fully_and_start_at(reset.offset)
                _note(followed, log)
            else:
                _cut(followed, log, reset.offset)
        except KafkaStorageError as error:
            self._storage_failed(followed, error, limits)
            return False
        self._session.moved(followed)
        return True


def _prepare(followed: Followed, log: "Log") -> None:
    """Take the position of a log; without an epoch only its committed records can be trusted."""
    has_records = log.log_end_offset > log.log_start_offset
    if has_records and log.leader_epochs.latest_epoch == UNDEFINED_EPOCH:
        _cut(followed, log, log.high_watermark)
    _note(followed, log)


def _note(followed: Followed, log: "Log") -> None:
    followed.reach(
        log.log_end_offset,
        log.leader_epochs.latest_epoch,
        log.log_start_offset,
        log.high_watermark,
    )


def _cut(followed: Followed, log: "Log", offset: int) -> None:
    """Cut the log, and warn if that takes committed records, as after an unclean election."""
    end_offset, high_watermark = log.log_end_offset, log.high_watermark
    log.truncate_to(offset)
    fields = {
        **_where(followed.replica),
        "end_offset": log.log_end_offset,
        "end_offset_before": end_offset,
    }
    if log.log_end_offset < high_watermark:
        fields["high_watermark"] = high_watermark
        _log.warning("committed records truncated, because the leader lacks them", extra=fields)
    elif log.log_end_offset < end_offset:
        _log.info("log truncated where it diverges from its leader's", extra=fields)
    _note(followed, log)


def _where(partition: "Partition") -> dict[str, object]:
    return {"topic": partition.topic.name, "partition": partition.index}
