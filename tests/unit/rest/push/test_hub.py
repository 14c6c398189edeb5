"""Limits on streams, and their end."""

import asyncio

import pytest

from headrace.http.errors import HttpError
from headrace.rest.push.hub import Hub
from headrace.rest.settings import RestSettings


async def test_clients_beyond_the_limit_are_rejected() -> None:
    hub = Hub(RestSettings(push_clients_max=1))
    async with hub.client():
        with pytest.raises(HttpError) as refused:
            async with hub.client():
                pass
    assert (refused.value.status, hub.clients) == (503, 0)


async def test_consumers_beyond_the_limit_are_rejected() -> None:
    with pytest.raises(HttpError):
        Hub(RestSettings(push_readers_max=0)).reader({})


async def test_all_clients_of_a_tail_without_a_consumer_get_the_error() -> None:
    hub = Hub(RestSettings(push_readers_max=0))
    found = await asyncio.gather(
        *(hub.tail(((), "t", None)) for _ in range(3)), return_exceptions=True
    )
    assert [isinstance(one, HttpError) for one in found] == [True] * 3


async def test_stopping_cancels_all_streams_and_rejects_new_ones() -> None:
    hub = Hub(RestSettings())
    stream = asyncio.create_task(asyncio.sleep(30))
    hub.streams.add(stream)
    await hub.close()
    with pytest.raises(HttpError):
        async with hub.client():
            pass
    assert stream.cancelled()
