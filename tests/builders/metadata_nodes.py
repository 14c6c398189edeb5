"""The metadata half of a node in a directory, for tests: no sockets, no partitions."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from headrace.broker.registration import broker_registration, controller_registration
from headrace.controller.config_rules import SettingsRules
from headrace.controller.controller import Controller
from headrace.errors import KafkaError
from headrace.metadata.image import Endpoint, MetadataImage
from headrace.metadata.loader import MetadataLoader
from headrace.metadata.log.formatting import NewNode, format_directories
from headrace.metadata.log.metadata_log import MetadataLog, MetadataLogSettings
from headrace.protocol.schemas.broker_heartbeat import BrokerHeartbeatRequest
from headrace.quorum.metadata_quorum import MetadataQuorum
from headrace.raft import replicas as raft
from headrace.raft.effects import LocalReplica, Timeouts
from headrace.runtime.clock import Clock
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_layers import BrokerLayers
from headrace.storage.checkpoints import decode_identity

NOW_MS = 1_800_000_000_000
RULES = SettingsRules(BrokerLayers(BrokerSettings()))
ENDPOINT = Endpoint("CONTROLLER", "localhost", 9093)
KAFKA_NODE = Path(__file__).parents[1] / "data" / "kafka_node"


class FixedClock:
    """A clock that a test moves by hand."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now


def formatted(directory: Path) -> Path:
    """A directory that is ready for the first start of node 1."""
    node = NewNode(node_id=1, controller_endpoint=ENDPOINT, cluster_id="c" * 22)
    format_directories([str(directory)], str(directory), node, NOW_MS)
    return directory


def kafkas_node(directory: Path) -> Path:
    """A copy of what Kafka 4.3.1 left behind when it was killed."""
    shutil.copytree(KAFKA_NODE, directory, dirs_exist_ok=True)
    return directory


def opened(directory: Path, settings: MetadataLogSettings | None = None) -> MetadataLog:
    return MetadataLog.open(str(directory), settings=settings)


def loaded(log: MetadataLog) -> MetadataLoader:
    """Replay the whole log, as a node does with what is committed."""
    loader = MetadataLoader()
    log.replay(loader, log.end_offset)
    loader.publish()
    return loader


def image_in(directory: Path) -> MetadataImage:
    """The image of all records in a directory."""
    log = opened(directory)
    try:
        return loaded(log).image
    finally:
        log.close()


Background = Callable[[Callable[[], None]], Awaitable[None]]


async def at_once(function: Callable[[], None]) -> None:
    """Background work that takes one turn of the loop and no thread."""
    await asyncio.sleep(0)
    function()


def replica_in(
    directory: Path,
    *,
    background: Background = at_once,
    clock: Clock | None = None,
    settings: MetadataLogSettings | None = None,
    endpoint: Endpoint | None = ENDPOINT,
    directory_id: bytes | None = None,
) -> MetadataQuorum:
    """The replica of the quorum in a directory, which is not started yet.

    The node is the only controller, as `quorum_node.py` builds it without further settings.
    """
    identity = decode_identity((directory / "meta.properties").read_bytes())
    endpoints = (raft.Endpoint(endpoint.name, endpoint.host, endpoint.port),) if endpoint else ()
    local = LocalReplica(
        key=raft.ReplicaKey(identity.node_id, directory_id or identity.directory_id),
        cluster_id=identity.cluster_id,
        listener=ENDPOINT.name,
        endpoints=endpoints,
    )
    return MetadataQuorum(
        local,
        opened(directory, settings),
        raft.VoterSet.of([raft.Voter(raft.ReplicaKey(identity.node_id), endpoints)]),
        Timeouts(),
        clock=clock or FixedClock(),
        background=background,
    )


class SoleController(Controller):
    """The controller of a quorum of one, whose own broker is registered."""

    def __init__(self, quorum: MetadataQuorum, clock: Clock, background: Background) -> None:
        super().__init__(quorum, clock, background, BrokerSettings())
        self.replica = quorum
        self.broker_epoch = -1
        quorum.on_leadership = self.led_by
        quorum.on_committed = self.committed
        quorum.on_failure = self.failed

    async def stop(self, broker_id: int) -> None:
        """Have the broker fenced, as a clean stop does, and close the log."""
        leaving = BrokerHeartbeatRequest(broker_id, self.broker_epoch, want_shut_down=True)
        with suppress(KafkaError):
            await self.ask(leaving)
        await self.end()

    async def end(self) -> None:
        """Leave the quorum and close the log without fencing the broker, as a crash does."""
        self.replica.resign()
        await self.close()
        await self.replica.close()


async def active(
    directory: Path,
    *,
    background: Background = at_once,
    clock: Clock | None = None,
    settings: MetadataLogSettings | None = None,
) -> SoleController:
    """A controller that decides."""
    clock = clock or FixedClock()
    quorum = replica_in(directory, background=background, clock=clock, settings=settings)
    controller = SoleController(quorum, clock, background)
    quorum.start()
    await controller.wait_until_active()
    return controller


async def started(
    directory: Path,
    *,
    background: Background = at_once,
    clock: Clock | None = None,
    settings: MetadataLogSettings | None = None,
    previous_broker_epoch: int = -1,
    unfence: bool = True,
) -> SoleController:
    """A controller that decides and has its broker registered."""
    controller = await active(directory, background=background, clock=clock, settings=settings)
    registrations = (
        controller_registration(1, [ENDPOINT]),
        broker_registration(
            1,
            "c" * 22,
            [Endpoint("PLAINTEXT", "localhost", 9092)],
            log_dirs=[controller.replica.local.key.directory_id],
            previous_broker_epoch=previous_broker_epoch,
        ),
    )
    _, registered = await asyncio.gather(*map(controller.ask, registrations))
    controller.broker_epoch = registered.broker_epoch
    if unfence:
        await controller.ask(BrokerHeartbeatRequest(1, controller.broker_epoch))
    return controller
