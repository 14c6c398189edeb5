"""A running registry: its state, its leader, and the only way to write.

A write is decided on the newest state and written before the next one is decided. Its answer is
sent once its records are read back. Only the leader writes; other instances forward writes to it.

Comparing schemas may take long, so decisions are made in the writer's thread, one after the other.
Each needs the records of all earlier writes, even of those that timed out waiting for them;
otherwise it would assign their ids again. If a record of another instance is replayed meanwhile,
the write is decided again (see `checks`).
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from headrace.client.admin import Admin
from headrace.client.properties import Properties
from headrace.errors import HeadraceError
from headrace.registry import errors
from headrace.registry.checks import Checks, Moved, steady
from headrace.registry.deciding.decisions import Decision
from headrace.registry.leadership.election import Identity
from headrace.registry.leadership.forwarding import Answer, Forwarded, Forwarder, NotReached
from headrace.registry.leadership.membership import Membership
from headrace.registry.log.reader import LogReader
from headrace.registry.log.store import Store
from headrace.registry.log.topic import prepare_topic
from headrace.registry.log.writer import Fenced, InDoubt, LogWriter, TooLarge
from headrace.registry.metrics import RegistryMetrics
from headrace.registry.model.state import State
from headrace.registry.schema_types import SchemaTypes
from headrace.registry.settings import RegistrySettings

_log = logging.getLogger(__name__)

T = TypeVar("T")

_DECISIONS_MAX = 5
"""Attempts to decide a write. Only records of a former leader, fenced just now, interfere."""


class NotLeading(HeadraceError):
    """Another instance has become the leader; nothing was decided."""


class Registry:
    """One instance of a registry."""

    def __init__(
        self,
        properties: Properties,
        settings: RegistrySettings,
        types: SchemaTypes | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.settings = settings
        types = types or SchemaTypes(
            is_lenient=settings.headrace_lenient_defaults,
            full_names=settings.headrace_avro_full_names,
            parsed_max=settings.schema_cache_size,
        )
        self.metrics = RegistryMetrics()
        self.cluster_id = ""
        self.failure: Exception | None = None
        """The error that ended this instance."""
        self.leader: Identity | None = None
        self.identity = Identity("", 0)
        self._properties = properties
        state = State(settings.schema_compatibility_level, types)
        self._store = Store(state, LogReader(properties, settings))
        self._writer = LogWriter(properties, settings)
        self._writer_thread = ThreadPoolExecutor(1, "registry-writer")
        self._checks = Checks()
        self._forwarder = Forwarder(settings, tls)
        self._writing = asyncio.Lock()
        self._leader_changed = asyncio.Event()
        self._claiming: asyncio.Task[None] | None = None
        self._membership: Membership | None = None

    @property
    def state(self) -> State:
        return self._store.state

    @property
    def store(self) -> Store:
        return self._store

    @property
    def is_leader(self) -> bool:
        return self.identity.is_same(self.leader)

    def load(self) -> None:
        """Create or check the topic and read it; blocks, so call it before serving."""
        with Admin(
            self._properties, timeout_s=self.settings.kafkastore_init_timeout_ms / 1000
        ) as admin:
            self.cluster_id = admin.cluster.metadata([]).cluster_id or ""
            prepare_topic(admin, self.settings)
        self._store.load()

    @asynccontextmanager
    async def running(
        self, identity: Identity, on_failure: Callable[[], None]
    ) -> AsyncIterator[None]:
        """Follow the topic and take part in the election until the block ends."""
        loop = asyncio.get_running_loop()
        self.identity = identity

        def fail(error: Exception) -> None:
            self.failure = error
            fault = None if isinstance(error, HeadraceError) else error
            fields = {"topic": self.settings.kafkastore_topic, "error": str(error)}
            _log.error("schema topic not followed, stopping", extra=fields, exc_info=fault)
            on_failure()

        def assigned(leader: Identity | None) -> None:
            loop.call_soon_threadsafe(self._assigned, leader)

        self._store.follow(fail)
        self._membership = Membership(self._properties, self.settings, identity, assigned)
        self._membership.start()
        try:
            yield
        finally:
            await asyncio.to_thread(self._membership.stop)
            if self._claiming is not None:
                self._claiming.cancel()
                await asyncio.wait([self._claiming])
            self._forwarder.close()
            self._checks.close()
            await asyncio.to_thread(self._store.close)
            self._writer_thread.shutdown(wait=False)
            self._writer.close()

    # --- reading ------------------------------------------------------------------------------

    async def look(self, look: Callable[[State], T]) -> T:
        """Return the result of a slow function on the state, computed in a thread."""
        return await self._checks.look(self.state, look)

    # --- writing ------------------------------------------------------------------------------

    async def write(
        self, decide: Callable[[], Decision[T]], request: Forwarded, *, is_forwarded: bool
    ) -> T | Answer:
        """Decide and commit here, or forward the request to the leader.

        Without a reachable leader, a write waits for the next election.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.headrace_leader_wait_ms / 1000
        while True:
            leader = await self._known_leader(deadline)
            try:
                if self.is_leader:
                    return await self._commit(decide)
                if is_forwarded:
                    raise errors.UnknownLeader(
                        f"this instance is not the leader; its last known leader is {leader.url}"
                    )
                return await self._forward(leader, request)
            except NotLeading:
                continue
            except NotReached as error:
                fields = {"leader": leader.url, "error": str(error)}
                _log.warning("leader not reached, waiting for another", extra=fields)
                await self._other_leader(leader, deadline)

    async def _forward(self, leader: Identity, request: Forwarded) -> Answer:
        """Forward a write, and read its records: the client's next request may come here."""
        self.metrics.forwarded += 1
        answer = await self._forwarder.send(leader, request)
        if answer.offset is not None:
            try:
                await self._store.reached(answer.offset, self.settings.write_s_max)
            except errors.StoreTimedOut as error:
                fields = {"leader": leader.url, "error": str(error)}
                _log.warning("forwarded write not read back in time", extra=fields)
        return answer

    async def _commit(self, decide: Callable[[], Decision[T]]) -> T:
        async with self._turn():
            if not self.is_leader:
                raise NotLeading
            await self._claim()
            decision = await self._decided(decide)
            if not decision.changes:
                return decision.reply
            if not self.is_leader or not self._writer.has_claim:
                raise NotLeading
            offset = await self._in_writer(lambda: self._writer.write(decision.changes))
            await self._store.reached(offset, self.settings.write_s_max)
            self.metrics.written += len(decision.changes)
            return decision.reply

    async def _decided(self, decide: Callable[[], Decision[T]]) -> Decision[T]:
        """Decide in the writer's thread, on a state that has all writes and does not change."""
        loop = asyncio.get_running_loop()
        for _ in range(_DECISIONS_MAX):
            await self._store.reached(self._writer.last_offset, self.settings.write_s_max)
            try:
                decision = await steady(
                    self.state, lambda: loop.run_in_executor(self._writer_thread, decide)
                )
            except Moved:
                continue
            if self._writer.last_offset < self._store.next_offset:
                return decision
        raise errors.TooBusy("other instances write too often for a decision; try again")

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Run one write after the other; give up after waiting too long for earlier ones."""
        try:
            async with asyncio.timeout(self.settings.headrace_leader_wait_ms / 1000):
                await self._writing.acquire()
        except TimeoutError as error:
            raise errors.StoreTimedOut("too many writes wait for their turn; try again") from error
        try:
            yield
        finally:
            self._writing.release()

    async def _claim(self) -> None:
        """Fence other writers and read their last records, before the first decision."""
        if not self._writer.has_claim:
            offset = await self._in_writer(self._writer.claim)
            await self._store.reached(offset, self.settings.kafkastore_init_timeout_ms / 1000)

    async def _in_writer(self, call: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._writer_thread, call)
        except Fenced as error:
            _log.warning("fenced by another instance, stepping down", extra={"error": str(error)})
            self._assigned(None)
            if self._membership is not None:
                self._membership.rejoin()
            raise errors.UnknownLeader(f"{error}; try again") from error
        except TooLarge as error:
            raise errors.SchemaTooLarge(str(error)) from error
        except InDoubt as error:
            raise errors.StoreTimedOut(f"{error}; the outcome is unknown, so try again") from error
        except HeadraceError as error:
            raise errors.StoreFailed(f"Kafka refuses the write: {error}") from error

    # --- leadership ---------------------------------------------------------------------------

    def _assigned(self, leader: Identity | None) -> None:
        if leader != self.leader:
            _log.info("leader changed", extra={"leader": None if leader is None else leader.url})
        was_leader = self.is_leader
        self.leader = leader
        self._leader_changed.set()
        self._leader_changed = asyncio.Event()
        if was_leader and not self.is_leader:
            self._writer.give_up()
        if self.is_leader and not was_leader:
            self._claiming = asyncio.create_task(self._claim_early())

    async def _claim_early(self) -> None:
        """Fence the former leader at once, not only with the first write."""
        try:
            async with self._writing:
                if self.is_leader:
                    await self._claim()
        except HeadraceError as error:
            _log.warning(
                "topic not claimed, retrying with the next write", extra={"error": str(error)}
            )

    async def _known_leader(self, deadline: float) -> Identity:
        while self.leader is None:
            await self._change(deadline)
        return self.leader

    async def _other_leader(self, old: Identity, deadline: float) -> None:
        """Wait for another leader, or for the same one to return."""
        if self.leader is old:
            await self._change(deadline)

    async def _change(self, deadline: float) -> None:
        left_s = deadline - asyncio.get_running_loop().time()
        changed = self._leader_changed
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                await changed.wait()
        except TimeoutError as error:
            raise errors.UnknownLeader("Leader not known.") from error
