"""A cluster of whole nodes in one process: real nodes on simulated machines.

Each node is `broker.node.Node`, built as in its own process; only its doors differ. Everything that
happens follows from one seed.
"""

import asyncio
import gc
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

from headrace.broker.node import Doors, Node
from headrace.errors import HeadraceError, KafkaError
from headrace.metadata.image import Endpoint
from headrace.metadata.log.formatting import NewNode, Voter, format_directories
from headrace.metadata.log.release_levels import CLUSTER_LEVELS
from headrace.protocol.batches import read_header
from headrace.protocol.uuids import random_uuid
from headrace.settings.broker_loading import load
from headrace.storage.log import Log
from tests.builders.simulated import disks
from tests.builders.simulated.checks import Checker, batches_from
from tests.builders.simulated.data_port import DataPort
from tests.builders.simulated.network import Network, Socket
from tests.builders.simulated.processes import OwnLoop, Process, SimulatedLoop, bury

START_MS = 1_800_000_000_000
PORT = 9092
CONTROLLER_PORT = 9093
CLUSTER_ID = "c" * 22
_BATCH_HEADER = 61

SETTINGS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "headrace.metrics.port": "-1",
    "log.cleaner.enable": "false",
    "replica.lag.time.max.ms": "4000",
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "3000",
    "log.segment.bytes": "1048576",
    "num.recovery.threads.per.data.dir": "1",
    "leader.imbalance.check.interval.seconds": "5",
}


class SkewedClock:
    """The clock of one machine: it is ahead or behind, fast or slow, and may be set."""

    def __init__(self, loop: SimulatedLoop, skew_ms: int, rate: float) -> None:
        self._loop = loop
        self.skew_ms = skew_ms
        self._rate = rate

    def now_ms(self) -> int:
        return START_MS + self.skew_ms + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000 * self._rate)


