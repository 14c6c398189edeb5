"""Asks the active controller, which is on this node or behind a connection.

The leader of the quorum is the active controller. Requests that fail because the leader changes
are repeated within a bound. Requests of clients travel in envelopes, as between Kafka's nodes; a
node sends its own requests as they are, so that the rights of the node count.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from headrace.controller.requests import check_right
from headrace.errors import (
    KafkaError,
    NotController,
    NotLeaderOrFollower,
    RequestTimedOut,
    error_for,
)
from headrace.peers.unreachable import PeerUnreachable
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.api_messages import response_type_of
from headrace.protocol.message import Message
from headrace.quorum.older_versions import in_version

if TYPE_CHECKING:
    from headrace.controller.controller import Controller
    from headrace.peers.channel import Channel
    from headrace.peers.own_login import OwnLogin
    from headrace.protocol.schemas.envelope import EnvelopeResponse
    from headrace.quorum.metadata_quorum import MetadataQuorum
    from headrace.raft.messages import Leadership
    from headrace.security.principals import Caller
    from headrace.security.tls import ListenerTls

TIMEOUT_S = 30.0
_PAUSE_S = 0.02
_PAUSE_S_MAX = 0.5

OF_TOOLS = frozenset((ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER))
"""Requests of tools that the raft core answers."""


class ControllerLink:
    """The way from this node to the active controller; for the event loop of the quorum."""

    def __init__(
        self,
        quorum: "MetadataQuorum",
        controller: "Controller",
        login: "OwnLogin | None" = None,
        tls: "ListenerTls | None" = None,
    ) -> None:
        self._quorum = quorum
        self._login = login
        self._tls = tls
        self._controller = controller
        self._client_id = str(quorum.node_id)
        self._channels: dict[tuple[str, int, bool], Channel] = {}

    async def ask(
        self,
        request: Message,
        version: int | None = None,
        caller: "Caller | None" = None,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> Any:
        """Return the response of the active controller; raise the error of a response as a whole.

        `caller` is the client that sent the request; None if the node asks for itself.

        Without a controller in time the error is REQUEST_TIMED_OUT, which clients retry.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        pause_s = _PAUSE_S
        while True:
            left_s = deadline - asyncio.get_running_loop().time()
            try:
                return await self.ask_once(request, version, caller, timeout_s=max(left_s, 0.1))
            except (NotController, NotLeaderOrFollower, PeerUnreachable) as error:
                if asyncio.get_running_loop().time() + pause_s >= deadline:
                    raise RequestTimedOut(
                        f"no controller answered in {timeout_s:g} s: {error}"
                    ) from error
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _PAUSE_S_MAX)

    async def ask_once(
        self,
        request: Message,
        version: int | None = None,
        caller: "Caller | None" = None,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> Any:
        """Ask the present controller, without repeating the request."""
        if self._controller.is_leading:
            if request.API_KEY in OF_TOOLS:
                check_right(self._controller.access_of(caller), request.API_KEY)
                newest = request.VERSIONS[-1]
                answer = _checked(await self._quorum.ask(request))
                return in_version(answer, newest if version is None else version)
            return await self._controller.ask(request, version, caller)
        leader = self._quorum.leadership.node
        if leader is None or leader.id == self._quorum.node_id:
            raise NotController("the metadata quorum has no leader")
        is_heartbeat = request.API_KEY == ApiKey.BROKER_HEARTBEAT
        channel = self._channel(leader.host, leader.port, is_heartbeat=is_heartbeat)
        if caller is None:
            return _decided(await channel.ask(request, version=version, timeout_s=timeout_s))
        return await self._forward(channel, request, version, caller, timeout_s)

    def led_by(self, leadership: "Leadership") -> None:
        """Give up requests to an earlier leader, which may be paused: they are repeated."""
        node = leadership.node
        if node is None:
            return
        for key in [key for key in self._channels if key[:2] != (node.host, node.port)]:
            self._channels.pop(key).close()

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    async def _forward(
        self,
        channel: "Channel",
        request: Message,
        version: int | None,
        caller: "Caller",
        timeout_s: float,
    ) -> Any:
        from headrace.quorum.envelopes import enclosed, opened

        chosen = request.VERSIONS[-1] if version is None else version
        client_id = caller.client_id or self._client_id
        envelope = enclosed(request, chosen, client_id, caller)
        response: EnvelopeResponse = await channel.ask(envelope, timeout_s=timeout_s)
        _checked(response)
        answer = response_type_of(type(request))
        return _checked(opened(response, answer, request.API_KEY, chosen))

    def _channel(self, host: str, port: int, *, is_heartbeat: bool) -> "Channel":
        """Heartbeats have a channel of their own, which no slow decision holds up."""
        key = host, port, is_heartbeat
        channel = self._channels.get(key)
        if channel is None:
            from headrace.peers.channel import Channel  # A node that is alone needs none.

            channel = Channel(host, port, self._client_id, login=self._login, tls=self._tls)
            self._channels[key] = channel
        return channel


def _decided(response: Message) -> Message:
    """Return a response; raise NOT_CONTROLLER also if only its items have that error."""
    if "error_code" not in response.__struct_fields__:
        from headrace.protocol.error_codes import error_codes_of  # Compiled for few requests.

        if NotController.code in error_codes_of(type(response))(response):
            raise NotController("another node leads the metadata quorum")
    checked: Message = _checked(response)
    return checked


def _checked(response: Any) -> Any:
    """Return a response, or raise its error if it has one as a whole."""
    code = getattr(response, "error_code", 0)
    if code:
        error: KafkaError = error_for(code, getattr(response, "error_message", None) or "")
        raise error
    return response
