"""A node: built from its settings by ordinary constructor calls, started, run, stopped."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from headrace.broker.configs.described_broker import DescribedBroker
from headrace.broker.configs.topic_configs import TopicConfigs
from headrace.broker.coordinators import Coordinator, Timers
from headrace.broker.delayed import WakeUps
from headrace.broker.dispatch import Dispatcher
from headrace.broker.fetch_sessions import FetchSessions
from headrace.broker.fitting import Fitting
from headrace.broker.flushing import Flusher
from headrace.broker.frame_buffers import FrameBuffers
from headrace.broker.hosting import Assignments, Hosting
from headrace.broker.maintenance import Maintenance
from headrace.broker.metrics.telemetry import Telemetry
from headrace.broker.partitions import Partitions
from headrace.broker.produce_rounds import ProduceRound
from headrace.broker.produce_shapes import ProduceShapes
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.registered_schemas import RegisteredSchemas
from headrace.broker.reports import report
from headrace.broker.server import CannotListen, Server, ServerLimits, failure_text
from headrace.broker.shares.coordinator import ShareCoordinator
from headrace.broker.shares.partitions import SharePartitions
from headrace.broker.shares.persister import SharePersister
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS
from headrace.broker.topics.metadata_answers import MetadataAnswers
from headrace.broker.topics.topic_creation import TopicCreation
from headrace.broker.transactions import TransactionCoordinator
from headrace.controller.controller import Controller
from headrace.controller.decision import ClusterDefaults, Decide
from headrace.controller.registration import (
    BrokerIdentity,
    ControllerIdentity,
    assign_directories,
    take_directories_offline,
)
from headrace.errors import KafkaStorageError
from headrace.metadata.image import Endpoint, MetadataImage
from headrace.metadata.loader import MetadataLoader
from headrace.protocol.uuids import Uuid, random_uuid
from headrace.raft.formatting import NewNode, format_directories
from headrace.raft.metadata_log import MetadataLog, MetadataLogSettings
from headrace.runtime.clock import Clock, SystemClock
from headrace.runtime.metrics import Metrics
from headrace.runtime.tasks import Tasks
from headrace.settings.broker import BrokerSettings
from headrace.storage.directories import LogDirectories

if TYPE_CHECKING:
    from headrace.groups.shard import GroupShard
    from headrace.metadata.delta import ImageDelta
    from headrace.runtime.observability import Observability
    from headrace.storage.directory import LogDirectory
    from headrace.storage.log import Log

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_PLAINTEXT = 0
_CONTROLLER_PORT = 9093  # Where a quorum of one would listen if it had anyone to listen to.


class Broker:
    """One node at work: what its handlers and its background work share."""

    def __init__(
        self, settings: BrokerSettings, loop: asyncio.AbstractEventLoop, clock: Clock | None = None
    ) -> None:
        self.loop = loop
        self.clock = clock or SystemClock()
        self.node_id = settings.node_id
        self.metrics = Metrics()
        self.tasks = Tasks(loop)
        self.partitions = Partitions()
        self.registered_schemas = RegisteredSchemas(
            self.partitions, settings.headrace_schemas_topic
        )
        self.configs = TopicConfigs(settings, settings.node_id, self.registered_schemas)
        self.wake_ups = WakeUps(loop)
        self.produce_shapes = ProduceShapes()
        self.fetch_sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots)
        self.metadata_answers = MetadataAnswers()
        self.described_broker = DescribedBroker()
        self.topic_creation = TopicCreation(self)
        self.producer_ids = ProducerIds(self)
        self.timers = Timers(self)
        self.groups: Coordinator[GroupShard] = Coordinator(
            self, CONSUMER_OFFSETS, self._new_group_shard
        )
        self.transactions = TransactionCoordinator(self)
        self.share_coordinator = ShareCoordinator(self)
        self.share_persister = SharePersister(self)
        self.share_partitions = SharePartitions(self)
        self.telemetry = Telemetry(settings.telemetry_max_bytes)
        self.flusher = Flusher(
            loop,
            self.tasks.in_thread,
            self._disk_failed,
            clock=self.clock,
            durations=self.metrics.log_flush,
        )
        limits = _limits(settings)
        buffers = FrameBuffers(limits.socket_request_max_bytes)
        self.produce_round = ProduceRound(
            buffers, self.produce_shapes, self.wake_ups, self.metrics, self.clock
        )
        self.fitting = Fitting(self.tasks.in_thread)
        self.dispatcher = Dispatcher(self)
        self.server = Server(loop, limits, self.dispatcher, buffers, self.produce_round)
        self.server.on_disconnect = self.share_partitions.disconnected
        self.cluster_id = ""
        self.metrics_address = ""
        self.is_ready = False
        self.stopping = asyncio.Event()
        self.failure: KafkaStorageError | None = None
        self._followed_settings: BrokerSettings | None = None
        self._is_registering = False
        """From the moment when the controller is told which directories this node has."""
        self.directories: LogDirectories
        self.controller: Controller
        self._maintenance: Maintenance
        self._observability: Observability | None = None

    @property
    def settings(self) -> BrokerSettings:
        """The settings as they are now, with what was changed at run time."""
        return self.configs.settings

    @property
    def image(self) -> MetadataImage:
        """The metadata as of the last commit."""
        return self.controller.image

    def background(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        """Run what blocks in a thread."""
        return self.tasks.in_thread(function, *args, **kwargs)

    # --- start --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the data, lead the metadata quorum, host the partitions, then let clients in.

        The order is Kafka's: the metadata says which directories belong to which topic, so it
        is read before any log; and no client is heard before every log has been loaded.
        """
        metadata_log = self._open_data()
        self.controller = self._make_controller(metadata_log)
        hosting = self._make_hosting()
        await self._register(metadata_log, self._bind(self.settings))
        unclean = [one for one in self.directories.online if one.unclaimed and not one.was_clean]
        for directory in unclean:
            count = len(directory.unclaimed)
            _log.info("%s was not closed cleanly: %d logs are checked", directory.path, count)
        hosting.take_up(self.image)
        self.directories.set_strays_aside()
        self.controller.on_published(hosting.apply)
        for coordinator in self.coordinators:
            coordinator.follow(self.image)
        self.controller.on_published(self._follow_topics)
        self.controller.on_published(lambda delta, image: self._follow_settings())
        self._follow_settings()
        await self.controller.unfence(self.node_id)
        await self._open_metrics_port()
        self._maintenance = Maintenance(self, hosting)
        self._maintenance.start()
        self.server.start()
        self.is_ready = True

    def _open_data(self) -> MetadataLog:
        """Format what is new, lock what is there, and open the log that says what belongs here."""
        settings = self.settings
        identities = format_directories(
            settings.directories,
            settings.metadata_directory,
            NewNode(node_id=self.node_id, controller_endpoint=_controller_endpoint(settings)),
            self.clock.now_ms(),
            known=lambda: _known_directories(settings),
        )
        self.cluster_id = identities[settings.metadata_directory].cluster_id
        ids = {path: identity.directory_id for path, identity in identities.items()}
        self.directories = LogDirectories.open(
            settings.directories, ids, on_offline=self._directory_went_offline
        )
        return MetadataLog.open(
            settings.metadata_directory,
            self.node_id,
            ids[settings.metadata_directory],
            settings=_metadata_settings(settings),
            resources=self.directories.resources,
        )

    def _make_controller(self, metadata_log: MetadataLog) -> Controller:
        loader = MetadataLoader()
        metadata_log.load(loader)
        loader.publish()
        controller = Controller(
            metadata_log,
            loader,
            self.clock,
            self.tasks.in_thread,
            _defaults(self.settings),
        )
        controller.on_failure(self._metadata_failed)
        return controller

    def _make_hosting(self) -> Hosting:
        return Hosting(
            self.node_id,
            self.partitions,
            self.directories,
            self.configs,
            self.metrics,
            self.wake_ups,
            forget_shapes=self.produce_round.forget,
            soon=self.loop.call_soon,
            report=self._report_directories,
        )

    async def _register(self, metadata_log: MetadataLog, endpoints: list[Endpoint]) -> None:
        """Lead the quorum of one, and enter this node in its metadata."""
        settings = self.settings
        self._is_registering = True
        await self.controller.start(
            metadata_log.read_bootstrap(),
            ControllerIdentity(
                controller_id=self.node_id,
                incarnation_id=random_uuid(),
                endpoints=(_controller_endpoint(settings),),
            ),
            BrokerIdentity(
                broker_id=self.node_id,
                incarnation_id=random_uuid(),
                endpoints=endpoints,
                directories=[directory.id for directory in self.directories.online],
                rack=settings.broker_rack,
                previous_broker_epoch=self.directories.previous_broker_epoch,
            ),
        )

    @property
    def coordinators(self) -> "tuple[Coordinator[Any], ...]":
        """Every internal topic whose shards live here."""
        return (self.groups, self.transactions.coordinator, self.share_coordinator.coordinator)

    def _follow_topics(self, delta: "ImageDelta", image: MetadataImage) -> None:
        for coordinator in self.coordinators:
            coordinator.follow(image)
        if not delta.topics_deleted:
            return
        ids = {topic.id for topic in delta.topics_deleted}
        self.share_coordinator.on_topics_deleted(ids)
        self.share_partitions.forget_topics(ids)
        self.groups.for_each(lambda state: state.on_topic_ids_deleted(ids))
        gone = {topic.name for topic in delta.topics_deleted} - image.topics.keys()
        if gone:
            self.groups.for_each(lambda state: state.on_topics_deleted(gone))

    def _new_group_shard(self, partition: int) -> "GroupShard":
        from headrace.groups.shard import GroupShard

        return GroupShard(lambda: self.settings, lambda: self.image, self.metrics.coordinators)

    def _follow_settings(self) -> None:
        """Configs that were changed at run time count for controller and server as well."""
        settings = self.settings
        if settings is not self._followed_settings:
            self._followed_settings = settings
            self.controller.defaults = _defaults(settings)
            self.server.limits = _limits(settings)

    def _bind(self, settings: BrokerSettings) -> list[Endpoint]:
        """Claim the ports, and with them the addresses that clients are told."""
        advertised = settings.advertised
        endpoints = []
        for listener in settings.broker_listeners:
            _, port = self.server.bind(listener.name, listener.host, listener.port)
            told = advertised.get(listener.name, listener)
            told_host = _reachable_host() if told.is_every_interface else told.host
            told_port = told.port if told.port else port
            endpoints.append(Endpoint(listener.name, told_host, told_port, _PLAINTEXT))
        self.endpoints = tuple(endpoints)
        return endpoints

    async def _open_metrics_port(self) -> None:
        settings = self.settings
        if settings.headrace_metrics_port < 0:
            return
        from headrace.broker.metrics.vital_signs import VitalSigns
        from headrace.runtime.observability import Observability

        signs = VitalSigns(self)
        self._observability = Observability(
            metrics=signs.families, health=signs.health, ready=signs.readiness
        )
        wanted = settings.headrace_metrics_host, settings.headrace_metrics_port
        try:
            host, port = await self._observability.start(*wanted)
        except OSError as error:
            raise CannotListen(*wanted, failure_text(error), "headrace.metrics.port") from error
        self.metrics_address = f"{host}:{port}"

    # --- stop ---------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Let go of the clients, then close everything in the order that makes a clean start."""
        self.is_ready = False
        self.server.stop()
        self.groups.stop()  # Those who wait for a rebalance would keep us waiting as well.
        await self.dispatcher.stop()
        self.share_partitions.stop()
        for coordinator in self.coordinators:
            coordinator.stop()
        if self._observability is not None:
            await self._observability.stop()
        await self.flusher.stop()
        await self.tasks.stop()
        await self.controller.stop(self.node_id)
        self.directories.close(self.controller.broker_epoch)

    # --- failures -----------------------------------------------------------------------------

    def _disk_failed(self, failed: "Log", error: OSError) -> None:
        self.directories.fail(self.directories.directory_of(failed), error)

    def _metadata_failed(self, failure: KafkaStorageError) -> None:
        """Without its metadata log a node can change nothing and must not pretend to."""
        self.failure = failure
        self.stopping.set()

    def _directory_went_offline(self, directory: "LogDirectory") -> None:
        """Tell the cluster, so that clients look for other replicas of what is lost here."""
        if not self._is_registering:
            return  # It was offline from the start: registration leaves it out.
        for partition in self.partitions:
            if partition.waiters:
                self.wake_ups.changed(partition)
        controller = self.controller
        self._report(
            lambda image: take_directories_offline(
                image, self.node_id, controller.broker_epoch, [directory.id], controller.defaults
            ),
            f"failure of {directory.path}",
        )

    def _report_directories(self, assigned: Assignments) -> None:
        self._report(
            lambda image: assign_directories(image, self.node_id, assigned),
            "assignment of log directories",
        )

    def _report(self, decide: Decide[None], name: str) -> None:
        async def tell() -> None:
            await report(self.controller.submit, decide, name, asyncio.sleep)

        self.tasks.start(tell(), name)


