"""Registries for tests: one without Kafka behind it, and real ones as processes."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from headrace.registry.deciding import registration
from headrace.registry.deciding.candidates import Candidate
from headrace.registry.deciding.decisions import Decision
from headrace.registry.deciding.registration import Registered
from headrace.registry.leadership.election import Identity
from headrace.registry.leadership.forwarding import Answer, Forwarded
from headrace.registry.model.records import decoded
from headrace.registry.model.state import State
from headrace.registry.routes.application import application
from headrace.registry.service import Registry
from headrace.registry.settings import RegistrySettings
from headrace.serdes.contracts import Reference
from tests.processes.nodes import eventually

NOW_MS = 1_700_000_000_000
STRING = '"string"'
USER = '{"type":"record","name":"User","fields":[{"name":"id","type":"long"}]}'
USER_WITH_NAME = (
    '{"type":"record","name":"User","fields":[{"name":"id","type":"long"},'
    '{"name":"name","type":"string","default":""}]}'
)
USER_WITH_EMAIL = (
    '{"type":"record","name":"User","fields":[{"name":"id","type":"long"},'
    '{"name":"email","type":"string"}]}'
)
"""Cannot read what USER has written: its new field has no default."""

T = TypeVar("T")


class Shelf:
    """A state that decisions are carried out on at once, through the bytes of their records."""

    def __init__(self) -> None:
        self.state = State()

    def apply(self, decision: Decision[T]) -> T:
        replay(self.state, decision)
        return decision.reply

    def register(
        self, subject: str, text: str = STRING, *references: Reference, **given: Any
    ) -> Registered:
        candidate = Candidate(subject=subject, text=text, references=references, **given)
        return self.apply(registration.register(self.state, candidate, normalize=False))


class RegistryWithoutKafka(Registry):
    """Always leads, and replays its decisions without a topic in between."""

    def __init__(self, settings: RegistrySettings | None = None) -> None:
        super().__init__("127.0.0.1:1", settings or RegistrySettings())
        self.identity = Identity("127.0.0.1", 8081)
        self.leader = self.identity
        self.forwarded: list[Forwarded] = []

    async def write(
        self, decide: Callable[[], Decision[T]], request: Forwarded, *, is_forwarded: bool
    ) -> T | Answer:
        self.forwarded.append(request)
        decision = decide()
        replay(self.state, decision)
        return decision.reply


def replay(state: State, decision: Decision[Any]) -> None:
    for change in decision.changes:
        state.replay(decoded(*change.encoded()), NOW_MS)


def client_of(registry: Registry) -> httpx2.AsyncClient:
    """A client that asks the application without a socket."""
    transport = httpx2.ASGITransport(app=application(registry), raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://registry")


async def register(client: httpx2.AsyncClient, subject: str, text: str = USER, **given: Any) -> int:
    """Register a schema that fits; its id."""
    answer = await client.post(f"/subjects/{subject}/versions", json={"schema": text, **given})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


class RegistryProcess:
    """`headrace registry` as a user starts it."""

    def __init__(
        self,
        bootstrap: str,
        log: Path,
        settings: Mapping[str, str] | None = None,
        given: Sequence[str] = (),
        **client: Any,
    ) -> None:
        options = [f"--set={name}={value}" for name, value in (settings or {}).items()]
        command = [sys.executable, "-m", "headrace.cli.main", "registry"]
        command += ["--bootstrap", bootstrap, "--listen", "127.0.0.1:0", *options, *given]
        self.log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        if "Headrace registry is ready on" not in first:
            self.process.stdout.close()
            self.process.kill()
            raise AssertionError(log.read_text())
        self.url = first.split()[-1]
        self.client = httpx2.Client(base_url=self.url, timeout=60, **client)

    def get(self, path: str, **parameters: Any) -> Any:
        answer = self.client.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def register(self, subject: str, text: str) -> httpx2.Response:
        return self.client.post(f"/subjects/{subject}/versions", json={"schema": text})

    @property
    def is_leader(self) -> bool:
        return "\nheadrace_registry_leader 1\n" in self.client.get("/metrics").text

    def wait_until_ready(self) -> None:
        eventually(lambda: self.client.get("/ready").status_code == 200)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.client.close()
        self.process.send_signal(number)
        code = self.process.wait(60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@contextmanager
def running_registry(
    bootstrap: str, directory: Path, name: str, topic: str = ""
) -> Iterator[RegistryProcess]:
    """A registry for as long as the block runs, with a topic of its own unless one is named."""
    own = {"kafkastore.topic": topic or f"_schemas-{name}"}
    settings = {**own, "schema.registry.group.id": name}
    registry = RegistryProcess(bootstrap, directory / "registry.log", settings)
    try:
        yield registry
    finally:
        if registry.process.poll() is None:
            registry.end()
