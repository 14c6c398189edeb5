"""Heads of requests: limits of size and time, and answers without the application."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from headrace.http.heads import (
    HEAD_BYTES_MAX,
    HEAD_SECONDS_MAX,
    BoundedProtocol,
    ServerConfig,
    head_bytes,
)
from headrace.registry.errors import rendered

REQUEST = b"GET /x HTTP/1.1\r\nHost: own\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps the written bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Timer:
    """A call that waits until a test makes it."""

    def __init__(self, delay: float, call: Callable[[], None]) -> None:
        self.delay = delay
        self.call = call
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """The running loop, but timers wait for the test."""

    def __init__(self) -> None:
        self.create_task = asyncio.get_running_loop().create_task
        self.call_soon = asyncio.get_running_loop().call_soon
        self.timers: list[Timer] = []

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(delay, call))
        return self.timers[-1]

    def waiting(self) -> list[float]:
        return [one.delay for one in self.timers if not one.is_cancelled]


class Connection:
    """A protocol on a wire, before an application that answers with the length of the body."""

    def __init__(self, connections_max: int = 10, beside: "Connection | None" = None) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            body = await Request(scope, receive).body()
            await PlainTextResponse(f"{len(body)} bytes")(scope, receive, send)

        config = ServerConfig(
            app, limit_concurrency=connections_max, log_config=None, timeout_keep_alive=60
        )
        config.render = rendered
        self.loop = Loop()
        self.wire = Wire()
        self.config: ServerConfig = config if beside is None else beside.config
        self.state: ServerState = ServerState() if beside is None else beside.state
        self.protocol = BoundedProtocol(
            self.config, self.state, {}, cast(asyncio.AbstractEventLoop, self.loop)
        )
        self.protocol.connection_made(self.wire)

    async def receive(self, data: bytes) -> None:
        """Receive bytes of a client, and answer the requests that they complete."""
        self.protocol.data_received(data)
        if self.state.tasks:
            await asyncio.wait(self.state.tasks)

    @property
    def answer(self) -> tuple[int, bytes]:
        head, _, body = self.wire.written.partition(b"\r\n\r\n")
        return int(head.split()[1]), body


def head(size: int) -> bytes:
    return b"GET /x HTTP/1.1\r\nHost: own\r\nX-Large: " + b"x" * size + b"\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        [head(HEAD_BYTES_MAX)],
        [head(HEAD_BYTES_MAX)[:-40_000], head(HEAD_BYTES_MAX)[-40_000:]],
        [b"GET /x HTTP/1.1\r\nX: ", b"x" * 40_000, b"x" * 40_000],
        [b"GET /", b"x" * 70_000],
        [b"GET /x HTTP/1.1\r\n", *[b"X: %s\r\n" % (b"y" * 990)] * 70],
    ],
)
async def test_a_head_that_is_too_large_is_rejected_in_the_shape_of_the_product(
    pieces: list[bytes],
) -> None:
    connection = Connection()
    for piece in pieces:
        await connection.receive(piece)
    status, body = connection.answer
    assert (status, json.loads(body)["error_code"]) == (431, 431)
    assert b"connection: close" in connection.wire.written


async def test_after_a_rejected_head_the_connection_is_closed() -> None:
    connection = Connection()
    await connection.receive(head(HEAD_BYTES_MAX))
    told = connection.wire.written
    await connection.receive(REQUEST)
    connection.loop.timers[-1].call()
    assert (connection.wire.written, connection.wire.is_closed) == (told, True)


async def test_a_large_head_below_the_limit_is_answered() -> None:
    connection = Connection()
    await connection.receive(head(HEAD_BYTES_MAX - 100))
    assert connection.answer == (200, b"0 bytes")


@pytest.mark.parametrize("size", [1_000, 1_000_000])
async def test_a_large_body_is_no_large_head(size: int) -> None:
    connection = Connection()
    start = b"POST /x HTTP/1.1\r\nHost: own\r\nContent-Length: %d\r\n\r\n" % size
    request = start + b"x" * size
    connection.protocol.data_received(request[: size // 2])
    await connection.receive(request[size // 2 :])
    assert connection.answer == (200, b"%d bytes" % size)


async def test_trailers_are_bounded_too() -> None:
    connection = Connection()
    start = b"POST /x HTTP/1.1\r\nHost: own\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    connection.protocol.data_received(start)
    for _ in range(70):
        connection.protocol.data_received(b"X: %s\r\n" % (b"y" * 990))
    assert connection.wire.is_closed
    connection.protocol.connection_lost(None)
    await asyncio.gather(*connection.state.tasks, return_exceptions=True)


async def test_a_silent_connection_is_closed_after_a_timeout() -> None:
    connection = Connection()
    (timer,) = connection.loop.timers
    timer.call()
    assert (timer.delay, connection.wire.is_closed) == (HEAD_SECONDS_MAX, True)


async def test_a_head_in_small_pieces_gets_no_more_time() -> None:
    connection = Connection()
    for byte in REQUEST[:20]:
        await connection.receive(bytes([byte]))
    assert connection.loop.waiting() == [HEAD_SECONDS_MAX]
    assert len(connection.loop.timers) == 1


async def test_a_head_that_is_complete_ends_the_wait() -> None:
    connection = Connection()
    await connection.receive(REQUEST)
    assert connection.loop.waiting() == [60], "only that for the next request"


@pytest.mark.parametrize("start", [b"G", b"\r\n"])
async def test_the_next_head_has_its_time_from_its_first_byte(start: bytes) -> None:
    connection = Connection()
    await connection.receive(REQUEST)
    await connection.receive(start)
    assert connection.loop.waiting() == [HEAD_SECONDS_MAX]


async def test_a_request_in_one_piece_sets_no_timer_of_its_own() -> None:
    connection = Connection()
    for _ in range(5):
        await connection.receive(REQUEST)
    assert [one.delay for one in connection.loop.timers] == [HEAD_SECONDS_MAX, *[60] * 5]


async def test_a_connection_that_is_lost_waits_for_nothing() -> None:
    connection = Connection()
    connection.protocol.connection_lost(None)
    assert connection.loop.waiting() == []


async def test_too_many_connections_are_rejected_in_the_shape_of_the_product() -> None:
    connection = Connection(connections_max=1)
    await connection.receive(REQUEST)
    status, body = connection.answer
    assert (status, json.loads(body)["error_code"]) == (503, 503)
    assert b"retry-after: 1" in connection.wire.written
    assert b"connection: close" in connection.wire.written


async def test_a_connection_that_finds_no_room_takes_the_place_of_the_longest_silent() -> None:
    first = Connection(connections_max=4)
    others = [Connection(beside=first) for _ in range(2)]
    await others[0].receive(REQUEST[:20])  # An incomplete head.
    latest = Connection(beside=first)
    await latest.receive(REQUEST)
    assert [one.wire.is_closed for one in (first, *others, latest)] == [True, False, False, False]
    assert latest.answer == (200, b"0 bytes")


async def test_idle_connections_stay_while_others_send_a_head() -> None:
    polite = Connection(connections_max=3)
    await polite.receive(REQUEST)
    silent = Connection(beside=polite)
    assert [one.wire.is_closed for one in (polite, silent)] == [False, False]
    third = Connection(beside=polite)
    assert [one.wire.is_closed for one in (polite, silent)] == [False, True]
    await third.receive(REQUEST)
    fourth = Connection(beside=polite)
    await fourth.receive(REQUEST)
    assert [one.wire.is_closed for one in (polite, third, fourth)] == [True, False, False]


async def test_a_connection_with_a_request_under_way_is_not_closed_for_another() -> None:
    busy = Connection(connections_max=2)
    start = b"POST /x HTTP/1.1\r\nHost: own\r\nContent-Length: 5\r\n\r\n"
    busy.protocol.data_received(start)
    other = Connection(beside=busy)
    other.protocol.data_received(REQUEST)
    await busy.receive(b"12345")
    assert (busy.answer, other.answer[0]) == ((200, b"5 bytes"), 503)


async def test_an_invalid_request_is_answered_in_the_shape_of_the_product() -> None:
    connection = Connection()
    await connection.receive(b"\x16\x03\x01\x00\xa5")
    status, body = connection.answer
    assert (status, json.loads(body)["error_code"]) == (400, 400)


def test_a_head_is_as_large_as_its_address_and_headers() -> None:
    assert head_bytes(b"/x", [(b"a", b"bc"), (b"d", b"")]) == len(b"/xa: bc\r\nd: \r\n")
