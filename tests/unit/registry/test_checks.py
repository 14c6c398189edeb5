"""Reads of the state from threads are consistent, bounded and independent."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from headrace.registry.checks import LIGHT_MAX, Checks, is_light
from headrace.registry.compatibility.incompatibilities import Incompatibility
from headrace.registry.deciding.candidates import Candidate
from headrace.registry.errors import TooBusy
from headrace.registry.model.state import State
from headrace.registry.schema_types import Kind, SchemaTypes, installed_kind
from headrace.serdes.contracts import Reference
from tests.processes.registries import (
    STRING,
    USER,
    RegistryWithoutKafka,
    Shelf,
    client_of,
    register,
)


class Gate:
    """A comparison that waits until the gate opens."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.open.wait(60), "the gate stayed closed"


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


@pytest.fixture
async def checks() -> AsyncIterator[Checks]:
    checks = Checks(threads=1, waiting_max=1)
    yield checks
    checks.close()


def subjects(state: State) -> list[str]:
    return sorted(state.subjects)


async def test_others_are_answered_while_schemas_are_compared(gate: Gate) -> None:
    """SCH-12."""

    def slow(name: str) -> Kind:
        def compared(reader: object, writer: object, direction: object) -> list[Incompatibility]:
            gate.wait()
            return []

        return installed_kind(name)._replace(incompatibilities=compared)

    registry = RegistryWithoutKafka()
    registry.state.types = SchemaTypes(slow)
    async with client_of(registry) as client:
        await register(client, "a", USER)
        check = asyncio.create_task(ask(client))
        assert await asyncio.to_thread(gate.reached.wait, 60)
        meanwhile = await client.get("/subjects/a/versions/1")
        was_under_way = not check.done()
        gate.open.set()
        answer = await check
    assert (was_under_way, meanwhile.status_code, answer.json()) == (
        True,
        200,
        {"is_compatible": True},
    )


async def ask(client: httpx2.AsyncClient) -> httpx2.Response:
    return await client.post("/compatibility/subjects/a/versions/1", json={"schema": STRING})


async def test_a_check_that_records_interrupt_is_repeated(checks: Checks, gate: Gate) -> None:
    shelf = Shelf()
    seen: list[list[str]] = []

    def look(state: State) -> list[str]:
        seen.append(subjects(state))
        gate.wait()
        return subjects(state)

    looking = asyncio.create_task(checks.look(shelf.state, look))
    assert await asyncio.to_thread(gate.reached.wait, 60)
    shelf.register("new")
    gate.open.set()
    assert (await looking, seen) == (["new"], [[], ["new"]])


async def test_an_error_caused_by_replayed_records_is_dropped(checks: Checks, gate: Gate) -> None:
    shelf = Shelf()

    def look(state: State) -> list[str]:
        gate.wait()
        if state is shelf.state:
            raise KeyError("half of it")
        return subjects(state)

    looking = asyncio.create_task(checks.look(shelf.state, look))
    assert await asyncio.to_thread(gate.reached.wait, 60)
    shelf.register("new")
    gate.open.set()
    assert await looking == ["new"]


async def test_an_error_of_a_steady_state_is_raised(checks: Checks) -> None:
    with pytest.raises(KeyError):
        await checks.look(State(), lambda state: state.subjects["none"])


async def test_excess_checks_are_refused(checks: Checks, gate: Gate) -> None:
    def look(state: State) -> None:
        gate.wait()

    taken = [asyncio.create_task(checks.look(State(), look)) for _ in range(2)]
    assert await asyncio.to_thread(gate.reached.wait, 60)
    with pytest.raises(TooBusy, match="try again"):
        await checks.look(State(), look)
    gate.open.set()
    await asyncio.gather(*taken)


def test_a_copy_of_the_state_does_not_change() -> None:
    shelf = Shelf()
    first = shelf.register("a", STRING)
    copy = shelf.state.copy()
    shelf.register("a", '"bytes"', Reference("b", "a", 1))
    shelf.register(":.other:b", USER)
    assert (subjects(copy), len(copy.versions("a")), copy.contexts) == (["a"], 1, [])
    assert copy.id_max(".") == first.value.id
    assert copy.referrers(copy.versions("a")[0].key) == []


def test_a_small_schema_of_a_small_subject_is_light() -> None:
    shelf = Shelf()
    shelf.register("a", USER)
    assert is_light(shelf.state, Candidate(subject="a", text=STRING))


@pytest.mark.parametrize(
    "candidate",
    [
        Candidate(subject="a", text=" " * LIGHT_MAX + STRING),
        Candidate(subject="large", text=STRING),
        Candidate(subject="a", text="message M {}", type="PROTOBUF"),
        Candidate(subject="a", text=STRING, references=(Reference("x", "large", 1),)),
    ],
)
def test_checks_that_may_take_long_are_not_light(candidate: Candidate) -> None:
    shelf = Shelf()
    fields = ",".join(f'{{"name":"f{number}","type":"int"}}' for number in range(1_000))
    shelf.register("large", f'{{"type":"record","name":"L","fields":[{fields}]}}')
    assert not is_light(shelf.state, candidate)
