"""A node with the role controller alone: it votes and decides, and serves no clients."""

import asyncio
from typing import TYPE_CHECKING

from headrace.broker.identities import open_identities
from headrace.broker.logins.nodes import controller_logins
from headrace.broker.registration import bind_controllers, controller_registration
from headrace.errors import KafkaStorageError
from headrace.metadata.image import Endpoint
from headrace.quorum.quorum_node import MetadataPlace, QuorumNode
from headrace.raft import replicas as raft
from headrace.runtime import files
from headrace.runtime.clock import Clock, SystemClock
from headrace.runtime.tasks import Tasks
from headrace.security.node_tls import NodeTls
from headrace.settings.broker import BrokerSettings
from headrace.storage.checkpoints import LOCK

if TYPE_CHECKING:
    from headrace.broker.audit_writer import AuditWriter


class ControllerNode:
    """The quorum of a node, on the event loop of its process."""

    def __init__(
        self, settings: BrokerSettings, loop: asyncio.AbstractEventLoop, clock: Clock | None = None
    ) -> None:
        self.settings = settings
        self.endpoints: list[Endpoint] = []
        self._tls = NodeTls(settings)
        self.metrics_address = ""
        self.stopping = asyncio.Event()
        self.quorum_node: QuorumNode
        self._tasks = Tasks(loop)
        self._clock = clock or SystemClock()
        self._lock: files.OpenFile | None = None
        self._audit = self._make_audit()

    @property
    def failure(self) -> KafkaStorageError | None:
        """The failure of the metadata log, without which the node cannot go on."""
        return self.quorum_node.quorum.failure

    def _make_audit(self) -> "AuditWriter | None":
        if not self.settings.headrace_audit_file:
            return None
        from headrace.broker.audit_writer import AuditWriter

        return AuditWriter(self.settings, self._tasks, self._clock)

    async def start(self) -> None:
        """Claim the ports, open the metadata log, and take part in the quorum."""
        settings = self.settings
        bound = bind_controllers(settings)
        self.endpoints = [endpoint for endpoint, _ in bound]
        logins = controller_logins(
            settings,
            lambda: identity.cluster_id,
            self._clock,
            lambda: self.quorum_node.controller.image,
            audit=None if self._audit is None else self._audit.events.authenticated,
        )
        identity = open_identities(settings, self._clock)[settings.metadata_directory]
        self._lock = files.lock(f"{settings.metadata_directory}/{LOCK}")
        if logins is not None:
            logins.watch(self._tasks)
        self.quorum_node = QuorumNode(
            settings,
            MetadataPlace(identity.cluster_id, settings.metadata_directory, identity.directory_id),
            [raft.Endpoint(one.name, one.host, one.port) for one in self.endpoints],
            clock=self._clock,
            background=self._tasks.in_thread,
            decisions=None if self._audit is None else self._audit.events,
            logins=logins.by_listener if logins is not None else None,
            tls=self._tls,
        )
        self.quorum_node.on_failure(self.stopping.set)
        if self._tls.is_used:
            self._tasks.every(
                lambda: settings.headrace_ssl_reload_interval_ms,
                lambda: self._tls.follow(settings),
                "reload of certificates",
            )
        if self._audit is not None:
            self._audit.start()
        await self.quorum_node.start([sock for _, sock in bound])
        request = controller_registration(settings.node_id, self.endpoints)
        await self.quorum_node.register_controller(request)

    async def abandon(self) -> None:
        """Give up a start that was cancelled; the process ends, and its quorum with it."""

    async def stop(self) -> None:
        """Leave the quorum; another voter takes over if this node leads."""
        await self.quorum_node.close()
        if self._audit is not None:
            await self._audit.finish()
        await self._tasks.stop()
        self._lock = None
