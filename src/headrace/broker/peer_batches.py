"""Requests to other brokers: one request carries all that one turn of the loop wants to ask."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headrace.errors import KafkaError, NetworkException, UnknownServerError
from headrace.peers.unreachable import PeerUnreachable

if TYPE_CHECKING:
    from headrace.peers.pool import Peers
    from headrace.protocol.message import Message
    from headrace.runtime.tasks import Tasks

K = TypeVar("K", bound=Hashable)
Q = TypeVar("Q")
R = TypeVar("R")

_Waiting = dict[Hashable, tuple[Q, "asyncio.Future[R]"]]


class PeerBatches(Generic[K, Q, R]):
    """Collects items for a target, such as a broker, and sends those of one turn together.

    Items of one identity would be indistinguishable in a response, so the second one goes into a
    batch of its own, after the first.
    """

    def __init__(
        self,
        tasks: "Tasks",
        name: str,
        send: Callable[[K, list[Q]], Awaitable[Mapping[Hashable, R]]],
        identity: Callable[[Q], Hashable],
    ) -> None:
        self._tasks = tasks
        self._name = name
        self._send = send
        self._identity = identity
        self._waiting: dict[K, list[_Waiting[Q, R]]] = {}

    async def ask(self, target: K, item: Q) -> R:
        """Return the result of one item; raise NETWORK_EXCEPTION if the peer gives no answer."""
        batches = self._waiting.get(target)
        if batches is None:
            batches = self._waiting[target] = []
            self._tasks.start(self._send_all(target), self._name)
        identity = self._identity(item)
        batch = next((one for one in batches if identity not in one), None)
        if batch is None:
            batches.append(batch := {})
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        batch[identity] = item, answer
        return await answer

    async def _send_all(self, target: K) -> None:
        batches = self._waiting.pop(target)
        try:
            for batch in batches:
                await self._send_one(target, batch)
        finally:
            for batch in batches:
                for _, answer in batch.values():
                    _fail(answer, NetworkException("this node is stopping"))

    async def _send_one(self, target: K, batch: "_Waiting[Q, R]") -> None:
        try:
            results = await self._send(target, [item for item, _ in batch.values()])
        except Exception as error:
            for _, answer in batch.values():
                _fail(answer, error)
            return
        for identity, (_, answer) in batch.items():
            if answer.done():
                continue
            if identity in results:
                answer.set_result(results[identity])
            else:
                _fail(answer, UnknownServerError(f"{self._name}: the response lacks {identity}"))


def _fail(answer: "asyncio.Future[Any]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # Marked as seen: the caller may be gone.


async def ask_peer(
    peers: "Peers", broker_id: int, request: "Message", *, timeout_s: float = 30.0
) -> Any:
    """Ask another broker; an unreachable one is a NETWORK_EXCEPTION, which callers retry."""
    try:
        return await peers.ask(broker_id, request, timeout_s=timeout_s)
    except KafkaError:
        raise
    except PeerUnreachable as error:
        raise NetworkException(str(error)) from error
