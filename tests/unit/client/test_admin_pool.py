"""Calls to a cluster, several at once, each within a time limit."""

import asyncio
import threading

import pytest

from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin_pool import AdminPool
from headrace.errors import TopicAlreadyExists

SIZE = 4


def pool(call_timeout_s: float = 30.0, size: int = SIZE) -> AdminPool:
    return AdminPool(
        {"bootstrap.servers": "127.0.0.1:1"},
        size=size,
        timeout_s=30.0,
        call_timeout_s=call_timeout_s,
    )


async def test_an_answer_is_returned() -> None:
    assert await pool().run(lambda admin: admin.cluster.timeout_s) == 30.0


async def test_an_error_is_raised_unchanged() -> None:
    def ask(_: object) -> None:
        raise TopicAlreadyExists("there")

    with pytest.raises(TopicAlreadyExists, match="there"):
        await pool().run(ask)


async def test_calls_run_side_by_side_as_far_as_there_are_clients() -> None:
    together = threading.Barrier(SIZE, timeout=30)
    found = pool()
    arrived = await asyncio.gather(*(found.run(lambda _: together.wait()) for _ in range(SIZE)))
    assert sorted(arrived) == list(range(SIZE))


async def test_a_late_call_fails_and_its_client_returns_to_the_pool() -> None:
    release = threading.Event()
    found = pool(call_timeout_s=0.05, size=1)
    with pytest.raises(BrokerUnreachable, match=r"within 0\.05 seconds"):
        await found.run(lambda _: release.wait(30))
    release.set()
    (member,) = found._members
    await member.thread.run(lambda: None)
    assert await found.run(lambda _: 1) == 1


async def test_calls_of_one_client_keep_their_order() -> None:
    found = pool(size=1)
    seen: list[int] = []

    async def append(number: int) -> None:
        await found.run(lambda _: seen.append(number))

    await asyncio.gather(*(append(number) for number in range(20)))
    assert seen == list(range(20))


async def test_a_timeout_of_the_client_is_raised_unchanged() -> None:
    def ask(_: object) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError) as failure:
        await pool().run(ask)
    assert not isinstance(failure.value, BrokerUnreachable)


async def test_a_client_is_used_again() -> None:
    found = pool()
    seen = {await found.run(id) for _ in range(3)}
    assert len(seen) == 1
    await found.close()
