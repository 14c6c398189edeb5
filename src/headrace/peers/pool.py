"""Channels to the other brokers of a cluster, by their ids."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from headrace.peers.unreachable import PeerUnreachable
from headrace.protocol.message import Message

if TYPE_CHECKING:
    from headrace.metadata.image import MetadataImage
    from headrace.peers.channel import Channel
    from headrace.peers.own_login import OwnLogin
    from headrace.security.tls import ListenerTls

REQUEST_TIMEOUT_S = 30.0


class Peers(Protocol):
    """Asks other brokers."""

    async def ask(
        self,
        broker_id: int,
        request: Message,
        *,
        version: int | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> Any: ...


class BrokerChannels:
    """One channel to each broker that is asked, at the address that the metadata has for it."""

    def __init__(
        self,
        image: "Callable[[], MetadataImage]",
        listener: str,
        client_id: str,
        login: "OwnLogin | None" = None,
        tls: "ListenerTls | None" = None,
    ) -> None:
        self._image = image
        self._login = login
        self._tls = tls
        self._listener = listener
        self._client_id = client_id
        self._channels: dict[int, Channel] = {}

    async def ask(
        self,
        broker_id: int,
        request: Message,
        *,
        version: int | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> Any:
        channel = self._channel(broker_id)
        return await channel.ask(request, version=version, timeout_s=timeout_s)

    def open(
        self, broker_id: int, client_id: str, *, negotiates_versions: bool = True
    ) -> "Channel":
        """Return a channel of the caller's own, such as that of a replica fetcher."""
        host, port = address_of(self._image(), broker_id, self._listener)
        return self._new_channel(host, port, client_id, negotiates_versions=negotiates_versions)

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    def _channel(self, broker_id: int) -> "Channel":
        host, port = address_of(self._image(), broker_id, self._listener)
        channel = self._channels.get(broker_id)
        if channel is not None and (channel.host, channel.port) != (host, port):
            channel.close()
            channel = None
        if channel is None:
            channel = self._channels[broker_id] = self._new_channel(host, port, self._client_id)
        return channel

    def _new_channel(
        self, host: str, port: int, client_id: str, *, negotiates_versions: bool = True
    ) -> "Channel":
        from headrace.peers.channel import Channel  # A node that is alone has no peers.

        return Channel(
            host,
            port,
            client_id,
            negotiates_versions=negotiates_versions,
            login=self._login,
            tls=self._tls,
        )


def address_of(image: "MetadataImage", broker_id: int, listener: str) -> tuple[str, int]:
    """Return the address of a broker on a listener, as it registered it."""
    broker = image.brokers.get(broker_id)
    for endpoint in broker.endpoints if broker is not None else ():
        if endpoint.name == listener:
            return endpoint.host, endpoint.port
    raise PeerUnreachable(f"broker {broker_id} has registered no listener {listener}")
