"""The network of the quorum: channels to the controller listeners of other replicas.

A fetch waits at its leader for records, and a node answers the requests of one connection in
order. So fetches have a channel of their own, which no vote has to wait for.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from headrace.errors import UnsupportedVersion
from headrace.peers.channel import Channel
from headrace.peers.own_login import OwnLogin
from headrace.peers.unreachable import PeerUnreachable
from headrace.raft.effects import Request
from headrace.raft.following import FETCHES

if TYPE_CHECKING:
    from headrace.security.tls import ListenerTls

_REFUSALS_UNTIL_GONE = 2
_REFUSED_AGAIN_S = 0.1


class QuorumNetwork:
    """Sends the requests of one replica; for one event loop."""

    def __init__(
        self,
        node_id: int,
        *,
        request_timeout_ms: int,
        on_refused: Callable[[int], None],
        login: OwnLogin | None = None,
        tls: "ListenerTls | None" = None,
    ) -> None:
        """`on_refused` is called with a node at whose address no process listens any more.

        A time-out or a lost connection proves nothing. A port that rejects connections twice has
        no process: the machine answers for it.
        """
        self._client_id = f"raft-client-{node_id}"
        self._timeout_s = request_timeout_ms / 1000
        self._on_refused = on_refused
        self._login = login
        self._tls = tls
        self._channels: dict[tuple[str, int, bool], Channel] = {}
        self._reached: set[Channel] = set()
        """Channels to processes that were alive; only these can be found gone."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_closed = False

    def send(
        self,
        request: Request,
        answered: Callable[[int, Any], None],
        failed: Callable[[int], None],
    ) -> None:
        if not self._is_closed:
            self._start(self._ask(request, answered, failed))

    async def close(self) -> None:
        self._is_closed = True
        for channel in self._channels.values():
            channel.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(
        self,
        request: Request,
        answered: Callable[[int, Any], None],
        failed: Callable[[int], None],
    ) -> None:
        to, message = request.to, request.message
        channel = self._channel(to.host, to.port, is_fetch=isinstance(message, FETCHES))
        try:
            await channel.connect(self._timeout_s)
            self._reached.add(channel)
            answer = await channel.ask(message, timeout_s=self._timeout_s)
        except (PeerUnreachable, UnsupportedVersion) as error:
            if self._is_closed:
                return
            failed(request.token)
            if isinstance(error, PeerUnreachable) and channel in self._reached:
                self._reached.discard(channel)
                self._start(self._probe(to.id, channel))
        else:
            answered(request.token, answer)

    async def _probe(self, node_id: int, channel: Channel) -> None:
        """Find out whether the process of a node is gone, after its connection was lost."""
        for attempt in range(_REFUSALS_UNTIL_GONE):
            if attempt:
                await asyncio.sleep(_REFUSED_AGAIN_S)
            try:
                await channel.connect()
            except PeerUnreachable as error:
                if not error.is_refused:
                    return
            else:
                return
        if not self._is_closed:
            self._on_refused(node_id)

    def _channel(self, host: str, port: int, *, is_fetch: bool) -> Channel:
        key = host, port, is_fetch
        channel = self._channels.get(key)
        if channel is None:
            channel = Channel(host, port, self._client_id, login=self._login, tls=self._tls)
            self._channels[key] = channel
        return channel

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