async def _nothing() -> None:
    """For nodes that nothing has to end before."""


def run(
    settings: BrokerSettings,
    on_ready: Callable[[Broker], None],
    before_stop: Callable[[], Awaitable[None]] = _nothing,
) -> int:
    """Run a node until it is told to stop; returns the exit code of its process.

    `before_stop` is for what needs the node up to its own end.
    """
    loop = _new_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(settings, loop, on_ready, before_stop))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _serve(
    settings: BrokerSettings,
    loop: asyncio.AbstractEventLoop,
    on_ready: Callable[[Broker], None],
    before_stop: Callable[[], Awaitable[None]],
) -> int:
    broker = Broker(settings, loop)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, broker.stopping.set)
    await broker.start()
    # What lives now lives long: the collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    # A thread that compacts must not keep the loop from a client for Python's usual 5 ms.
    sys.setswitchinterval(0.0005)
    on_ready(broker)
    await broker.stopping.wait()
    _log.info("stopping")
    await before_stop()
    await broker.stop()
    _log.info("stopped")
    return 0 if broker.failure is None else 1


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _reachable_host() -> str:
    """The name under which other machines find this one, where no listener says it."""
    import socket

    name = socket.getfqdn()
    if not name.startswith("localhost"):
        return name
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # No packet is sent: it only asks for the way out.
        except OSError:
            return name
        return str(probe.getsockname()[0])


