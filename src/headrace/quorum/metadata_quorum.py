"""Runs a replica of the quorum: the disk, the timers and the network of `raft/`.

Each call of the core ends with `_carry_out`, which does what the core wants in the order that keeps
its promises: store the state, send replies and requests, sync the log. Everything runs on one event
loop; only syncs run in threads. After a failed write the replica stops for good, because the
content of the disk is unknown.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Protocol

from headrace.errors import HeadraceError, KafkaStorageError, NotLeaderOrFollower
from headrace.metadata.log.metadata_log import MetadataLog
from headrace.protocol.message import Message
from headrace.raft.effects import LocalReplica, Now, Output, Request, Sync, Timeouts
from headrace.raft.messages import Leadership
from headrace.raft.quorum import Quorum
from headrace.raft.quorum_state import read_quorum_state, write_quorum_state
from headrace.raft.replicas import VoterHistory, VoterSet
from headrace.runtime.chance import new_random as new_chance
from headrace.runtime.clock import Clock
from headrace.runtime.durations import Durations

_log = logging.getLogger(__name__)

_TIMER_S_MAX = 3600.0
_HAND_OVER_S = 1.0
_HAND_OVER_LOOK_S = 0.02

Background = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a function in a thread."""


class Network(Protocol):
    """Sends the core's requests; `answered` or `failed` is called for each of them."""

    def send(
        self,
        request: Request,
        answered: Callable[[int, Any], None],
        failed: Callable[[int], None],
    ) -> None: ...


class NoNetwork:
    """The network of a quorum of one, which has no peers."""

    def send(
        self,
        request: Request,
        answered: Callable[[int, Any], None],
        failed: Callable[[int], None],
    ) -> None:
        asyncio.get_running_loop().call_soon(failed, request.token)


