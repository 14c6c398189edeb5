"""The metadata half of a node, built from its settings: quorum, controller, listener, heartbeats.

A controller votes and decides. A broker that is no controller observes the quorum, to follow the
metadata. Everything runs on one event loop: that of the node for a quorum of one, and one in a
thread of its own in a cluster, where elections and heartbeats must not wait for bulk work.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.controller.controller import Background, Controller
from headrace.errors import HeadraceError, KafkaError, KafkaStorageError
from headrace.metadata.log.metadata_log import MetadataLog, MetadataLogSettings
from headrace.protocol.message import Message
from headrace.quorum.controller_link import ControllerLink
from headrace.quorum.figures import QuorumFigures
from headrace.quorum.lifecycle import BrokerLifecycle
from headrace.quorum.metadata_quorum import MetadataQuorum
from headrace.raft.effects import LocalReplica, Timeouts
from headrace.raft.messages import Leadership
from headrace.raft.replicas import Endpoint, Node, ReplicaKey, Voter, VoterSet
from headrace.settings.listener_logins import own_login_at_controllers

if TYPE_CHECKING:
    from headrace.peers.own_login import OwnLogin
    from headrace.protocol.schemas.broker_registration import BrokerRegistrationRequest
    from headrace.protocol.schemas.controller_registration import ControllerRegistrationRequest
    from headrace.protocol.uuids import Uuid
    from headrace.quorum.network import QuorumNetwork
    from headrace.quorum.other_nodes import OtherNodes
    from headrace.runtime.clock import Clock
    from headrace.security.authorizer import DecisionLog, StandardAuthorizer
    from headrace.security.node_tls import NodeTls
    from headrace.security.principals import Caller
    from headrace.security.sasl.listener import ListenerLogins
    from headrace.settings.broker import BrokerSettings
    from headrace.storage.resources import Resources

_log = logging.getLogger(__name__)

_FIRST_BOOTSTRAP_ID = -2
_REGISTER_AGAIN_S = 0.5
_CATCH_UP_LOOK_S = 0.02
_MAINTENANCE_INTERVAL_S = 60.0


class NotAQuorumOfOne(HeadraceError):
    """A node without a controller listener found the metadata of a cluster of several nodes."""


class MetadataPlace(NamedTuple):
    """The directory of the metadata log, and the cluster to which it belongs."""

    cluster_id: str
    directory: str
    directory_id: "Uuid"


class QuorumNode:
    """One node's part in the quorum, on the event loop that runs when it is started."""

    def __init__(
        self,
        settings: "BrokerSettings",
        place: MetadataPlace,
        endpoints: Sequence[Endpoint],
        *,
        clock: "Clock",
        background: Background[None],
        resources: "Resources | None" = None,
        decisions: "DecisionLog | None" = None,
        logins: "Mapping[str, ListenerLogins] | None" = None,
        tls: "NodeTls | None" = None,
    ) -> None:
        """`endpoints` are the advertised addresses of this node's controller listeners.

        `decisions` receives those of the authorizer. `logins` has the listeners with SASL, by name.
        """
        self.settings = settings
        self._tls = tls
        listener = settings.controller_listener_names[0]
        self._controller_tls = None if tls is None else tls.of(listener)
        self._own_login = None if settings.is_single_node else self._make_own_login()
        self.is_controller = settings.is_controller
        log = MetadataLog.open(
            place.directory,
            settings=_log_settings(settings),
            resources=resources,
            clock=clock,
        )
        self._network = None if settings.is_single_node else self._make_network()
        local = _local_replica(settings, place, endpoints)
        self.quorum = MetadataQuorum(
            local,
            log,
            configured_voters(settings, local),
            _timeouts(settings),
            clock=clock,
            background=background,
            network=self._network,
        )
        self.controller = Controller(
            self.quorum,
            clock,
            background,
            settings,
            may_lead=self.is_controller,
            cluster_id=place.cluster_id,
            has_other_brokers=not settings.is_single_node,
        )
        self.authorizer = (
            self._make_authorizer(decisions) if settings.authorizer_class_name else None
        )
        self.controller.authorizer = self.authorizer
        if settings.is_broker:
            self.controller.broker_restarts(settings.node_id)
        self.others = None if settings.is_single_node else self._make_others(clock, logins)
        self.quorum.on_leadership = self._led_by
        self.quorum.on_committed = self.controller.committed
        self.quorum.on_failure = self._failed
        self.link = ControllerLink(
            self.quorum, self.controller, self._own_login, self._controller_tls
        )
        self.lifecycle = BrokerLifecycle(
            self.link.ask_once,
            settings.node_id,
            heartbeat_interval_ms=settings.broker_heartbeat_interval_ms,
        )
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._on_failure: Callable[[], object] = lambda: None

    def _make_network(self) -> "QuorumNetwork":
        from headrace.quorum.network import QuorumNetwork  # A node that is alone has no peers.

        return QuorumNetwork(
            self.settings.node_id,
            request_timeout_ms=self.settings.controller_quorum_request_timeout_ms,
            on_refused=self._refused,
            login=self._own_login,
            tls=self._controller_tls,
        )

    def _make_own_login(self) -> "OwnLogin | None":
        """Make the login of this node at controllers, if they demand one."""
        settings = own_login_at_controllers(self.settings)
        if settings is None:
            return None
        from headrace.peers.own_login import own_login

        return own_login(settings)

    def _make_others(
        self, clock: "Clock", logins: "Mapping[str, ListenerLogins] | None"
    ) -> "OtherNodes":
        from headrace.quorum.other_nodes import OtherNodes

        return OtherNodes(
            self.quorum,
            self.controller,
            clock,
            is_controller=self.is_controller,
            logins=logins,
            tls=self._tls,
        )

    def _make_authorizer(self, decisions: "DecisionLog | None") -> "StandardAuthorizer | None":
        """Make the authorizer of controller and broker, which follows each committed image."""
        from headrace.security.authorizer import configured_authorizer

        authorizer = configured_authorizer(self.settings, decisions)
        if authorizer is not None:
            update = authorizer.update
            self.controller.on_published(lambda delta, image: update(delta.acls.changed))
        return authorizer

    # --- life -------------------------------------------------------------------------------------

    async def start(self, sockets: Sequence[socket.socket] = ()) -> None:
        """Take part in the quorum, and serve the controller listeners on bound sockets."""
        self._check_voters()
        self.quorum.start()
        self._start(self._maintain())
        if self.others is not None:
            await self.others.start(sockets)
            if self.is_controller:
                self._start(self.others.upkeep.run())

    async def register_controller(self, request: "ControllerRegistrationRequest") -> None:
        """Register this controller in the background, so that tools find it."""
        self._start(self._register(request))

    async def register_broker(self, request: "BrokerRegistrationRequest", timeout_s: float) -> int:
        """Register the broker of this node, and keep its session from now on."""
        if self.settings.is_single_node:
            await self.controller.wait_until_active()
        epoch = await self.lifecycle.register(request, timeout_s)
        self.controller.broker_registered(request.broker_id)
        self.lifecycle.start()
        return epoch

    async def registered_epoch(self, timeout_s: float) -> int:
        """Return the epoch in which the newest metadata have this broker, -1 for none.

        The metadata may be older if the node does not catch up in time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while not self.quorum.is_caught_up and loop.time() < deadline:
            await asyncio.sleep(_CATCH_UP_LOOK_S)
        broker = self.controller.image.brokers.get(self.settings.node_id)
        return -1 if broker is None else broker.epoch

    async def close(self) -> None:
        """Leave the quorum: another voter is asked to lead, then everything is closed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.lifecycle.close()
        if self.others is not None:
            await self.others.stop_watching()
        await self.quorum.hand_over()
        if self.others is not None:
            self.others.close()
        self.link.close()
        if self._network is not None:
            await self._network.close()
        await self.controller.close()
        await self.quorum.close()

    async def _register(self, request: "ControllerRegistrationRequest") -> None:
        while True:
            try:
                await self.link.ask(request)
            except KafkaError as error:
                _log.warning("controller not registered, retrying", extra={"error": str(error)})
                await asyncio.sleep(_REGISTER_AGAIN_S)
            else:
                return

    def _check_voters(self) -> None:
        quorum = self.quorum
        if self.settings.is_single_node and not quorum.voters.is_only(quorum.local.key):
            raise NotAQuorumOfOne(
                f"the voters of {quorum.log.directory} are nodes {list(quorum.voters.ids)}, and "
                f"node {quorum.node_id} has no controller listener to reach them; start it with "
                "the properties of its cluster"
            )

    async def _maintain(self) -> None:
        """Take snapshots of the metadata, and delete old ones."""
        while True:
            await asyncio.sleep(_MAINTENANCE_INTERVAL_S)
            await self.controller.maintain()

    def on_failure(self, callback: Callable[[], object]) -> None:
        """Call back once when the metadata log has failed: the node must stop."""
        self._on_failure = callback

    def _led_by(self, leadership: Leadership) -> None:
        self.controller.led_by(leadership)
        self.link.led_by(leadership)

    def _failed(self, error: KafkaStorageError) -> None:
        self.controller.failed(error)
        self.lifecycle.fail(error)
        self._on_failure()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("task failed", extra={"task": task.get_name()}, exc_info=error)

    def _refused(self, node_id: int) -> None:
        if self.quorum.leadership.leader_id == node_id:
            self.quorum.leader_refuses_connections()

    def figures(self) -> QuorumFigures:
        quorum = self.quorum
        return QuorumFigures(
            state=quorum.state_name,
            leader_id=quorum.leadership.leader_id,
            epoch=quorum.epoch,
            high_watermark=quorum.high_watermark,
            end_offset=quorum.log.end_offset,
            voter_count=len(quorum.voters.voters),
            applied_offset=self.controller.image.offset,
            is_active_controller=self.controller.is_leading,
            commits=self.controller.commits,
            elections=quorum.elections,
        )

    # --- requests ---------------------------------------------------------------------------------

    async def ask(
        self, request: Message, version: int | None = None, caller: "Caller | None" = None
    ) -> Any:
        """Ask the active controller, wherever it is."""
        return await self.link.ask(request, version, caller)


