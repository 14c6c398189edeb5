"""A registry at work: its state, who leads, and the one way in which anything is written.

A write is decided on the newest state and written before the next is decided; its answer leaves
once its records are read back. Only the leader writes; the others hand writes on to it.
Decisions are made in the writer's thread, as schemas may take long to compare, one write after the
other. Each is decided on all that the ones before it have written: where one of them has given up
waiting for its records, the next waits for these first. Else it would give their ids once more. If
a record of somebody else is replayed meanwhile, it is decided again (see `checks`).
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
from headrace.registry.checks import Checks, Moved, steady
from headrace.registry.deciding.decisions import Decision
from headrace.registry.errors import (
    SchemaTooLarge,
    StoreFailed,
    StoreTimedOut,
    TooBusy,
    UnknownLeader,
)
from headrace.registry.leadership.election import Identity
from headrace.registry.leadership.forwarding import Answer, Forwarded, Forwarder, NotReached
from headrace.registry.leadership.membership import Membership
from headrace.registry.log.reader import LogReader
from headrace.registry.log.store import Store
from headrace.registry.log.topic import prepare_topic
from headrace.registry.log.writer import Deposed, InDoubt, LogWriter, TooLarge
from headrace.registry.metrics import RegistryMetrics
from headrace.registry.model.state import State
from headrace.registry.schema_types import SchemaTypes
from headrace.registry.settings import RegistrySettings

_log = logging.getLogger(__name__)

T = TypeVar("T")

_DECISIONS_MAX = 5
"""How often a write is decided again because of records of others: while one leads, only a
leader that was just locked out has still some on the way."""


class NotLeading(HeadraceError):
    """Another instance leads by now; nothing was decided."""


class Registry:
    """One instance."""

    def __init__(
        self,
        properties: Properties,
        settings: RegistrySettings,
        types: SchemaTypes | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.settings = settings
        self.types = types or SchemaTypes(
            is_lenient=settings.headrace_lenient_defaults,
            full_names=settings.headrace_avro_full_names,
            parsed_max=settings.schema_cache_size,
        )
        self.metrics = RegistryMetrics()
        self.cluster_id = ""
        self.failure: Exception | None = None
        """Why this instance cannot go on."""
        self.leader: Identity | None = None
        self.identity = Identity("", 0)
        self._properties = properties
        self._store = Store(
            State(settings.schema_compatibility_level), LogReader(properties, settings)
        )
        self._writer = LogWriter(properties, settings)
        self._writer_thread = ThreadPoolExecutor(1, "registry-writer")
        self._checks = Checks()
        self._forwarder = Forwarder(settings, tls)
        self._writing = asyncio.Lock()
        self._leader_changed = asyncio.Event()
        self._taking_office: asyncio.Task[None] | None = None
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

    @property
    def write_s_max(self) -> float:
        return self.settings.kafkastore_timeout_ms / 1000

    def load(self) -> None:
        """Make sure of the topic and read it; before the event loop has anything to do."""
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
        """Follow the topic and take part in the election, until the block ends."""
        loop = asyncio.get_running_loop()
        self.identity = identity

        def fail(error: Exception) -> None:
            self.failure = error
            fault = None if isinstance(error, HeadraceError) else error
            _log.error("the topic cannot be followed any more: %s", error, exc_info=fault)
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
            if self._taking_office is not None:
                self._taking_office.cancel()
                await asyncio.wait([self._taking_office])
            self._forwarder.close()
            self._checks.close()
            await asyncio.to_thread(self._store.close)
            self._writer_thread.shutdown(wait=False)
            self._writer.close()

    # --- looking ------------------------------------------------------------------------------

    async def look(self, look: Callable[[State], T]) -> T:
        """What a function that may take long makes of the state; others are answered meanwhile."""
        return await self._checks.look(self.state, look)

    # --- writing ------------------------------------------------------------------------------

    async def write(
        self, decide: Callable[[], Decision[T]], request: Forwarded, *, is_forwarded: bool
    ) -> T | Answer:
        """Decide and commit here, or let the leader do it.

        While there is no leader, or one that is not reached any more, a write waits for the next.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.headrace_leader_wait_ms / 1000
        while True:
            leader = await self._known_leader(deadline)
            try:
                if self.is_leader:
                    return await self._commit(decide)
                if is_forwarded:
                    raise UnknownLeader(
                        f"this instance does not lead; {leader.url} does, as far as it knows"
                    )
                return await self._forward(leader, request)
            except NotLeading:
                continue
            except NotReached as error:
                _log.warning("%s", error)
                await self._other_leader(leader, deadline)

    async def _forward(self, leader: Identity, request: Forwarded) -> Answer:
        """Let the leader write, and read it back: the client may ask here next."""
        self.metrics.forwarded += 1
        answer = await self._forwarder.send(leader, request)
        if answer.offset is not None:
            try:
                await self._store.reached(answer.offset, self.write_s_max)
            except StoreTimedOut as error:
                _log.warning("written by the leader, but not read yet: %s", error)
        return answer

    async def _commit(self, decide: Callable[[], Decision[T]]) -> T:
        async with self._turn():
            if not self.is_leader:
                raise NotLeading
            await self._take_office()
            decision = await self._decided(decide)
            if not decision.changes:
                return decision.reply
            if not self.is_leader or not self._writer.has_claim:
                raise NotLeading
            offset = await self._in_writer(lambda: self._writer.write(decision.changes))
            await self._store.reached(offset, self.write_s_max)
            self.metrics.written += len(decision.changes)
            return decision.reply

    async def _decided(self, decide: Callable[[], Decision[T]]) -> Decision[T]:
        """Decide beside the loop, on a state that has all that was written, and does not change."""
        loop = asyncio.get_running_loop()
        for _ in range(_DECISIONS_MAX):
            await self._store.reached(self._writer.last_offset, self.write_s_max)
            try:
                decision = await steady(
                    self.state, lambda: loop.run_in_executor(self._writer_thread, decide)
                )
            except Moved:
                continue
            if self._writer.last_offset < self._store.next_offset:
                return decision
        raise TooBusy("others write all the time, so nothing can be decided; try again")

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One write after the other; who has waited too long for those before it gives up."""
        try:
            async with asyncio.timeout(self.settings.headrace_leader_wait_ms / 1000):
                await self._writing.acquire()
        except TimeoutError as error:
            raise StoreTimedOut("too many writes wait for their turn; try again") from error
        try:
            yield
        finally:
            self._writing.release()

    async def _take_office(self) -> None:
        """Before the first decision: nobody else writes any more, and all of theirs is known."""
        if not self._writer.has_claim:
            offset = await self._in_writer(self._writer.claim)
            await self._store.reached(offset, self.settings.kafkastore_init_timeout_ms / 1000)

    async def _in_writer(self, call: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._writer_thread, call)
        except Deposed as error:
            _log.warning("%s; this instance steps down", error)
            self._assigned(None)
            if self._membership is not None:
                self._membership.rejoin()
            raise UnknownLeader(f"{error}; try again") from error
        except TooLarge as error:
            raise SchemaTooLarge(str(error)) from error
        except InDoubt as error:
            raise StoreTimedOut(f"{error}; it is not known whether it was, so try again") from error
        except HeadraceError as error:
            raise StoreFailed(f"Kafka refuses the write: {error}") from error

    # --- leadership ---------------------------------------------------------------------------

    def _assigned(self, leader: Identity | None) -> None:
        if leader != self.leader:
            _log.info("the leader is %s", "not known" if leader is None else leader.url)
        was_leader = self.is_leader
        self.leader = leader
        self._leader_changed.set()
        self._leader_changed = asyncio.Event()
        if was_leader and not self.is_leader:
            self._writer.give_up()
        if self.is_leader and not was_leader:
            self._taking_office = asyncio.create_task(self._begin_office())

    async def _begin_office(self) -> None:
        """Lock out the last leader soon, not with the first write of ours."""
        try:
            async with self._writing:
                if self.is_leader:
                    await self._take_office()
        except HeadraceError as error:
            _log.warning("the topic is not claimed yet: %s", error)

    async def _known_leader(self, deadline: float) -> Identity:
        while self.leader is None:
            await self._change(deadline)
        return self.leader

    async def _other_leader(self, old: Identity, deadline: float) -> None:
        """Wait until somebody else leads, or the same one is back."""
        if self.leader is old:
            await self._change(deadline)

    async def _change(self, deadline: float) -> None:
        left_s = deadline - asyncio.get_running_loop().time()
        changed = self._leader_changed
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                await changed.wait()
        except TimeoutError as error:
            raise UnknownLeader("Leader not known.") from error
