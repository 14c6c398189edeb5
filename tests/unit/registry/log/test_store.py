"""The progress of reading the topic, and waiting for an offset."""

import asyncio
from collections.abc import Callable

import pytest

from headrace.errors import HeadraceError
from headrace.protocol.batches import Record
from headrace.registry.errors import StoreTimedOut
from headrace.registry.log.reader import LogReader, Read
from headrace.registry.log.store import Store
from headrace.registry.model.records import Change
from headrace.registry.model.state import State
from headrace.registry.settings import RegistrySettings
from headrace.serdes.schema_records import SchemaKey, SchemaValue

LONG_S = 30.0


class ReaderOfNothing(LogReader):
    """A reader with records from the test."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1:1", RegistrySettings())
        self.take: Callable[[Read], None] = lambda read: None

    def load(self, take: Callable[[Read], None]) -> int:
        take(Read([_record(0, "loaded")], 1))
        return 1

    def follow(
        self, take: Callable[[Read], None], on_failure: Callable[[HeadraceError], None]
    ) -> None:
        self.take = take


def _record(offset: int, subject: str) -> Record:
    value = SchemaValue(subject, 1, offset + 1, schema=subject)
    return Record(offset, 0, *Change(SchemaKey(subject, 1), value).encoded())


@pytest.fixture
def reader() -> ReaderOfNothing:
    return ReaderOfNothing()


@pytest.fixture
def store(reader: ReaderOfNothing) -> Store:
    store = Store(State(), reader)
    store.load()
    return store


def test_loading_replays_the_stored_records(store: Store) -> None:
    assert (list(store.state.subjects), store.next_offset) == (["loaded"], 1)


async def test_an_offset_already_read_needs_no_wait(store: Store) -> None:
    await store.reached(0, 0.0)


async def test_a_wait_ends_when_its_record_is_replayed(
    store: Store, reader: ReaderOfNothing
) -> None:
    store.follow(lambda error: None)
    waiting = asyncio.create_task(store.reached(2, LONG_S))
    for offset in (1, 2):
        read = Read([_record(offset, f"new-{offset}")], offset + 1)
        await asyncio.to_thread(reader.take, read)
    await waiting
    assert list(store.state.subjects) == ["loaded", "new-1", "new-2"]


async def test_a_wait_ends_after_its_timeout(store: Store) -> None:
    with pytest.raises(StoreTimedOut, match="offset 5"):
        await store.reached(5, 0.0)


async def test_records_of_no_use_are_counted_and_passed_over(
    store: Store, reader: ReaderOfNothing
) -> None:
    store.follow(lambda error: None)
    foreign = Record(1, 0, b'{"keytype":"ASSOC"}', b"{}")
    await asyncio.to_thread(reader.take, Read([foreign, _record(2, "next")], 3))
    assert (store.skipped, store.next_offset) == (1, 3)
    assert "next" in store.state.subjects


class StateWithAFault(State):
    """Fails at one record with an unexpected error."""

    def replay(self, change: Change, timestamp_ms: int) -> None:
        if isinstance(change.value, SchemaValue) and change.value.subject == "bad":
            raise KeyError("bad")
        super().replay(change, timestamp_ms)


async def test_a_record_that_cannot_be_replayed_is_reported_and_not_passed(
    reader: ReaderOfNothing,
) -> None:
    store = Store(StateWithAFault(), reader)
    store.load()
    failures: list[Exception] = []
    store.follow(failures.append)
    for offset, subject in ((1, "bad"), (2, "next")):
        await asyncio.to_thread(reader.take, Read([_record(offset, subject)], offset + 1))
    assert [repr(error) for error in failures] == ["KeyError('bad')"]
    assert (list(store.state.subjects), store.next_offset) == (["loaded"], 1)
