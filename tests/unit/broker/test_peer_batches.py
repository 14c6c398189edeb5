"""Requests to other brokers that one turn of the loop collects."""

import asyncio
from collections.abc import Hashable, Mapping

import pytest

from headrace.broker.peer_batches import PeerBatches
from headrace.errors import NetworkException, UnknownServerError
from headrace.runtime.tasks import Tasks


class Sent:
    """Batches as they were sent, answered with ten times the item."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[int]]] = []
        self.failure: Exception | None = None
        self.is_silent = False
        self.tasks = Tasks(asyncio.get_running_loop())
        self.peers = PeerBatches(self.tasks, "tests", self._send, lambda item: item)

    async def _send(self, target: str, items: list[int]) -> Mapping[Hashable, int]:
        self.batches.append((target, items))
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return {} if self.is_silent else {item: 10 * item for item in items}


@pytest.fixture
async def sent() -> Sent:
    return Sent()


async def test_items_of_one_turn_are_sent_together(sent: Sent) -> None:
    asked = [("a", 1), ("a", 2), ("b", 1)]
    answers = await asyncio.gather(*(sent.peers.ask(*one) for one in asked))
    assert answers == [10, 20, 10]
    assert sorted(sent.batches) == [("a", [1, 2]), ("b", [1])]
    assert await sent.peers.ask("a", 3) == 30
    assert len(sent.batches) == 3


async def test_equal_items_are_sent_one_after_the_other(sent: Sent) -> None:
    answers = await asyncio.gather(*(sent.peers.ask("a", 1) for _ in range(3)))
    assert answers == [10, 10, 10]
    assert sent.batches == [("a", [1])] * 3


async def test_an_error_is_that_of_every_item(sent: Sent) -> None:
    sent.failure = NetworkException("unplugged")
    outcomes = await asyncio.gather(
        sent.peers.ask("a", 1), sent.peers.ask("a", 2), return_exceptions=True
    )
    assert [type(one) for one in outcomes] == [NetworkException] * 2


async def test_an_item_without_a_result_is_an_error(sent: Sent) -> None:
    sent.is_silent = True
    with pytest.raises(UnknownServerError):
        await sent.peers.ask("a", 1)


async def test_a_caller_that_is_gone_does_not_disturb_the_others(sent: Sent) -> None:
    first, second = (asyncio.ensure_future(sent.peers.ask("a", item)) for item in (1, 2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 20


async def test_callers_are_released_when_the_node_stops(sent: Sent) -> None:
    waiting = asyncio.ensure_future(sent.peers.ask("a", 1))
    for _ in range(2):
        await asyncio.sleep(0)
    await sent.tasks.stop()
    with pytest.raises(NetworkException):
        await waiting