def configured_voters(settings: "BrokerSettings", local: LocalReplica) -> VoterSet:
    """Return the voters of a static quorum; this node alone if nothing else is configured."""
    if voters := settings.quorum_voters:
        return VoterSet.of(
            Voter(ReplicaKey(node_id), (Endpoint(local.listener, address.host, address.port),))
            for node_id, address in voters.items()
        )
    if settings.is_single_node:
        return VoterSet.of([Voter(ReplicaKey(local.key.id), local.endpoints)])
    return VoterSet()


def bootstrap_servers(settings: "BrokerSettings") -> tuple[Node, ...]:
    """Return the addresses at which a node without a leader asks for one."""
    return tuple(
        Node(_FIRST_BOOTSTRAP_ID - number, address.host, address.port)
        for number, address in enumerate(settings.quorum_bootstrap_servers)
    )


def _timeouts(settings: "BrokerSettings") -> Timeouts:
    return Timeouts(
        election_ms=max(1, settings.controller_quorum_election_timeout_ms),
        election_backoff_max_ms=settings.controller_quorum_election_backoff_max_ms,
        fetch_ms=settings.controller_quorum_fetch_timeout_ms,
        retry_backoff_ms=settings.controller_quorum_retry_backoff_ms,
        fetch_bytes_max=settings.controller_quorum_fetch_max_bytes,
        snapshot_bytes_max=settings.controller_quorum_fetch_snapshot_max_bytes,
    )


def _local_replica(
    settings: "BrokerSettings", place: MetadataPlace, endpoints: Sequence[Endpoint]
) -> LocalReplica:
    """Return this node as a replica of the metadata log; only a controller has endpoints."""
    return LocalReplica(
        key=ReplicaKey(settings.node_id, place.directory_id),
        cluster_id=place.cluster_id,
        listener=settings.controller_listener_names[0],
        endpoints=tuple(endpoints) if settings.is_controller else (),
        bootstrap=bootstrap_servers(settings),
        is_controller=settings.is_controller,
        joins_automatically=settings.controller_quorum_auto_join_enable,
    )


def _log_settings(settings: "BrokerSettings") -> MetadataLogSettings:
    return MetadataLogSettings(
        segment_bytes=settings.metadata_log_segment_bytes,
        segment_ms=settings.metadata_log_segment_ms,
        retention_bytes=settings.metadata_max_retention_bytes,
        retention_ms=settings.metadata_max_retention_ms,
        record_bytes_between_snapshots=settings.metadata_log_max_record_bytes_between_snapshots,
        snapshot_interval_ms=settings.metadata_log_max_snapshot_interval_ms,
    )
