"""Notices that the process of a broker is gone, without waiting for the end of its session.

Every controller, standby too, keeps a connection to each registered broker. If the connection ends
and new ones are refused twice, no process listens there: the machine itself reports it. A time-out,
a lost connection or an accepted one proves nothing, so a slow broker keeps its whole session. A
broker that is fenced by mistake is unfenced by its next heartbeat.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headrace.peers.channel import Channel
from headrace.peers.unreachable import PeerUnreachable
from headrace.settings.listeners import SecurityProtocol

if TYPE_CHECKING:
    from headrace.metadata.image import BrokerImage, Endpoint, MetadataImage
    from headrace.security.node_tls import NodeTls
    from headrace.security.tls import ListenerTls

_log = logging.getLogger(__name__)

_REFUSALS_UNTIL_GONE = 2
_REFUSED_AGAIN_S = 0.1
_TRY_AGAIN_S = 1.0
_FAILURES_IN_SUCCESSION = 5
_NOT_LISTENING_YET_S = 0.05


class BrokerWatch:
    """The connections of one controller to all brokers, on the event loop of the quorum."""

    def __init__(
        self, node_id: int, on_gone: Callable[[int, int], None], tls: "NodeTls | None" = None
    ) -> None:
        """`on_gone` is called with the id and the epoch of a broker whose process is gone.

        A broker's TLS listeners get a handshake with the certificates of `tls`.
        """
        self._tls = tls
        self._client_id = f"controller-{node_id}-watch"
        self._on_gone = on_gone
        self._own_id = node_id
        self._watched: dict[int, tuple[int, asyncio.Task[None]]] = {}

    def follow(self, image: "MetadataImage") -> None:
        """Watch the unfenced brokers of an image; a new incarnation replaces the old one."""
        wanted = {
            broker.id: broker
            for broker in image.brokers.values()
            if not broker.fenced and broker.id != self._own_id
        }
        for broker_id in self._watched.keys() - wanted.keys():
            self._watched.pop(broker_id)[1].cancel()
        for broker in wanted.values():
            known = self._watched.get(broker.id)
            if known is None or known[0] != broker.epoch or known[1].done():
                if known is not None:
                    known[1].cancel()
                task = asyncio.get_running_loop().create_task(self._watch(broker))
                self._watched[broker.id] = broker.epoch, task

    async def close(self) -> None:
        tasks = [task for _, task in self._watched.values()]
        self._watched.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, broker: "BrokerImage") -> None:
        """Keep a connection until the process is gone; only one that was open can prove that."""
        channels = [
            Channel(
                one.host,
                one.port,
                self._client_id,
                negotiates_versions=False,
                tls=self._tls_for(one),
            )
            for one in broker.endpoints
        ]
        try:
            channel = await _first_open(channels)
            loop = asyncio.get_running_loop()
            while True:
                began_s = loop.time()
                await channel.lost()
                if await _is_refused(channel):
                    break
                # A broker that rejects this node's certificate ends each connection at once.
                if loop.time() - began_s < _TRY_AGAIN_S:
                    await asyncio.sleep(_TRY_AGAIN_S)
        finally:
            for one in channels:
                one.close()
        _log.info("broker process gone", extra={"broker": broker.id, "address": repr(channel)})
        self._on_gone(broker.id, broker.epoch)

    def _tls_for(self, endpoint: "Endpoint") -> "ListenerTls | None":
        """Return the certificates for a broker's listener: its own ones, or a controller's."""
        if self._tls is None or not SecurityProtocol(endpoint.security_protocol).has_tls:
            return None
        return self._tls.of(endpoint.name) or self._tls.any


async def _first_open(channels: Sequence[Channel]) -> Channel:
    """Connect to any of a broker's listeners; some may be out of reach."""
    while True:
        pause_s = _TRY_AGAIN_S
        for channel in channels:
            try:
                await channel.connect()
            except PeerUnreachable as error:
                if error.is_refused:  # A broker is unfenced a moment before it listens.
                    pause_s = _NOT_LISTENING_YET_S
            else:
                return channel
        await asyncio.sleep(pause_s)


async def _is_refused(channel: Channel) -> bool:
    """Connect again; return whether connections are refused, and false if one was made."""
    refusals = failures = 0
    while True:
        try:
            await channel.connect()
        except PeerUnreachable as error:
            failures += 1
            refusals = refusals + 1 if error.is_refused else 0
            if refusals == _REFUSALS_UNTIL_GONE:
                return True
            # A process that dies may still reset a connection or two.
            soon = error.is_refused or failures < _FAILURES_IN_SUCCESSION
            await asyncio.sleep(_REFUSED_AGAIN_S if soon else _TRY_AGAIN_S)
        else:
            return False
