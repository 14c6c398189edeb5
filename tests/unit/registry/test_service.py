"""Writes of a leader whose topic is read back late."""

import asyncio
import time
from collections.abc import Callable

import msgspec
import pytest

from headrace.errors import HeadraceError
from headrace.protocol.batches import Record, records_of
from headrace.protocol.schemas.produce import ProduceRequest
from headrace.registry.deciding import registration
from headrace.registry.deciding.candidates import Candidate
from headrace.registry.deciding.registration import Registered
from headrace.registry.errors import StoreTimedOut
from headrace.registry.leadership.election import Identity
from headrace.registry.leadership.forwarding import Forwarded
from headrace.registry.log.reader import LogReader, Read
from headrace.registry.log.store import Store
from headrace.registry.log.writer import LogWriter
from headrace.registry.model.state import State
from headrace.registry.service import Registry
from headrace.registry.settings import RegistrySettings

NOWHERE = "127.0.0.1:1"
REQUEST = Forwarded("POST", "/", {}, b"")


class Topic(LogReader):
    """A topic in memory, and its reader."""

    def __init__(self) -> None:
        super().__init__(NOWHERE, RegistrySettings())
        self._records: list[Record] = []
        self._unread = 0

    def append(self, batch: bytes) -> int:
        base = len(self._records)
        self._records += [
            msgspec.structs.replace(one, offset=base + place)
            for place, one in enumerate(records_of(batch))
        ]
        return base

    def follow(
        self, take: Callable[[Read], None], on_failure: Callable[[HeadraceError], None]
    ) -> None:
        self._take = take

    def read_on(self) -> None:
        unread = self._records[self._unread :]
        self._unread = len(self._records)
        self._take(Read(unread, self._unread))


class LateStore(Store):
    """Reads nothing until a caller waits for it, and then only if it is not stuck."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(State(), topic)
        self.is_stuck = False
        self._topic = topic

    async def reached(self, offset: int, seconds_max: float) -> None:
        if not self.is_stuck:
            await asyncio.to_thread(self._topic.read_on)
        await super().reached(offset, 0 if self.is_stuck else seconds_max)


class ClaimedWriter(LogWriter):
    """A writer that no other instance has fenced."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(NOWHERE, RegistrySettings())
        self._appended_to = topic
        self._claimed_at = time.monotonic()

    def _produced(self, request: ProduceRequest, batch: bytes) -> int:
        return self._appended_to.append(batch)


class Leader(Registry):
    """An instance that leads, on a topic in memory."""

    def __init__(self) -> None:
        super().__init__(NOWHERE, RegistrySettings())
        self.leader = self.identity = Identity("127.0.0.1", 8081)
        topic = Topic()
        self._writer = ClaimedWriter(topic)
        self.late_store = self._store = LateStore(topic)
        self._store.follow(lambda error: None)

    async def register(self, subject: str, text: str) -> int:
        candidate = Candidate(subject=subject, text=text)
        done = await self.write(
            lambda: registration.register(self.state, candidate, normalize=False),
            REQUEST,
            is_forwarded=False,
        )
        assert isinstance(done, Registered)
        return done.value.id


async def test_no_id_is_given_twice_when_a_record_is_read_back_late() -> None:
    """A write that timed out keeps its id, so the next write must not get it."""
    leader = Leader()
    leader.late_store.is_stuck = True
    with pytest.raises(StoreTimedOut):
        await leader.register("a", '"int"')
    with pytest.raises(StoreTimedOut):
        await leader.register("b", '"long"')
    leader.late_store.is_stuck = False
    assert await leader.register("b", '"long"') == 2
    assert await leader.register("a", '"int"') == 1
