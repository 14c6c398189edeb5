"""The metadata half of a node in a directory, for tests: no sockets, no partitions."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from headrace.controller.config_rules import SettingsRules
from headrace.controller.controller import Controller
from headrace.controller.registration import BrokerIdentity, ControllerIdentity
from headrace.metadata.image import Endpoint, MetadataImage
from headrace.metadata.loader import MetadataLoader
from headrace.protocol.uuids import random_uuid
from headrace.raft.formatting import NewNode, format_directories
from headrace.raft.metadata_log import MetadataLog, MetadataLogSettings
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_layers import BrokerLayers
from headrace.storage.checkpoints import decode_identity

NOW_MS = 1_800_000_000_000
RULES = SettingsRules(BrokerLayers(BrokerSettings()))
ENDPOINT = Endpoint("CONTROLLER", "localhost", 9093)
KAFKA_NODE = Path(__file__).parent / "data" / "kafka_node"


class FixedClock:
    """Time that passes when a test says so."""

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
    identity = decode_identity((directory / "meta.properties").read_bytes())
    return MetadataLog.open(
        str(directory), identity.node_id, identity.directory_id, settings=settings
    )


def loaded(log: MetadataLog) -> MetadataLoader:
    loader = MetadataLoader()
    log.load(loader)
    loader.publish()
    return loader


def image_in(directory: Path) -> MetadataImage:
    """What the next start would find."""
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


async def started(
    directory: Path,
    *,
    background: Background = at_once,
    clock: FixedClock | None = None,
    settings: MetadataLogSettings | None = None,
    previous_broker_epoch: int = -1,
    unfence: bool = True,
) -> Controller:
    """A controller that leads and has its broker registered."""
    log = opened(directory, settings)
    controller = Controller(log, loaded(log), clock or FixedClock(), background)
    await controller.start(
        log.read_bootstrap(),
        ControllerIdentity(controller_id=1, incarnation_id=random_uuid(), endpoints=[ENDPOINT]),
        BrokerIdentity(
            broker_id=1,
            incarnation_id=random_uuid(),
            endpoints=[Endpoint("PLAINTEXT", "localhost", 9092)],
            directories=[log.directory_id],
            previous_broker_epoch=previous_broker_epoch,
        ),
    )
    if unfence:
        await controller.unfence(1)
    return controller
