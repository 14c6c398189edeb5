"""The metrics port over a real socket: its pages, and clients that misbehave."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from headrace.runtime import observability
from headrace.runtime.exposition import Family, Sample, gauge
from headrace.runtime.observability import Health, Observability


class Pages:
    """The content of the served pages."""

    def __init__(self) -> None:
        self.families: Iterable[Family] = [gauge("some_metric", "Help.", 1)]
        self.health = Health(True, {"/data/a": "online"})
        self.ready = Health(False, {"broker": "starting"})


@contextlib.asynccontextmanager
async def serving(pages: Pages) -> AsyncIterator[int]:
    server = Observability(
        metrics=lambda: pages.families, health=lambda: pages.health, ready=lambda: pages.ready
    )
    _, port = await server.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await server.stop()


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def get(path: str, version: str = "1.1") -> bytes:
    return f"GET {path} HTTP/{version}\r\nHost: x\r\n\r\n".encode()


async def test_metrics_are_sent_in_chunks_with_an_end() -> None:
    async with serving(Pages()) as port:
        answer = await ask(port, get("/metrics"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Type: text/plain; version=0.0.4" in head
    assert b"\nsome_metric 1\n" in body
    assert body.endswith(b"\r\n0\r\n\r\n")


async def test_an_old_client_gets_the_plain_page() -> None:
    async with serving(Pages()) as port:
        answer = await ask(port, get("/metrics?name=x", "1.0"))
    assert answer.endswith(
        b"\n\r\n# HELP some_metric Help.\n# TYPE some_metric gauge\nsome_metric 1\n"
    )


async def test_a_page_that_breaks_off_has_no_end() -> None:
    pages = Pages()

    def broken() -> Iterator[Family]:
        yield Family("a", "gauge", "Help.", [Sample(1)] * 1000)
        raise RuntimeError("a figure could not be read")

    pages.families = broken()
    async with serving(pages) as port:
        answer = await ask(port, get("/metrics"))
        assert b"a 1\n" in answer
        assert not answer.endswith(b"0\r\n\r\n")
        pages.families = [gauge("some_metric", "Help.", 1)]
        assert b"some_metric 1" in await ask(port, get("/metrics"))


async def test_health_and_readiness_are_separate() -> None:
    async with serving(Pages()) as port:
        health = await ask(port, get("/health"))
        ready = await ask(port, get("/ready"))
    assert health.startswith(b"HTTP/1.1 200 ")
    assert json.loads(health.partition(b"\r\n\r\n")[2]) == {
        "status": "ok",
        "checks": {"/data/a": "online"},
    }
    assert ready.startswith(b"HTTP/1.1 503 ")
    assert json.loads(ready.partition(b"\r\n\r\n")[2])["status"] == "failing"


async def test_head_has_no_body() -> None:
    async with serving(Pages()) as port:
        answer = await ask(port, b"HEAD /health HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/other"), 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /metrics HTTP/2\r\n\r\n", 400),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"\x00\x00\x00\x10" + b"\xff" * 100 + b"\r\n\r\n", 400),
    ],
)
async def test_invalid_requests_are_refused(request_bytes: bytes, status: int) -> None:
    async with serving(Pages()) as port:
        answer = await ask(port, request_bytes)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


async def test_a_silent_client_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observability, "_REQUEST_SECONDS_MAX", 0.05)
    async with serving(Pages()) as port:
        assert (await ask(port, b"GET /")).startswith(b"HTTP/1.1 408 ")


async def test_an_excess_client_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observability, "_CLIENTS_MAX", 1)
    async with serving(Pages()) as port:
        _, idle = await asyncio.open_connection("127.0.0.1", port)  # Accepted in order: first.
        assert await answer_or_nothing(port) == b""
        idle.close()
        await idle.wait_closed()
        async with asyncio.timeout(10):
            while not (answer := await answer_or_nothing(port)):
                await asyncio.sleep(0)
    assert answer.startswith(b"HTTP/1.1 200 ")


async def answer_or_nothing(port: int) -> bytes:
    with contextlib.suppress(ConnectionError):
        return await ask(port, get("/health"))
    return b""


async def test_stopping_does_not_wait_for_a_silent_client() -> None:
    async with serving(Pages()) as port:
        _, idle = await asyncio.open_connection("127.0.0.1", port)
        await ask(port, get("/health"))  # The first connection was accepted too.
    idle.close()
    with contextlib.suppress(ConnectionError):
        await idle.wait_closed()
