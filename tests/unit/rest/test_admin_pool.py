"""Questions to a cluster, several at once, each with an end."""

import asyncio
import threading

import pytest

from headrace.errors import TopicAlreadyExists
from headrace.rest.admin_pool import SIZE, AdminPool
from headrace.rest.errors import RestError


def pool(timeout_s: float = 30.0) -> AdminPool:
    return AdminPool({"bootstrap.servers": "127.0.0.1:1"}, timeout_s)


async def test_an_answer_comes_back() -> None:
    assert await pool().run(lambda admin: admin.cluster.timeout_s) == 30.0


async def test_an_error_comes_back_as_it_is() -> None:
    def ask(_: object) -> None:
        raise TopicAlreadyExists("there")

    with pytest.raises(TopicAlreadyExists, match="there"):
        await pool().run(ask)


async def test_questions_run_side_by_side_as_far_as_there_are_clients() -> None:
    together = threading.Barrier(SIZE, timeout=30)
    found = pool()
    arrived = await asyncio.gather(*(found.run(lambda _: together.wait()) for _ in range(SIZE)))
    assert sorted(arrived) == list(range(SIZE))


async def test_one_that_takes_too_long_is_told_and_its_client_comes_back_later() -> None:
    release = threading.Event()
    found = pool(timeout_s=0.05)
    with pytest.raises(RestError, match="did not answer") as failure:
        await found.run(lambda _: release.wait(30))
    assert (failure.value.status, failure.value.code) == (503, 50302)
    release.set()
    patient = pool()
    assert await patient.run(lambda _: 1) == 1


async def test_a_client_that_gives_up_by_itself_is_not_taken_for_the_time_limit() -> None:
    def ask(_: object) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError) as failure:
        await pool().run(ask)
    assert not isinstance(failure.value, RestError)


async def test_a_client_is_used_again() -> None:
    found = pool()
    seen = {await found.run(id) for _ in range(3)}
    assert len(seen) == 1
    await found.close()
