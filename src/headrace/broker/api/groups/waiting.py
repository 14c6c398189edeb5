"""Requests that may wait for other members: a join for all of them, a sync for the leader."""

from asyncio import Future
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


def outcome(
    reply: R | Coroutine[Any, Any, R] | None, ticket: "Future[R]", shape: Callable[[R], R]
) -> R | Coroutine[Any, Any, R]:
    """Return the response, or a coroutine that awaits the reply or, without one, the ticket."""
    if reply is None:
        return shape(ticket.result()) if _is_answered(ticket) else _later(ticket, shape)
    if isinstance(reply, Coroutine):
        return _committed(reply, ticket, shape)
    return shape(reply)


def _is_answered(ticket: "Future[Any]") -> bool:
    return ticket.done() and ticket.exception() is None


async def _later(ticket: "Future[R]", shape: Callable[[R], R]) -> R:
    return shape(await ticket)


async def _committed(
    reply: Coroutine[Any, Any, R | None], ticket: "Future[R]", shape: Callable[[R], R]
) -> R:
    answer = await reply
    return shape(await ticket if answer is None else answer)
