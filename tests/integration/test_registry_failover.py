"""Several registries over one topic: one writes; after its end another one does."""

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from headrace.client.admin import Admin
from headrace.registry.log.reader import LogReader
from headrace.registry.log.store import Store
from headrace.registry.log.topic import prepare_topic
from headrace.registry.log.writer import Fenced, LogWriter, TooLarge
from headrace.registry.model.records import Change
from headrace.registry.model.state import State
from headrace.registry.settings import RegistrySettings
from headrace.serdes.schema_records import SchemaKey, SchemaValue
from tests.processes.nodes import Node, eventually
from tests.processes.registries import RegistryProcess

WRITERS = 4
AFTER_THE_KILL = 20
"""The number of registrations that must succeed after the leader's death."""

Start = Callable[[], RegistryProcess]


@pytest.fixture
def start(node: Node, tmp_path: Path) -> Iterator[Start]:
    """Start one more instance of the same registry."""
    started: list[RegistryProcess] = []
    settings = {
        "kafkastore.topic": f"_schemas-{tmp_path.name}",
        "schema.registry.group.id": tmp_path.name,
        "kafkagroup.session.timeout.ms": "6000",
        "kafkagroup.heartbeat.interval.ms": "500",
    }

    def start() -> RegistryProcess:
        log = tmp_path / f"registry-{len(started)}.log"
        started.append(RegistryProcess(node.address, log, settings))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGCONT)
            one.end()


def two(start: Start) -> tuple[RegistryProcess, RegistryProcess]:
    """Return the leader and the other instance, once both have a leader."""
    instances = [start(), start()]
    for one in instances:
        one.wait_until_ready()
    eventually(lambda: sum(one.is_leader for one in instances), expect=lambda count: count == 1)
    return (
        next(one for one in instances if one.is_leader),
        next(one for one in instances if not one.is_leader),
    )


def record(number: int) -> str:
    return f'{{"type":"record","name":"R{number}","fields":[]}}'


class Load:
    """Threads that register schemas one by one, and keep the answers."""

    def __init__(self, *urls: str) -> None:
        self.acknowledged: dict[str, int] = {}
        self._urls = itertools.cycle(urls)
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(WRITERS)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        with httpx2.Client(timeout=60) as client:
            while not self._stop.is_set():
                text = record(next(self._numbers))
                id = self._registered(client, text)
                if id is not None:
                    self.acknowledged[text] = id

    def _registered(self, client: httpx2.Client, text: str) -> int | None:
        """Retry at another instance until it works, as clients do."""
        while not self._stop.is_set():
            subject = text.split('"')[7]
            try:
                answer = client.post(
                    f"{next(self._urls)}/subjects/{subject}/versions", json={"schema": text}
                )
            except httpx2.TransportError:
                time.sleep(0.05)
                continue
            if answer.status_code == 200:
                return int(answer.json()["id"])
            assert answer.status_code == 500, answer.text
        return None


@pytest.mark.timeout(300)
def test_killing_the_leader_loses_no_registration_and_repeats_no_id(start: Start) -> None:
    leader, other = two(start)
    with Load(leader.url, other.url) as load:
        eventually(lambda: len(load.acknowledged), expect=lambda count: count > 30)
        leader.end(signal.SIGKILL)
        before = len(load.acknowledged)
        eventually(
            lambda: len(load.acknowledged),
            seconds=90,
            expect=lambda count: count > before + AFTER_THE_KILL,
        )
    fresh = start()
    for registry in (other, fresh):
        for text, id in load.acknowledged.items():
            assert registry.get(f"/schemas/ids/{id}")["schema"] == text
    assert len(set(load.acknowledged.values())) == len(load.acknowledged)


def test_the_other_instance_forwards_writes_and_reads_them_at_once(start: Start) -> None:
    _, other = two(start)
    answer = other.register("a", record(1))
    assert answer.status_code == 200, answer.text
    assert other.get("/subjects") == ["a"]
    assert "headrace_registry_forwarded_total 1" in other.client.get("/metrics").text


def test_a_refusal_comes_through_as_the_leader_gave_it(start: Start) -> None:
    _, other = two(start)
    answer = other.register("a", "{")
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42201)


def test_a_forwarded_request_is_not_forwarded_again(start: Start) -> None:
    _, other = two(start)
    answer = other.client.put(
        "/config", json={"compatibility": "FULL"}, headers={"X-Forward": "true"}
    )
    assert (answer.status_code, answer.json()["error_code"]) == (500, 50004)


def test_a_leader_that_stops_cleanly_is_replaced_at_once(start: Start) -> None:
    leader, other = two(start)
    leader.end()
    assert other.register("a", record(1)).status_code == 200
    assert other.is_leader


@pytest.mark.timeout(300)
def test_a_leader_that_was_frozen_cannot_write(start: Start) -> None:
    leader, other = two(start)
    assert leader.register("a", record(1)).json()["id"] == 1
    leader.process.send_signal(signal.SIGSTOP)
    eventually(lambda: other.is_leader, seconds=60)
    assert other.register("b", record(2)).json()["id"] == 2
    leader.process.send_signal(signal.SIGCONT)
    # It is either refused by the fence or forwards the write; it never returns id 2 again.
    ids = eventually(lambda: leader.register("c", record(3)).json().get("id"), seconds=60)
    assert ids == 3
    assert not leader.is_leader


# --- the fence in the log -----------------------------------------------------------------


@pytest.fixture
def settings(node: Node, tmp_path: Path) -> RegistrySettings:
    settings = RegistrySettings(
        kafkastore_topic=f"_schemas-{tmp_path.name}", schema_registry_group_id=tmp_path.name
    )
    with Admin(node.address) as admin:
        prepare_topic(admin, settings)
    return settings


def stored(id: int, text: str = "text") -> Change:
    return Change(SchemaKey("a", id), SchemaValue("a", id, id, schema=text))


def test_a_new_claim_locks_the_last_writer_out(node: Node, settings: RegistrySettings) -> None:
    first, second = LogWriter(node.address, settings), LogWriter(node.address, settings)
    first.claim()
    first.write([stored(1)])
    second.claim()
    with pytest.raises(Fenced):
        first.write([stored(2)])
    second.write([stored(2)])
    assert not first.has_claim
    for one in (first, second):
        one.close()


def test_a_fenced_writer_may_claim_again(node: Node, settings: RegistrySettings) -> None:
    first, second = LogWriter(node.address, settings), LogWriter(node.address, settings)
    for one in (first, second, first):
        one.claim()
    first.write([stored(1)])
    assert first.has_claim
    for one in (first, second):
        one.close()


def test_a_record_that_no_broker_accepts_is_reported_and_does_no_harm(
    node: Node, settings: RegistrySettings
) -> None:
    writer = LogWriter(node.address, settings)
    writer.claim()
    with pytest.raises(TooLarge):
        writer.write([stored(1, "x" * 2_000_000)])
    offset = writer.write([stored(1)])
    writer.close()
    store = Store(State(), LogReader(node.address, settings))
    store.load()
    store.close()
    assert (store.next_offset, list(store.state.subjects)) == (offset + 1, ["a"])