class MetadataQuorum:
    """One replica: a voter, or an observer that follows the log."""

    def __init__(
        self,
        local: LocalReplica,
        log: MetadataLog,
        configured: VoterSet,
        timeouts: Timeouts,
        *,
        clock: Clock,
        background: Background,
        network: Network | None = None,
        chance: Random | None = None,
    ) -> None:
        self.local = local
        self.log = log
        self.history: VoterHistory = log.voter_history(configured)
        self.failure: KafkaStorageError | None = None
        self.on_leadership: Callable[[Leadership], None] = lambda _: None
        """Called when the epoch or its leader has changed."""
        self.on_committed: Callable[[int], None] = lambda _: None
        """Called when records before an offset are committed."""
        self.on_failure: Callable[[KafkaStorageError], None] = lambda _: None
        self._timeouts = timeouts
        self._clock = clock
        self._background = background
        self._network = network or NoNetwork()
        self._chance = chance or new_chance()
        self._core: Quorum
        self._timer: asyncio.TimerHandle | None = None
        self._tokens = 0
        self._asked: dict[int, asyncio.Future[Message]] = {}
        self._wanted_sync: Sync | None = None
        self._syncing: asyncio.Task[None] | None = None
        self._is_closed = False
        self.elections = Durations()
        """The times without a leader."""
        self._leaderless_ms: int | None = None

    # --- facts ----------------------------------------------------------------------------------

    @property
    def node_id(self) -> int:
        return self.local.key.id

    @property
    def epoch(self) -> int:
        return self._core.epoch

    @property
    def is_leader(self) -> bool:
        return self._core.is_leader

    @property
    def leadership(self) -> Leadership:
        return self._core.leadership

    @property
    def state_name(self) -> str:
        """The state of the replica, as metrics name it."""
        name = type(self._core.state).__name__.lower()
        return "observer" if name == "follower" and not self._core.is_voter else name

    @property
    def kraft_version(self) -> int:
        return self.history.kraft_version

    @property
    def voters(self) -> VoterSet:
        return self.history.voters

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def is_caught_up(self) -> bool:
        """True if this node has all records that its leader knew to be committed."""
        known = self._core.high_watermark
        return known is not None and self.log.high_watermark >= known

    # --- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Take part in the quorum; a quorum of one elects itself at once."""
        self._core = Quorum(
            self.local,
            self.log,
            self.history,
            read_quorum_state(self.log.directory),
            self._timeouts,
            self._chance,
            self._now(),
        )
        self._carry_out()

    def resign(self) -> None:
        """Ask another voter to lead, and refuse requests from now on."""
        self._act(self._core.stop)

    async def hand_over(self) -> None:
        """Resign; a leader waits a moment for another voter to take over."""
        waits = self.is_leader and not self.voters.is_only(self.local.key)
        self.resign()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _HAND_OVER_S
        while waits and self._core.leadership.leader_id < 0 and loop.time() < deadline:
            await asyncio.sleep(_HAND_OVER_LOOK_S)

    async def close(self) -> None:
        """Finish a sync under way, and close the log."""
        self._is_closed = True
        if self._syncing is not None:
            await asyncio.wait([self._syncing])
        if self._timer is not None:
            self._timer.cancel()
        self._refuse_all()
        self.log.close()

    # --- calls ----------------------------------------------------------------------------------

    def propose(self, data: bytearray) -> int:
        """Append batches as the leader; returns the offset after them."""
        if self.failure is None:
            try:
                end_offset = self._core.propose(data, self._now())
            except KafkaStorageError as error:
                self._check_log(error)
                raise
            self._carry_out()
        if self.failure is not None:
            raise self.failure
        return end_offset

    def upgrade(self, kraft_version: int) -> None:
        """Raise kraft.version as the leader, which moves static voters into the log."""
        if self.failure is not None:
            raise self.failure
        self._core.upgrade(kraft_version, self._now())
        self._carry_out()

    async def ask(self, request: Message) -> Any:
        """Handle a request of a peer or a tool; returns the answer, which may take a while."""
        if self.failure is not None or self._is_closed:
            raise NotLeaderOrFollower("this node has left the quorum")
        self._tokens += 1
        token = self._tokens
        answer = self._asked[token] = asyncio.get_running_loop().create_future()
        try:
            self._core.receive(token, request, self._now())
            self._carry_out()
            return await answer
        except KafkaStorageError as error:
            self._check_log(error)
            raise
        finally:
            if self._asked.pop(token, None) is not None:
                self._core.abandon(token)

    def leader_refuses_connections(self) -> None:
        """Start an election at once: no process listens at the leader's address any more."""
        self._act(self._core.leader_refuses_connections)

    def _answered(self, token: int, answer: Any) -> None:
        self._act(lambda now: self._core.answered(token, answer, now))

    def _failed(self, token: int) -> None:
        self._act(lambda now: self._core.failed(token, now))

    def _tick(self) -> None:
        self._timer = None
        self._act(self._core.tick)

    def _act(self, act: Callable[[Now], None]) -> None:
        """Let the core act. No caller could handle a failed write, so it ends the replica."""
        if self.failure is not None or self._is_closed:
            return
        try:
            act(self._now())
        except (HeadraceError, OSError) as error:
            self._fail(error)
        else:
            self._carry_out()

    def _now(self) -> Now:
        return Now(self._clock.monotonic_ms(), self._clock.now_ms())

    # --- effects --------------------------------------------------------------------------------

    def _carry_out(self) -> None:
        output = self._core.take()
        try:
            if output.state is not None:
                write_quorum_state(self.log.directory, output.state)
        except OSError as error:
            self._fail(error)
            return
        self._send(output)
        if output.sync is not None:
            self._wanted_sync = output.sync
            if self._syncing is None or self._syncing.done():
                self._syncing = asyncio.get_running_loop().create_task(self._sync())
        if output.leadership is not None:
            self._note_leadership(output.leadership)
            self.on_leadership(output.leadership)
        if output.high_watermark is not None:
            self.log.commit(output.high_watermark)
            try:
                self.on_committed(output.high_watermark)
            except (HeadraceError, OSError) as error:  # Records that it cannot replay or write.
                self._fail(error)
                return
        self._set_timer()

    def _send(self, output: Output) -> None:
        for reply in output.replies:
            answer = self._asked.pop(reply.token, None)
            if answer is not None and not answer.done():
                answer.set_result(reply.message)
        for request in output.requests:
            self._network.send(request, self._answered, self._failed)

    def _note_leadership(self, leadership: Leadership) -> None:
        """Measure the time from the loss of a leader to the next one."""
        now_ms = self._clock.monotonic_ms()
        if leadership.leader_id < 0:
            if self._leaderless_ms is None:
                self._leaderless_ms = now_ms
        elif self._leaderless_ms is not None:
            self.elections.add_ns((now_ms - self._leaderless_ms) * 1_000_000)
            self._leaderless_ms = None

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.failure is not None or self._is_closed:
            return
        wait_s = (self._core.next_deadline_ms() - self._clock.monotonic_ms()) / 1000
        wait_s = min(max(wait_s, 0.0), _TIMER_S_MAX)
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._tick)

    async def _sync(self) -> None:
        """Sync until nothing is left to sync; records written meanwhile share the next one."""
        while self._wanted_sync is not None and self.failure is None:
            sync, self._wanted_sync = self._wanted_sync, None
            plan = self.log.plan_flush()
            try:
                await self._background(plan.run)
            except Exception as error:  # The disk failed, or no thread is available.
                self._fail(error)
                return
            if self._core.truncations == sync.truncations:
                self.log.flushed(plan)
            self._core.synced(sync, self._now())
            self._carry_out()

    def _check_log(self, error: KafkaStorageError) -> None:
        """Stop for good after a failed write; a full disk only delays the change."""
        if self.log.has_failed:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self.failure is not None:
            return
        self.log.fail(error if isinstance(error, OSError) else OSError(str(error)))
        self.failure = KafkaStorageError(f"the metadata log failed: {error}; the node must stop")
        _log.error("metadata log failed, rejecting all changes", extra={"error": str(error)})
        self._refuse_all()
        self.on_failure(self.failure)

    def _refuse_all(self) -> None:
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(NotLeaderOrFollower("this node has left the quorum"))
        self._asked.clear()
