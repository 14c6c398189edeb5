"""Serving until a signal: requests under way, a second signal, and a taken port."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace.errors import CannotListen
from headrace.http.addresses import ListenAddress
from headrace.http.product import Listener, Product, run, stop_this_process
from headrace.http.server import address_of, bind, serve

ANY_PORT = ListenAddress("127.0.0.1", 0)
SECONDS_MAX = 20
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class SlowApp:
    """An application whose answer waits for `may_answer`."""

    def __init__(self) -> None:
        self.has_request = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.was_cancelled = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.has_request.set()
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


class Serving:
    """A server with one slow request under way."""

    def __init__(self, app: SlowApp, address: ListenAddress, task: asyncio.Task[None]) -> None:
        self.app = app
        self.address = address
        self.task = task
        self.signals = 0
        self.answer = asyncio.ensure_future(answer_from(address))

    async def signalled(self) -> None:
        """Send SIGTERM to this process, and wait until the server has received it."""
        expected = self.signals + 1
        os.kill(os.getpid(), signal.SIGTERM)
        while self.signals < expected:
            await asyncio.sleep(0.001)

    def on_stop(self) -> None:
        self.signals += 1


async def answer_from(address: ListenAddress) -> bytes:
    """Send a request and return everything until the connection ends."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(REQUEST)
    answer = await reader.read()
    writer.close()
    return answer


@asynccontextmanager
async def serving(stop_s_max: int) -> AsyncIterator[Serving]:
    app, listener, is_ready = SlowApp(), bind(ANY_PORT), asyncio.Event()
    on_stop: list[Callable[[], None]] = []
    task = asyncio.ensure_future(
        serve(
            app,
            listener,
            on_ready=is_ready.set,
            stop_s_max=stop_s_max,
            on_stop=lambda: on_stop[0](),
        )
    )
    async with asyncio.timeout(SECONDS_MAX):
        await is_ready.wait()
        found = Serving(app, address_of(listener), task)
        on_stop.append(found.on_stop)
        await app.has_request.wait()
        yield found
        await task
        app.may_answer.set()
        await found.answer


async def test_a_request_under_way_at_sigterm_is_finished() -> None:
    async with serving(stop_s_max=SECONDS_MAX) as server:
        await server.signalled()
        assert not server.task.done()
        server.app.may_answer.set()
        answer = await server.answer
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"done" in answer


async def test_a_request_that_outlives_the_limit_is_cancelled() -> None:
    async with serving(stop_s_max=0) as server:
        await server.signalled()
        await server.task
        await server.answer
        assert server.app.was_cancelled


async def test_a_second_signal_does_not_wait_for_requests() -> None:
    async with serving(stop_s_max=3600) as server:
        await server.signalled()
        await server.signalled()
        await server.task
        assert not server.app.may_answer.is_set()


def test_a_taken_port_is_an_error_with_its_address() -> None:
    with bind(ANY_PORT) as listener:
        address = address_of(listener)
        with pytest.raises(CannotListen, match=str(address)):
            bind(address)


def test_a_run_reports_its_url_and_ends_with_sigterm() -> None:
    seen: list[Any] = []

    @asynccontextmanager
    async def build(address: ListenAddress) -> AsyncIterator[Product]:
        seen.append(address)
        yield Product(title="Test", operations=[], families=list)
        seen.append("closed")

    def on_ready(url: str) -> None:
        seen.append(url)
        stop_this_process()

    previous = signal.getsignal(signal.SIGTERM)
    run(build, Listener(ANY_PORT), on_ready)
    assert seen == [seen[0], f"http://{seen[0]}", "closed"]
    assert signal.getsignal(signal.SIGTERM) == previous


def test_a_run_takes_its_port_before_it_builds() -> None:
    built: list[ListenAddress] = []

    @asynccontextmanager
    async def build(address: ListenAddress) -> AsyncIterator[Product]:
        built.append(address)
        yield Product(title="Test", operations=[], families=list)

    with bind(ANY_PORT) as listener, pytest.raises(CannotListen):
        run(build, Listener(address_of(listener)), print)
    assert built == []
