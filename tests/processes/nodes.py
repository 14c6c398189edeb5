"""Brokers under test as real processes: Headrace, and Apache Kafka to check the tests against.

`HEADRACE_TEST_TARGET=kafka` runs the integration tests on Apache Kafka. A test that fails there
demands something that Kafka does not do, so the test is wrong. `HEADRACE_TEST_TARGET=cluster` runs
those of clients on three nodes.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import uuid4

from tests.processes.kafka import find_kafka

HOST = "127.0.0.1"
# Below the range that the kernel gives to clients: while a node is down, a client that knocks on
# its port must not happen to be given that very port itself.
PORTS = range(15_000, 32_000)
PORT_SHARES = 16
START_SECONDS_MAX = 60
# Only warnings, and the one line that reports that the node is ready.
KAFKA_LOGGING = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
logger.started.name = kafka.server.KafkaRaftServer
logger.started.level = info
"""

T = TypeVar("T")


def eventually(
    probe: Callable[[], T], *, seconds: float = 30, expect: Callable[[T], bool] = bool
) -> T:
    """Ask again and again until the answer is as expected, and return it."""
    deadline = time.monotonic() + seconds
    while not expect(answer := probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"still {answer!r} after {seconds} s")
        time.sleep(0.02)
    return answer


@cache
def own_ports() -> Iterator[int]:
    """Ports that no other process of these tests takes, each again only after all others.

    Half a second passes between the check that a port is free and the start of its node.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    own = list(PORTS[worker % PORT_SHARES :: PORT_SHARES])
    random.shuffle(own)
    return cycle(own)


def free_port() -> int:
    for port in islice(own_ports(), 200):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port found")


def random_cluster_id() -> str:
    """As `kafka-storage random-uuid` makes one, without its JVM; a dash would be an option."""
    while (made := urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made


class Flavour(Protocol):
    """The command and settings of one kind of broker."""

    name: str

    def command(self, node: "Node") -> list[str]: ...

    def is_ready(self, log: str) -> bool: ...


class Headrace:
    """The broker of this project, started as a user does."""

    name = "headrace"

    def command(self, node: "Node") -> list[str]:
        program = str(Path(sys.executable).with_name("headrace"))
        options = [f"--set={name}={value}" for name, value in node.settings.items()]
        return [program, "up", "--data", str(node.data), "--listen", node.address, *options]

    def is_ready(self, log: str) -> bool:
        return "Headrace is ready on " in log


class HeadraceCluster(Headrace):
    """Three nodes behind the address of the first, to run clients on replicated partitions.

    Tests that look into a node's directory or process are not meant for it.
    """

    def command(self, node: "Node") -> list[str]:
        return [*super().command(node), "--nodes", "3"]


SOON = ("-Xmx512M", "-XX:TieredStopAtLevel=1")


class Kafka:
    """Apache Kafka as one combined node; by default it starts soon and runs slowly."""

    name = "kafka"

    def __init__(self, flags: Sequence[str] | None = None) -> None:
        self._flags = flags

    @property
    def flags(self) -> Sequence[str]:
        return (*SOON, *find_kafka().sooner) if self._flags is None else self._flags

    def command(self, node: "Node") -> list[str]:
        """Write the configuration, and format the directories unless a node has lived there."""
        values = {**self.defaults(node), **node.settings}
        properties = node.directory / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        if not Path(values["log.dirs"].split(",")[0], "meta.properties").exists():
            options = ("--standalone", "-t", random_cluster_id(), "-c", str(properties))
            find_kafka().run("kafka-storage", "format", *options)
        logging = node.directory / "log4j2.properties"
        logging.write_text(KAFKA_LOGGING)
        flags = (*self.flags, f"-Dlog4j2.configurationFile={logging}")
        return find_kafka().command("kafka-server-start", str(properties), flags=flags)

    def defaults(self, node: "Node") -> dict[str, str]:
        controller = f"{HOST}:{node.controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": controller,
            "listeners": f"PLAINTEXT://{node.address},CONTROLLER://{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(node.data),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        }

    def is_ready(self, log: str) -> bool:
        return "Kafka Server started" in log


def flavour_under_test() -> Flavour:
    flavours: dict[str, type[Flavour]] = {"kafka": Kafka, "cluster": HeadraceCluster}
    return flavours.get(os.environ.get("HEADRACE_TEST_TARGET", ""), Headrace)()


class Node:
    """One broker process, which can be stopped or killed and started again on its address."""

    def __init__(self, flavour: Flavour, directory: Path, settings: Mapping[str, str]) -> None:
        self.flavour = flavour
        self.directory = directory
        self.settings = dict(settings)
        self.port = free_port()
        self.controller_port = free_port()
        self.log_path = directory / f"{flavour.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, as their settings name it."""
        return self.address

    @property
    def data(self) -> Path:
        """The data directory, unless the test set `log.dirs` itself."""
        return self.directory / "data"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Run the broker and wait until it reports that it is ready."""
        seen = len(self.log)
        self.launch()
        eventually(lambda: self.is_ready_since(seen), seconds=START_SECONDS_MAX)

    def launch(self) -> None:
        """Run the broker, and leave it to the caller to see when it is ready."""
        command = self.flavour.command(self)
        # Options that tests have for Spark's JVMs are none for Kafka's: an archive of other
        # classes would keep it from writing its own.
        environment = {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}
        with self.log_path.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=environment
            )

    def is_ready_since(self, position: int) -> bool:
        if not self.is_running:
            raise AssertionError(f"the node ended while it started:\n{self.log[position:]}")
        return self.flavour.is_ready(self.log[position:])

    def stop(self) -> int:
        """End as an operator does, and return the exit code."""
        return self.end_with(signal.SIGTERM)

    def kill(self) -> int:
        """End as a crash does."""
        return self.end_with(signal.SIGKILL)

    def end_with(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def restart(self) -> None:
        self.stop()
        self.start()