class SimulatedNode:
    """A machine with a disk and a clock, on which one node runs or does not run."""

    def __init__(self, cluster: "Cluster", node_id: int) -> None:
        self.id = node_id
        self.machine = f"n{node_id}"
        self.cluster = cluster
        chance = cluster.chance
        self.clock = SkewedClock(
            cluster.loop, chance.randint(-5_000, 5_000), chance.choice((0.99, 1.0, 1.01))
        )
        self.disk = disks.Disk(chance, lambda: self.clock.now_ms() * 1_000_000)
        self.disk.on_change = self._dies_now
        self.dies_after: int | None = None
        self.process: Process | None = None
        self.node: Node | None = None
        self.is_ready = False
        self.is_stopping = False
        self._lost_before_epoch = -1
        self._has_lost = False
        self._durable: dict[Any, tuple[int, int]] = {}
        self.settings, _ = load(
            {
                **SETTINGS,
                **cluster.settings,
                "node.id": str(node_id),
                "log.dirs": self.directory,
                "listeners": f"PLAINTEXT://{self.machine}:{PORT},"
                f"CONTROLLER://{self.machine}:{CONTROLLER_PORT}",
                "controller.quorum.bootstrap.servers": ",".join(
                    f"n{one}:{CONTROLLER_PORT}" for one in cluster.ids
                ),
            }
        )

    @property
    def directory(self) -> str:
        return f"/{self.machine}/data"

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.is_alive

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.is_paused

    @property
    def is_on(self) -> bool:
        return self.cluster.network.host(self.machine).is_on

    @property
    def has_lost_data(self) -> bool:
        """Since a power cut, until the node is in the metadata with a new epoch."""
        node = self.node
        if self._has_lost and node is not None and node.broker_epoch >= 0:
            image = getattr(node, "metadata", None)
            if image is not None and self.id in image.image.brokers:
                self._has_lost = image.image.brokers[self.id].epoch != node.broker_epoch
        return self._has_lost

    # Life and death.

    def start(self) -> None:
        assert not self.is_up
        self.cluster.note(f"start {self.id}")
        if not self.is_on:
            self.cluster.network.power_on(self.machine)
        process = self.process = Process(self.machine)
        self.cluster.processes.append(process)
        self.is_ready = self.is_stopping = False
        process.start(self._run(process))

    async def _run(self, process: Process) -> None:
        cluster = self.cluster
        doors = Doors(
            server=partial(DataPort, cluster.network),  # type: ignore[arg-type]
            controller_sockets=_controller_sockets,  # type: ignore[arg-type]
            quorum_thread=OwnLoop,  # type: ignore[arg-type]
        )
        node = self.node = Node(self.settings, cluster.loop, self.clock, doors)
        try:
            await cluster.start_node(self, node)
        except (HeadraceError, OSError) as error:
            cluster.note(f"node {self.id} does not start: {error}")
            self.kill()
            return
        cluster.note(f"ready {self.id}")
        self.is_ready = True
        await node.stopping.wait()
        if not self.is_stopping:
            why = f"node {self.id} stops without a request: {node.failure}"
            cluster.checker.require(False, why)
        await node.stop()
        cluster.note(f"stopped {self.id}")
        self.kill()

    def stop(self) -> None:
        """Stop as after SIGTERM."""
        assert self.node is not None
        assert self.process is not None
        self.cluster.note(f"stop {self.id}")
        self.is_stopping = True
        self.process.run(self.node.stopping.set)

    def kill(self) -> None:
        """End the process as kill -9 does; the machine stays."""
        process = self.process
        if process is None or not process.is_alive:
            return
        self.cluster.note(f"dead {self.id}")
        process.is_alive = False
        process.held.clear()
        self.process = self.node = None
        self.is_ready = False
        self.dies_after = None
        self.cluster.network.close_all_of(process)

    def cut_power(self) -> None:
        self.cluster.note(f"power cut {self.id}")
        self.kill()
        self.cluster.network.power_off(self.machine)
        self.disk.lose_power()
        self._has_lost = True

    def pause(self) -> None:
        assert self.process is not None
        self.cluster.note(f"pause {self.id}")
        self.process.is_paused = True

    def resume(self) -> None:
        if self.process is not None and self.process.is_paused:
            self.cluster.note(f"resume {self.id}")
            self.cluster.loop.resume(self.process)

    def _dies_now(self) -> bool:
        if self.dies_after is None:
            return False
        self.dies_after -= 1
        if self.dies_after >= 0 or not self.is_up:
            return False
        self.kill()
        return True

    # Its disk.

    def durable_metadata_end(self) -> int:
        """The end of the metadata log as a power cut would leave it at the least."""
        end = 0
        place: Any = self.disk.root
        for name in ("data", "__cluster_metadata-0"):
            place = place.durable.get(name)
            if place is None:
                return 0
        for name, file in place.durable.items():
            if name.endswith(".checkpoint"):
                end = max(end, int(name.split("-")[0]))
            if not name.endswith(".log"):
                continue
            content = file.durable
            position, next_offset = self._durable.get((file, file.cuts), (0, 0))
            while position + _BATCH_HEADER <= len(content):
                header = read_header(content, position)
                if position + header.size > len(content):
                    break
                position += header.size
                next_offset = header.next_offset
            self._durable[file, file.cuts] = position, next_offset
            end = max(end, next_offset)
        return end


def _controller_sockets(settings: Any) -> list[tuple[Endpoint, Socket]]:
    found = []
    for listener in settings.controller_listeners:
        endpoint = Endpoint(listener.name, listener.host, listener.port, 0)
        found.append((endpoint, Socket(listener.host, listener.port)))
    return found