def _known_directories(settings: BrokerSettings) -> Mapping[Uuid, int]:
    """The log directories that this node had, which a new one must not stand in for unasked."""
    if settings.headrace_format_new_directories:
        return {}
    from headrace.raft.known_directories import read_known_directories  # Seldom needed.

    return read_known_directories(settings.metadata_directory)


def _controller_endpoint(settings: BrokerSettings) -> Endpoint:
    """Where this node's half of the quorum would be found; nobody needs to connect to it yet."""
    for listener in settings.controller_listeners:
        host = _reachable_host() if listener.is_every_interface else listener.host
        return Endpoint(listener.name, host, listener.port, _PLAINTEXT)
    return Endpoint(
        settings.controller_listener_names[0], "localhost", _CONTROLLER_PORT, _PLAINTEXT
    )


def _limits(settings: BrokerSettings) -> ServerLimits:
    """Socket buffers are left to the kernel, which sizes them better, unless they are asked for.

    Nor is Kafka's backlog of 50 ours unless asked for: a thousand clients that come at once wait.
    """
    given = settings.given
    return ServerLimits(
        socket_request_max_bytes=settings.socket_request_max_bytes,
        socket_send_buffer_bytes=(
            settings.socket_send_buffer_bytes if "socket.send.buffer.bytes" in given else -1
        ),
        socket_receive_buffer_bytes=(
            settings.socket_receive_buffer_bytes if "socket.receive.buffer.bytes" in given else -1
        ),
        connections_max_idle_ms=settings.connections_max_idle_ms,
        max_connections=settings.max_connections,
        socket_listen_backlog_size=(
            settings.socket_listen_backlog_size if "socket.listen.backlog.size" in given else 1024
        ),
        max_connections_per_ip=settings.max_connections_per_ip,
        max_connections_per_ip_overrides=settings.connections_per_ip,
        max_connection_creation_rate=settings.max_connection_creation_rate,
    )


def _defaults(settings: BrokerSettings) -> ClusterDefaults:
    return ClusterDefaults(
        num_partitions=settings.num_partitions,
        default_replication_factor=settings.default_replication_factor,
        min_insync_replicas=settings.min_insync_replicas,
        unclean_leader_election_enable=settings.unclean_leader_election_enable,
    )


def _metadata_settings(settings: BrokerSettings) -> MetadataLogSettings:
    return MetadataLogSettings(
        segment_bytes=settings.metadata_log_segment_bytes,
        segment_ms=settings.metadata_log_segment_ms,
        retention_bytes=settings.metadata_max_retention_bytes,
        retention_ms=settings.metadata_max_retention_ms,
        record_bytes_between_snapshots=settings.metadata_log_max_record_bytes_between_snapshots,
        snapshot_interval_ms=settings.metadata_log_max_snapshot_interval_ms,
    )
