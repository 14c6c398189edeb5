"""A node: built from its settings by ordinary constructor calls, started, run, stopped."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.broker import Broker
from headrace.broker.client_quotas import ClientQuotas
from headrace.broker.configs.topic_configs import TopicConfigs
from headrace.broker.coordinators import Coordinator, CoordinatorResources, shard_timers
from headrace.broker.dispatch import Dispatcher
from headrace.broker.fetch_sessions import FetchSessions
from headrace.broker.flushing import Flusher
from headrace.broker.frame_buffers import FrameBuffers
from headrace.broker.hosting import Assignments, Hosting
from headrace.broker.identities import open_identities
from headrace.broker.isr_changes import IsrChanges
from headrace.broker.leaders import Leaders
from headrace.broker.logins.nodes import broker_logins, controller_logins, own_login_of
from headrace.broker.maintenance import Maintenance
from headrace.broker.metadata import ClusterMetadata
from headrace.broker.metrics.counters import Metrics
from headrace.broker.metrics.telemetry import Telemetry
from headrace.broker.produce.heavy import HeavyValidation
from headrace.broker.produce.rounds import ProduceRound
from headrace.broker.produce.shapes import ProduceShapes
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.registered_schemas import RegisteredSchemas
from headrace.broker.registration import (
    bind_controllers,
    broker_registration,
    controller_endpoint,
    controller_registration,
    directory_assignments,
    endpoint_of,
    report,
)
from headrace.broker.replication_throttles import ReplicationThrottles
from headrace.broker.server import Server
from headrace.broker.server_limits import ServerLimits, client_windows, limits_of
from headrace.broker.shares.coordinator import ShareCoordinator
from headrace.broker.shares.partitions import SharePartitions
from headrace.broker.shares.persister import SharePersister
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS, create_internal
from headrace.broker.topics.metadata_answers import MetadataAnswers
from headrace.broker.topics.topic_creation import TopicCreation
from headrace.broker.topics.topology import leader_nodes
from headrace.broker.transactions import TransactionCoordinator
from headrace.broker.usage import Usage
from headrace.errors import CannotListen, KafkaStorageError
from headrace.metadata.image import Endpoint, MetadataImage
from headrace.peers.pool import BrokerChannels
from headrace.protocol.message import Message
from headrace.quorum.quorum_node import MetadataPlace, QuorumNode
from headrace.quotas.rates import Windows
from headrace.quotas.usage_windows import MINUTE_MS
from headrace.raft import replicas as raft
from headrace.replication.delayed import WakeUps
from headrace.replication.partitions import Partitions
from headrace.runtime.clock import Clock, SystemClock
from headrace.runtime.loop_thread import LoopThread
from headrace.runtime.tasks import Tasks
from headrace.security.node_tls import NodeTls
from headrace.settings.broker import BrokerSettings
from headrace.settings.listener_security import listener_security
from headrace.storage.checkpoints import LAST_BROKER_EPOCH, UNKNOWN_BROKER_EPOCH
from headrace.storage.directories import LogDirectories

if TYPE_CHECKING:
    from headrace.broker.audit_writer import AuditWriter
    from headrace.broker.connection import Connection
    from headrace.broker.fetchers import ReplicaFetchers
    from headrace.broker.logins.gate import Gate
    from headrace.broker.logins.listeners import NodeLogins
    from headrace.groups.shard import GroupShard
    from headrace.metadata.delta import ImageDelta
    from headrace.runtime.observability import Observability
    from headrace.storage.directory import LogDirectory
    from headrace.storage.log import Log

_log = logging.getLogger(__name__)

_ABANDON_S = 5.0
_CATCH_UP_S = 5.0


class Doors(NamedTuple):
    """The parts of a node that touch the machine; a simulation has its own."""

    server: Callable[
        [asyncio.AbstractEventLoop, ServerLimits, FrameBuffers, ProduceRound], Server
    ] = Server
    controller_sockets: Callable[[BrokerSettings], list[tuple[Endpoint, socket.socket]]] = (
        bind_controllers
    )
    quorum_thread: Callable[[str], LoopThread] = LoopThread


class Node:
    """A broker, its half of the metadata quorum, and its ports."""

    def __init__(
        self,
        settings: BrokerSettings,
        loop: asyncio.AbstractEventLoop,
        clock: Clock | None = None,
        doors: Doors | None = None,
    ) -> None:
        self._doors = doors or Doors()
        self.loop = loop
        self.clock = clock or SystemClock()
        self.node_id = settings.node_id
        self.metrics = Metrics()
        self.usage = Usage(settings.node_id, self.clock.now_ms())
        self.tasks = Tasks(loop)
        self.wake_ups = WakeUps(loop)
        self.partitions = Partitions(self.wake_ups.changed)
        self._peers: list[BrokerChannels] = []
        self._inter_broker_listener = settings.inter_broker_listener
        self._own_login = own_login_of(settings)
        self.tls = NodeTls(settings)
        self.registered_schemas = RegisteredSchemas(
            self.partitions, self._channels("schemas"), settings.headrace_schemas_topic
        )
        self.configs = TopicConfigs(settings, settings.node_id, self.registered_schemas)
        self.produce_shapes = ProduceShapes()
        self.flusher = Flusher(
            loop,
            self.tasks.in_thread,
            self._disk_failed,
            clock=self.clock,
            durations=self.metrics.log_flush,
        )
        limits = limits_of(settings)
        buffers = FrameBuffers(limits.socket_request_max_bytes)
        self.produce_round = ProduceRound(buffers, self.produce_shapes, self.metrics, self.clock)
        self.server = self._doors.server(loop, limits, buffers, self.produce_round)
        self.broker_epoch = -1
        self.endpoints: list[Endpoint] = []
        self.metrics_address = ""
        self.is_ready = False
        self.stopping = asyncio.Event()
        self._followed_settings: BrokerSettings | None = None
        self._followed_rules = -1
        self._disk_failure: KafkaStorageError | None = None
        self._is_registering = False
        """From the moment when the log directories are sent to the controller."""
        self._observability: Observability | None = None
        self._audit = self._make_audit()
        self.cluster_id: str
        self.directories: LogDirectories
        self.quorum_node: QuorumNode
        self.metadata: ClusterMetadata
        self._quorum_thread: LoopThread | None = None
        self._logins: NodeLogins | None = None
        self._controller_logins: NodeLogins | None = None
        self._quorum_tasks: Tasks
        self.broker: Broker
        self.maintenance: Maintenance
        self._dispatcher: Dispatcher
        self._fetchers: ReplicaFetchers | None = None

    @property
    def settings(self) -> BrokerSettings:
        """The settings with the changes made at run time."""
        return self.configs.settings

    @property
    def failure(self) -> KafkaStorageError | None:
        """The failure of the metadata log or of all disks, after which the node cannot go on."""
        return self.metadata.failure or self._disk_failure

    # --- start --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Claim the ports, open the data, join the metadata quorum, host the partitions, serve.

        Ports come first: opening the data deletes the marker of a clean stop, and a start that
        fails after that makes the next one check every log. The other steps are in Kafka's order:
        the metadata assigns directories to topics, so it is read before any log; and no client is
        served before every log has been loaded.
        """
        self.endpoints = self._bind(self.settings)
        controller_sockets = self._doors.controller_sockets(self.settings)
        await self._bind_metrics_port()
        self._make_logins()
        place = self._open_data()
        await self._start_quorum(place, controller_sockets)
        await self._register()
        self.broker = self._make_broker()
        self.produce_round.leader_nodes = lambda listener, errors: leader_nodes(
            self.broker.image, listener, errors
        )
        if not self.settings.is_single_node:
            self._fetchers = self._make_fetchers()
        hosting = self._make_hosting()
        self.maintenance = self._make_maintenance(hosting)
        self._dispatcher = Dispatcher(self.broker, self.produce_round)
        self._dispatcher.on_renamed = self._add_usage
        await self._host_partitions(hosting)
        self.server.on_disconnect = self._disconnected
        # The moment it is unfenced, clients and followers come, and controllers watch its port.
        self.server.start(self._dispatcher, self._make_gates())
        await self.metadata.run(self.quorum_node.lifecycle.serve())
        if self._observability is not None:
            await self._observability.serve()
            self.tasks.every(self._until_next_minute_ms, self.roll_usage, "windows of usage")
        self._start_maintenance()
        self.is_ready = True

    def _add_usage(self, connection: "Connection") -> None:
        self.usage.add(connection, self.clock.now_ms())

    def _disconnected(self, connection: "Connection") -> None:
        self._add_usage(connection)
        self.broker.share_partitions.disconnected(connection)

    def roll_usage(self) -> None:
        """Bring the usage of clients up to date."""
        now_ms = self.clock.now_ms()
        self.usage.collect(self.server.connections, now_ms)
        self.usage.roll(now_ms)

    def _until_next_minute_ms(self) -> float:
        return MINUTE_MS - self.clock.now_ms() % MINUTE_MS

    def _bind(self, settings: BrokerSettings) -> list[Endpoint]:
        """Claim the ports; return the addresses to advertise to clients."""
        endpoints = []
        for listener in settings.broker_listeners:
            _, port = self.server.bind(listener.name, listener.host, listener.port)
            if (tls := self.tls.of(listener.name)) is not None:
                self.server.secure(listener.name, tls)
            advertised = settings.advertised.get(listener.name, listener)
            endpoints.append(endpoint_of(settings, advertised, port))
        return endpoints

    async def _bind_metrics_port(self) -> None:
        settings = self.settings
        if settings.headrace_metrics_port < 0:
            return
        from headrace.broker.node_status import NodeStatus
        from headrace.runtime.observability import Observability

        status = NodeStatus(self)
        self._observability = Observability(
            metrics=status.families,
            health=status.health,
            ready=status.readiness,
            pages={"/usage": status.usage},
        )
        wanted = settings.headrace_metrics_host, settings.headrace_metrics_port
        try:
            host, port = await self._observability.bind(*wanted)
        except OSError as error:
            name = "headrace.metrics.port"
            raise CannotListen("{}:{}".format(*wanted), error, config_name=name) from error
        self.metrics_address = f"{host}:{port}"

    def _make_audit(self) -> "AuditWriter | None":
        settings = self.settings
        if not settings.headrace_audit_file and not settings.headrace_audit_topic:
            return None
        from headrace.broker.audit_writer import AuditWriter

        audit = AuditWriter(settings, self.tasks, self.clock)
        self.metrics.audit = audit.events.counts
        return audit

    def _start_audit(self) -> None:
        audit, name = self._audit, self.settings.headrace_audit_topic
        if audit is None:
            return
        self.server.handshakes.audit = audit.events.authenticated
        from headrace.broker.audit_writer import AuditTopic

        leaders, controller = self.broker.leaders, self.metadata
        audit.start(AuditTopic(name, self.node_id, leaders, controller) if name else None)

    def _open_data(self) -> MetadataPlace:
        """Format new directories of a node that is alone, and lock them all."""
        settings = self.settings
        identities = open_identities(settings, self.clock)
        identity = identities[settings.metadata_directory]
        self.cluster_id = identity.cluster_id
        ids = {path: identity.directory_id for path, identity in identities.items()}
        self.directories = LogDirectories.open(
            settings.directories, ids, on_offline=self._directory_went_offline
        )
        return MetadataPlace(self.cluster_id, settings.metadata_directory, identity.directory_id)

    async def _start_quorum(
        self, place: MetadataPlace, sockets: "list[tuple[Endpoint, socket.socket]]"
    ) -> None:
        """Take part in the quorum: on this loop if it is alone, otherwise in a thread."""
        settings, thread = self.settings, None
        background = self.tasks.in_thread
        if not settings.is_single_node:
            thread = self._quorum_thread = self._doors.quorum_thread("quorum")
            self._quorum_tasks = Tasks(thread.loop)
            background = self._quorum_tasks.in_thread
        logins = self._controller_logins
        self.quorum_node = QuorumNode(
            settings,
            place,
            [
                raft.Endpoint(one.name, one.host, one.port)
                for one in [one for one, _ in sockets] or [controller_endpoint(settings)]
            ],
            clock=self.clock,
            background=background,
            resources=self.directories.resources if thread is None else None,
            decisions=None if self._audit is None else self._audit.events,
            logins=logins.by_listener if logins is not None else None,
            tls=self.tls,
        )
        self.metadata = ClusterMetadata(self.quorum_node, self.loop, thread)
        # Without its metadata log a node can change nothing, so it ends.
        stop = self.stopping.set
        self.quorum_node.on_failure(lambda: self.loop.call_soon_threadsafe(stop))
        if logins is not None:
            await self.metadata.run(logins.watching(self._quorum_tasks))
        await self.metadata.run(self.quorum_node.start([one for _, one in sockets]))

    async def _register(self) -> None:
        """Register this node with the active controller, and wait for the metadata up to that."""
        settings, node = self.settings, self.quorum_node
        self._is_registering = True
        if node.is_controller:
            endpoints = [
                Endpoint(
                    one.name, one.host, one.port, listener_security(settings, one.name).protocol
                )
                for one in node.quorum.local.endpoints
            ]
            request = controller_registration(self.node_id, endpoints)
            await self.metadata.run(node.register_controller(request))
        registration = broker_registration(
            self.node_id,
            self.cluster_id,
            self.endpoints,
            log_dirs=[directory.id for directory in self.directories.online],
            rack=settings.broker_rack,
            previous_broker_epoch=await self._previous_epoch(),
        )
        timeout_s = settings.initial_broker_registration_timeout_ms / 1000
        self.broker_epoch = await self.metadata.run(node.register_broker(registration, timeout_s))
        self.directories.note_registration(self.broker_epoch)
        await self.metadata.wait_for(self._is_registered)

    async def _previous_epoch(self) -> int:
        """Return the epoch up to which no data is lost, -1 for none.

        From here until the new epoch is known, a death of the process leaves a note of that.
        """
        previous = self.directories.previous_broker_epoch
        if previous == LAST_BROKER_EPOCH:
            previous = await self.metadata.run(self.quorum_node.registered_epoch(_CATCH_UP_S))
        if previous != UNKNOWN_BROKER_EPOCH:
            self.directories.note_registration(LAST_BROKER_EPOCH)
        return previous

    def _is_registered(self, image: MetadataImage) -> bool:
        broker = image.brokers.get(self.node_id)
        return broker is not None and broker.epoch == self.broker_epoch

    def _make_gates(self) -> "dict[str, Gate]":
        """Make the gates of the SASL listeners, and watch the sources of their users."""
        logins = self._logins
        if logins is None:
            return {}
        from headrace.broker.logins.listeners import gates_of

        logins.watch(self.tasks)
        return gates_of(logins, self.broker, self._dispatcher)

    def _make_logins(self) -> None:
        """Make the logins of all listeners; files of users and keys may be invalid."""
        settings, clock = self.settings, self.clock
        audit = None if self._audit is None else self._audit.events.authenticated
        self._logins = broker_logins(
            settings, lambda: self.cluster_id, clock, lambda: self.metadata.image, audit=audit
        )
        self._controller_logins = controller_logins(
            settings,
            lambda: self.cluster_id,
            clock,
            lambda: self.quorum_node.controller.image,
            audit=audit,
        )
        for logins in (self._logins, self._controller_logins):
            if logins is not None:
                self.metrics.logins = {**self.metrics.logins, **logins.metrics}

    def _make_broker(self) -> Broker:
        settings, controller, configs = self.settings, self.metadata, self.configs
        shared = CoordinatorResources(
            self.node_id,
            self.partitions,
            self.clock,
            shard_timers(self.clock),
            partial(create_internal, controller, configs),
            self._channels,
            self.tasks,
        )
        leaders = Leaders(
            self.node_id,
            self.partitions,
            lambda: controller.image,
            self._channels("leaders"),
            self.clock,
            self.tasks,
        )
        metrics = self.metrics.coordinators
        groups = Coordinator(shared, CONSUMER_OFFSETS, self._new_group_shard)
        producer_ids = ProducerIds(controller, self.node_id, lambda: self.broker_epoch)
        share_coordinator = ShareCoordinator(shared, controller, configs, metrics)
        share_persister = SharePersister(share_coordinator, shared)
        return Broker(
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            loop=self.loop,
            clock=self.clock,
            tasks=self.tasks,
            metrics=self.metrics,
            controller=controller,
            configs=configs,
            directories=self.directories,
            partitions=self.partitions,
            flusher=self.flusher,
            authorizer=self.quorum_node.authorizer,
            tls=self.tls,
            metadata_answers=MetadataAnswers(),
            topic_creation=TopicCreation(controller, configs, self.tasks),
            produce_shapes=self.produce_shapes,
            registered_schemas=self.registered_schemas,
            leaders=leaders,
            heavy_validation=HeavyValidation(self.tasks.in_thread),
            fetch_sessions=FetchSessions(settings.max_incremental_fetch_session_cache_slots),
            isr_changes=IsrChanges(
                self.node_id,
                self.partitions,
                controller.ask,
                self.clock,
                self.tasks,
                self.metrics.isr,
                image=lambda: self.broker.image,
                broker_epoch=lambda: self.broker_epoch,
                settings=lambda: self.settings,
            ),
            groups=groups,
            producer_ids=producer_ids,
            transactions=TransactionCoordinator(
                shared, groups, producer_ids, controller, configs, metrics
            ),
            share_coordinator=share_coordinator,
            share_persister=share_persister,
            share_partitions=SharePartitions(
                share_persister,
                leaders,
                controller,
                configs,
                self.clock,
                self.tasks,
                self.wake_ups,
            ),
            telemetry=Telemetry(settings.telemetry_max_bytes),
            replication_throttles=ReplicationThrottles(
                self.clock,
                Windows(
                    settings.replication_quota_window_num,
                    1000 * settings.replication_quota_window_size_seconds,
                ),
            ),
            client_quotas=ClientQuotas(self.clock, client_windows(settings)),
        )

    def _channels(self, purpose: str) -> BrokerChannels:
        """Open channels to the other brokers, apart from those for other purposes."""
        client_id = f"broker-{self.node_id}-{purpose}"
        self._peers.append(
            BrokerChannels(
                lambda: self.metadata.image,
                self._inter_broker_listener,
                client_id,
                self._own_login,
                self.tls.of(self._inter_broker_listener),
            )
        )
        return self._peers[-1]

    def _new_group_shard(self, partition: int) -> "GroupShard":
        from headrace.groups.shard import GroupShard

        return GroupShard(
            lambda: self.settings, lambda: self.metadata.image, self.metrics.coordinators
        )

    def _make_fetchers(self) -> "ReplicaFetchers":
        from headrace.broker.fetchers import ReplicaFetchers, Surroundings

        channels = self._channels("fetchers")
        return ReplicaFetchers(
            Surroundings(
                node_id=self.node_id,
                loop=self.loop,
                clock=self.clock,
                tasks=self.tasks,
                flusher=self.flusher,
                metrics=self.metrics.following,
                open_channel=partial(channels.open, negotiates_versions=False),
                broker_epoch=lambda: self.broker_epoch,
                image=lambda: self.metadata.image,
                settings=lambda: self.settings,
                throttle=self.broker.replication_throttles.follower,
                checkpoint=lambda: self.maintenance.checkpoint(),
            )
        )

    def _make_hosting(self) -> Hosting:
        return Hosting(
            self.node_id,
            self.partitions,
            self.directories,
            self.configs,
            self.metrics,
            self.clock,
            followers=self._fetchers,
            forget_shapes=self.produce_round.forget,
            soon=self.loop.call_soon,
            report=self._report_directories,
        )

    async def _host_partitions(self, hosting: Hosting) -> None:
        """Load the logs and coordinators of this node, and follow the metadata from here on."""
        for directory in self.directories.online:
            if directory.unclaimed and not directory.was_clean:
                _log.info(
                    "log directory not closed cleanly, checking its logs",
                    extra={"directory": directory.path, "logs": len(directory.unclaimed)},
                )
        self.metadata.hold()
        await hosting.load(self.metadata.image)
        self.directories.set_strays_aside()
        self.metadata.on_published(hosting.apply)
        self.metadata.on_published(self.broker.isr_changes.follow)
        for coordinator in self.broker.coordinators:
            coordinator.follow(self.metadata.image)
        self.metadata.on_published(self._follow_topics)
        self.metadata.on_published(lambda delta, image: self._follow_settings())
        self.metadata.on_published(lambda delta, image: self._follow_rules())
        self._follow_settings()
        self.metadata.on_published(lambda delta, image: self._follow_quotas(image))
        self._follow_quotas(self.metadata.image)
        self.metadata.release()

    def _follow_topics(self, delta: "ImageDelta", image: MetadataImage) -> None:
        broker = self.broker
        for coordinator in broker.coordinators:
            coordinator.follow(image)
        broker.share_partitions.forget_moved()
        if not delta.topics_deleted:
            return
        ids = {topic.id for topic in delta.topics_deleted}
        broker.share_coordinator.on_topics_deleted(ids)
        broker.share_partitions.forget_topics(ids)
        broker.groups.for_each(lambda state: state.on_topic_ids_deleted(ids))
        gone = {topic.name for topic in delta.topics_deleted} - image.topics.keys()
        if gone:
            broker.groups.for_each(lambda state: state.on_topics_deleted(gone))

    def _follow_settings(self) -> None:
        """Configs that were changed at run time apply to the controller and the server as well."""
        settings = self.settings
        if settings is not self._followed_settings:
            self._followed_settings = settings
            self.quorum_node.controller.settings = settings
            self.server.limits = limits_of(settings)
            self.tls.follow(settings)

    def _follow_rules(self) -> None:
        """Forget what clients were allowed to do under older rules."""
        authorizer = self.broker.authorizer
        if authorizer is not None and authorizer.version != self._followed_rules:
            self._followed_rules = authorizer.version
            self.produce_round.forget()

    def _follow_quotas(self, image: MetadataImage) -> None:
        """Put new quotas into force; requests with known bytes are decoded and counted again."""
        self.broker.replication_throttles.follow(image, self.node_id)
        quotas = self.broker.client_quotas
        if quotas.follow(image.client_quotas):
            self.server.rates.follow(image.client_quotas)
            self.produce_round.forget()
            for connection in self.server.connections:
                connection.produce_shape = connection.repeated = None
            self._dispatcher.quotas = quotas or None

    def _make_maintenance(self, hosting: Hosting) -> Maintenance:
        return Maintenance(
            self.tasks,
            self.clock,
            self.configs,
            self.directories,
            hosting,
            self.flusher,
            self.metrics.cleaner,
        )

    def _start_maintenance(self) -> None:
        self._start_audit()
        self.maintenance.start(self.broker.share_coordinator.prune)
        self.broker.isr_changes.start()
        if self.tls.is_used:
            self.tasks.every(
                lambda: self.settings.headrace_ssl_reload_interval_ms,
                lambda: self.tls.follow(self.settings),
                "reload of certificates",
            )

    # --- stop ---------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Hand over leaderships, disconnect the clients, and close every part cleanly."""
        self.is_ready = False
        await self.metadata.run(self.quorum_node.lifecycle.leave())
        self.server.stop()
        self.broker.groups.stop()  # Else requests that wait for a rebalance would delay the stop.
        await self._dispatcher.stop()
        self.broker.share_partitions.stop()
        for coordinator in self.broker.coordinators:
            coordinator.stop()
        if self._observability is not None:
            await self._observability.stop()
        await self.flusher.stop()
        if self._audit is not None:
            await self._audit.finish()
        await self.tasks.stop()
        for peers in self._peers:
            peers.close()
        await self._leave_quorum()
        self.directories.close(self.broker_epoch)

    async def abandon(self) -> None:
        """Give up a start that was cancelled: the quorum's thread must end before the process."""
        if self._quorum_thread is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ABANDON_S):
                    await self._leave_quorum()

    async def _leave_quorum(self) -> None:
        """Leave the quorum; another voter takes over if this node leads."""
        await self.metadata.run(self.quorum_node.close())
        if self._quorum_thread is not None:
            await self._quorum_thread.run(self._quorum_tasks.stop())
            await self._quorum_thread.stop()

    # --- failures -----------------------------------------------------------------------------

    def _disk_failed(self, failed: "Log", error: OSError) -> None:
        self.directories.fail(self.directories.directory_of(failed), error)

    def _directory_went_offline(self, directory: "LogDirectory") -> None:
        """Report it to the controller, so that clients find other replicas of its partitions."""
        if not self._is_registering:
            return  # A directory that is offline from the start is not registered.
        for partition in self.partitions:
            partition.notify()
        if not self.directories.online and not self.settings.is_single_node:
            # Other brokers have the data; a node without a disk would only be elected in vain.
            self._disk_failure = KafkaStorageError("all log directories have failed")
            self.stopping.set()
        report_offline = self.quorum_node.lifecycle.report_offline
        self.tasks.start(
            self.metadata.run(report_offline(directory.id)), f"failure of {directory.path}"
        )

    def _report_directories(self, assigned: Assignments) -> None:
        for request in directory_assignments(self.node_id, self.broker_epoch, assigned):
            self._report(request, "assignment of log directories")

    def _report(self, request: Message, name: str) -> None:
        self.tasks.start(report(self.metadata.ask, request, name, asyncio.sleep), name)