class Cluster:
    """Nodes, the network between them, and what is checked."""

    def __init__(
        self, loop: SimulatedLoop, seed: int, *, settings: Mapping[str, str] | None = None
    ) -> None:
        self.seed = seed
        self.loop = loop
        self.chance = loop.chance
        self.settings = settings or {}
        self.history: list[str] = []
        self.processes: list[Process] = []
        self.network = loop.machines = Network(loop, self.chance)
        self.checker = Checker(self)
        self.ids = (1, 2, 3)
        self.nodes = [SimulatedNode(self, node_id) for node_id in self.ids]
        self.nodes_by_machine = {node.machine: node for node in self.nodes}
        self.start_node: Callable[[SimulatedNode, Node], Any] = self._start_node

    def node(self, node_id: int) -> SimulatedNode:
        return self.nodes[node_id - 1]

    @property
    def up(self) -> list[SimulatedNode]:
        return [node for node in self.nodes if node.is_up]

    def note(self, what: str) -> None:
        self.history.append(f"{self.loop.time():9.3f} {what}")

    def format(self) -> None:
        """Format all directories as one cluster."""
        voters = [
            Voter(node.id, random_uuid(), Endpoint("CONTROLLER", node.machine, CONTROLLER_PORT, 0))
            for node in self.nodes
        ]
        for node in self.nodes:
            new = NewNode(
                node_id=node.id, voters=voters, cluster_id=CLUSTER_ID, levels=CLUSTER_LEVELS
            )
            format_directories([node.directory], node.directory, new, START_MS)

    async def _start_node(self, place: SimulatedNode, node: Node) -> None:
        start_quorum = node._start_quorum

        async def start_and_watch(*arguments: Any) -> None:
            await start_quorum(*arguments)
            node.quorum_node.controller.on_published(
                lambda delta, image: self.checker.published(place, image)
            )

        setattr(node, "_start_quorum", start_and_watch)  # noqa: B010
        await node.start()

    def newest_image(self) -> Any:
        """The newest committed metadata that any node has had."""
        return self.checker.newest

    def is_whole(self) -> str:
        """Return what is missing to a cluster without any trouble; nothing if it has none."""
        for node in self.nodes:
            if not node.is_ready or node.node is None:
                return f"node {node.id} is not ready"
        leaders = [
            node.id for node in self.nodes if node.node and node.node.quorum_node.quorum.is_leader
        ]
        if len(leaders) != 1:
            return f"the metadata quorum has the leaders {leaders}"
        for node in self.nodes:
            assert node.node is not None
            image = node.node.metadata.image
            for broker in image.brokers.values():
                if broker.fenced:
                    return f"broker {broker.id} is fenced, as node {node.id} sees it"
            for topic in image.topics.values():
                for index, partition in enumerate(topic.partitions):
                    if partition.leader < 0 or len(partition.isr) < len(partition.replicas):
                        return (
                            f"{topic.name}-{index} has leader {partition.leader} and ISR "
                            f"{partition.isr}, as node {node.id} sees it"
                        )
        return ""


class _Errors(logging.Handler):
    """Collects what the nodes log as their own fault."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(logging.WARNING)
        self._cluster = cluster

    def emit(self, record: logging.LogRecord) -> None:
        facts = {
            name: value
            for name, value in vars(record).items()
            if name not in _USUAL and not name.startswith("_")
        }
        self._cluster.note(f"{record.levelname} {record.getMessage()} {facts}")
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, (KafkaError, SystemExit)):
            self._cluster.loop.problems.append(f"{record.getMessage()}: {error!r}")


_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message"}


@contextmanager
def simulated(seed: int, settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """A formatted cluster that does not run yet; use `run` for everything that takes time."""
    chance = Random(seed)
    loop = SimulatedLoop(chance)
    asyncio.set_event_loop(loop)
    cluster = Cluster(loop, seed, settings=settings)
    log = logging.getLogger("headrace")
    handler = _Errors(cluster)
    advance = Log.advance_high_watermark

    def advance_and_check(log: Log, offset: int) -> None:
        before = log.high_watermark
        advance(log, offset)
        if log.high_watermark > before:
            cluster.checker.advanced(log)

    truncate = Log.truncate_to

    def truncate_and_check(log: Log, offset: int) -> None:
        before = batches_from(log, offset)
        truncate(log, offset)
        cluster.checker.truncated(log, before)

    level, propagates = log.level, log.propagate
    all_disks = {node.machine: node.disk for node in cluster.nodes}
    with disks.doors(all_disks, chance):
        log.addHandler(handler)
        log.propagate = False
        log.setLevel(logging.WARNING)
        setattr(Log, "advance_high_watermark", advance_and_check)  # noqa: B010
        setattr(Log, "truncate_to", truncate_and_check)  # noqa: B010
        try:
            cluster.format()
            yield cluster
        finally:
            setattr(Log, "advance_high_watermark", advance)  # noqa: B010
            setattr(Log, "truncate_to", truncate)  # noqa: B010
            log.removeHandler(handler)
            log.setLevel(level)
            log.propagate = propagates
            asyncio._set_running_loop(None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # Coroutines that never began.
                bury(cluster.processes)
                gc.collect()
            loop.close()
            asyncio.set_event_loop(None)
