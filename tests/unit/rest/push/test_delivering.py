"""How long streams and their clients may take."""

import asyncio

import pytest

from headrace.rest.push.delivering import Lifetime, Stalled, taken


async def test_a_client_that_takes_nothing_is_stalled() -> None:
    with pytest.raises(Stalled):
        await taken(asyncio.Event().wait(), 0)


async def test_what_is_taken_in_time_comes_back() -> None:
    assert await taken(asyncio.sleep(0, "taken"), 30) == "taken"


async def test_a_stream_waits_from_heartbeat_to_heartbeat() -> None:
    lifetime = Lifetime(15_000, 60_000)
    assert (lifetime.is_over, lifetime.wait_s()) == (False, 15.0)


async def test_a_stream_waits_no_longer_than_it_may_last() -> None:
    assert Lifetime(15_000, 1_000).wait_s() <= 1.0
