"""The parts of a quorum that deal with other nodes; a node that is alone has none of them.

The controller listener serves them, the network reaches them, and while this controller leads, it
watches the brokers and makes the decisions that no request asks for.
"""

import logging
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.controller.descriptions import describe_controllers
from headrace.controller.requests import RIGHTS_ON_CLUSTER, check_right
from headrace.errors import ClusterAuthorizationFailed
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.schemas.describe_acls import DescribeAclsRequest
from headrace.protocol.schemas.describe_cluster import DescribeClusterRequest
from headrace.quorum.broker_watch import BrokerWatch
from headrace.quorum.listener import (
    OF_RAFT,
    ControllerListener,
    ControllerLogins,
    api_versions,
    features_of,
)
from headrace.quorum.older_versions import in_version
from headrace.quorum.upkeep import ControllerUpkeep
from headrace.security.acls import Operation

if TYPE_CHECKING:
    from headrace.controller.controller import Controller
    from headrace.protocol.schemas.api_versions import ApiVersionsResponse
    from headrace.quorum.metadata_quorum import MetadataQuorum
    from headrace.runtime.clock import Clock
    from headrace.security.access import Access
    from headrace.security.node_tls import NodeTls
    from headrace.security.principals import Caller
    from headrace.security.sasl.listener import ListenerLogins

_log = logging.getLogger(__name__)

_REFUSED_MAX = 100


class OtherNodes:
    """The listener for other nodes, and a controller's watch over brokers."""

    def __init__(
        self,
        quorum: "MetadataQuorum",
        controller: "Controller",
        clock: "Clock",
        *,
        is_controller: bool,
        logins: "Mapping[str, ListenerLogins] | None" = None,
        tls: "NodeTls | None" = None,
    ) -> None:
        """`logins` has the controller listeners with SASL, by name."""
        self._quorum = quorum
        self._controller = controller
        self._listener = ControllerListener(
            self.serve, self._check_forwarder, ControllerLogins(logins or {}, self._versions), tls
        )
        self._refused: set[str] = set()
        """Principals of refused nodes, each of which is logged once."""
        self.upkeep = ControllerUpkeep(controller, clock)
        self._watch: BrokerWatch | None = None
        if is_controller:
            self._watch = BrokerWatch(quorum.node_id, self.upkeep.broker_gone, tls)

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Serve the controller listeners on bound sockets, and watch the brokers."""
        names = [endpoint.name for endpoint in self._quorum.local.endpoints]
        await self._listener.listen(sockets, names)
        if self._watch is not None:
            watch = self._watch
            self._controller.on_published(lambda delta, image: watch.follow(image))

    async def stop_watching(self) -> None:
        if self._watch is not None:
            await self._watch.close()

    def close(self) -> None:
        self._listener.close()

    def _check_forwarder(self, caller: "Caller") -> None:
        """Raise unless a peer may forward requests of clients."""
        self._check(caller, ApiKey.ENVELOPE)

    def _check(self, caller: "Caller", key: int) -> "Access":
        """Return the rights of a peer; raise if it may not send a request at all."""
        access = self._controller.access_of(caller)
        try:
            check_right(access, key)
        except ClusterAuthorizationFailed:
            is_of_node = RIGHTS_ON_CLUSTER[key] is Operation.CLUSTER_ACTION
            name = str(caller.principal)
            if is_of_node and name not in self._refused and len(self._refused) < _REFUSED_MAX:
                self._refused.add(name)
                fields = {"principal": name, "host": caller.host, "api": ApiKey(key).name}
                _log.warning("node without CLUSTER_ACTION refused", extra=fields)
            raise
        return access

    def _versions(self, version: int) -> "ApiVersionsResponse":
        image = self._controller.image
        levels = features_of(image.features, self._quorum.kraft_version)
        return api_versions(image.offset, levels, version)

    async def serve(self, request: Message, version: int, caller: "Caller") -> Message:
        """Serve a request on the controller listener."""
        key = request.API_KEY
        if key == ApiKey.API_VERSIONS:
            return self._versions(version)
        access = self._check(caller, key)
        if isinstance(request, DescribeClusterRequest):
            return describe_controllers(
                self._controller.image,
                request,
                cluster_id=self._quorum.local.cluster_id,
                leader_id=self._quorum.leadership.leader_id,
                listener=self._quorum.local.listener,
                access=access,
            )
        if isinstance(request, DescribeAclsRequest):
            from headrace.controller.acl_requests import describe_acls

            return describe_acls(self._controller.image, request, access)
        if key in OF_RAFT:
            answer: Message = in_version(await self._quorum.ask(request), version)
            return answer
        response: Message = await self._controller.ask(request, version, caller)
        return response
