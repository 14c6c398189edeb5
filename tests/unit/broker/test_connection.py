"""A connection serves each frame once and in order, whenever its socket takes the answers."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from headrace.broker.connection import Connection, HostileFrame
from headrace.broker.frame_buffers import FrameBuffers, Frames
from headrace.broker.ready_sockets import ReadySockets
from headrace.broker.server import swept

SECONDS_MAX = 20


class ReluctantSocket(socket.socket):
    """A socket that has no room the next few times, though it would have."""

    refusals = 0

    def send(self, data: object, flags: int = 0) -> int:
        if self.refusals:
            self.refusals -= 1
            raise BlockingIOError
        return super().send(data, flags)  # type: ignore[arg-type]  # It is a buffer.


class QuietRound:
    """Nothing is gathered."""

    def begin(self) -> None: ...

    def end(self) -> None: ...


class Echo:
    """Answers a frame with its content, or keeps it waiting, or fails, depending on the content."""

    def __init__(self) -> None:
        self.served: list[bytes] = []
        self.closed: list[Connection] = []

    def __call__(self, connection: Connection, data: Frames, position: int, end: int) -> None:
        content = bytes(data[position:end])
        self.served.append(content[:9])
        if content.startswith(b"wait"):
            connection.wait()
        elif content.startswith(b"mute"):
            connection.answer(framed(content[:9]))
            connection.mute(int(content[4:]))
        elif content.startswith(b"hostile"):
            raise HostileFrame("it is marked as hostile")
        elif content.startswith(b"fault"):
            raise ZeroDivisionError
        else:
            connection.answer(framed(content[:9]))


class Client:
    """One connection with both of its ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: ReadySockets, echo: Echo) -> None:
        ours, self.peer = socket.socketpair()
        self.sock = ReluctantSocket(fileno=ours.detach())
        self.sock.setblocking(False)
        self.peer.setblocking(False)
        self._loop = loop
        self.connection = Connection(
            self.sock,
            ("10.0.0.7", 40_000),
            "PLAINTEXT",
            loop=loop,
            ready=ready,
            buffers=FrameBuffers(1 << 20),
            take=lambda *_: False,
            dispatch=echo,
            on_close=echo.closed.append,
        )

    async def send(self, *contents: bytes) -> None:
        await self._loop.sock_sendall(self.peer, b"".join(map(framed, contents)))

    async def answers(self, count: int) -> list[bytes]:
        found = b""
        async with asyncio.timeout(SECONDS_MAX):
            while len(found) < count * 13:
                received = await self._loop.sock_recv(self.peer, 1 << 16)
                assert received, "the connection was closed"
                found += received
        return [found[start + 4 : start + 13] for start in range(0, len(found), 13)]

    async def is_closed(self) -> bool:
        async with asyncio.timeout(SECONDS_MAX):
            return not await self._loop.sock_recv(self.peer, 1)


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def numbered(count: int) -> list[bytes]:
    return [b"%09d" % number for number in range(count)]


@asynccontextmanager
async def clients(count: int, echo: Echo) -> AsyncIterator[list[Client]]:
    loop = asyncio.get_running_loop()
    ready = ReadySockets(loop, QuietRound())
    made = [Client(loop, ready, echo) for _ in range(count)]
    try:
        yield made
    finally:
        for client in made:
            client.connection.close()
            client.peer.close()
        ready.close()


async def eventually(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not is_so():
            await asyncio.sleep(0)


@pytest.mark.parametrize("large", [9, 40_000], ids=["small frames", "a large one among them"])
@pytest.mark.parametrize("refusals", [1, 2, 3])
async def test_frames_behind_answers_that_did_not_leave_at_once_are_served(
    refusals: int, large: int
) -> None:
    """A flush of sixteen answers that fails may succeed a moment later: nothing behind is lost."""
    contents = numbered(40)
    contents[16] = contents[16].ljust(large, b".")
    async with clients(1, Echo()) as (client,):
        client.sock.refusals = refusals
        await client.send(*contents)
        assert await client.answers(40) == numbered(40)


async def test_an_unfinished_large_frame_behind_an_unsent_answer_is_finished() -> None:
    large = b"last".ljust(300_000, b".")
    async with clients(1, Echo()) as (client,):
        client.sock.refusals = 1
        frame = framed(b"unsent...") + framed(large)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client.peer, frame[:100_000])
        assert await client.answers(1) == [b"unsent..."]
        await loop.sock_sendall(client.peer, frame[100_000:])
        assert await client.answers(1) == [large[:9]]


async def test_nothing_overtakes_a_request_that_waits() -> None:
    """Also not when answers before it were stuck, and leave while it waits."""
    echo = Echo()
    async with clients(1, echo) as (client,):
        client.sock.refusals = 1
        await client.send(b"before...", b"wait", b"behind...")
        assert await client.answers(1) == [b"before..."]
        await client.send(b"later....")
        await eventually(lambda: not client.connection._reading)
        assert echo.served == [b"before...", b"wait"]
        client.connection.finish([framed(b"waited...")])
        assert await client.answers(3) == [b"waited...", b"behind...", b"later...."]


@pytest.mark.parametrize("content", [b"hostile", b"fault"])
async def test_a_bad_request_closes_its_connection_and_no_other(content: bytes) -> None:
    async with clients(12, Echo()) as made:
        bad, others = made[5], made[:5] + made[6:]
        for client in made:
            await client.send(content if client is bad else b"well done")
        for client in others:
            assert await client.answers(1) == [b"well done"]
        assert await bad.is_closed()
        assert not any(client.connection.closed for client in others)


async def test_a_fault_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async with clients(1, Echo()) as (client,):
        await client.send(b"fault")
        assert await client.is_closed()
    assert vars(caplog.records[0])["connection"] == "10.0.0.7:40000"
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("refusals", [0, 1])
async def test_a_fault_behind_a_request_that_waited_closes_too(refusals: int) -> None:
    """The rest of what arrived is served from `finish`, or when the socket has room again."""
    async with clients(1, Echo()) as (client,):
        await client.send(b"wait", b"fault")
        await eventually(lambda: client.connection.is_waiting)
        client.sock.refusals = refusals
        client.connection.finish([framed(b"waited...")])
        assert await client.answers(1) == [b"waited..."]
        assert await client.is_closed()


async def test_a_connection_whose_end_fails_is_still_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    async with clients(2, Echo()) as (bad, good):
        await bad.send(b"wait")
        await eventually(lambda: bad.connection.is_waiting)
        bad.connection.on_abandoned = broken
        bad.peer.close()
        await good.send(b"well done")
        assert await good.answers(1) == [b"well done"]
        await eventually(lambda: bad.connection.closed)
    assert "ZeroDivisionError" in caplog.text


async def test_a_disconnected_peer_is_forgotten() -> None:
    echo = Echo()
    async with clients(1, echo) as (client,):
        client.peer.close()
        await eventually(lambda: client.connection.closed)
        assert echo.closed == [client.connection]


async def test_a_request_that_waits_is_abandoned_with_its_client() -> None:
    abandoned: list[bool] = []
    async with clients(1, Echo()) as (client,):
        await client.send(b"wait")
        await eventually(lambda: client.connection.is_waiting)
        client.connection.on_abandoned = lambda: abandoned.append(True)
        client.peer.close()
        await eventually(lambda: client.connection.closed)
    assert abandoned == [True]


@pytest.mark.parametrize("size", [-1, (1 << 20) + 1, 0x47455420])
async def test_an_invalid_size_is_rejected(size: int) -> None:
    async with clients(1, Echo()) as (client,):
        await asyncio.get_running_loop().sock_sendall(client.peer, struct.pack(">i", size))
        assert await client.is_closed()


async def test_a_muted_client_is_answered_and_not_served_further() -> None:
    echo = Echo()
    async with clients(1, echo) as (client,):
        await client.send(b"mute60000", b"next.....")
        assert await client.answers(1) == [b"mute60000"]
        await client.send(b"last.....")
        assert echo.served == [b"mute60000"]
        client.connection.finish(())
        assert await client.answers(2) == [b"next.....", b"last....."]


async def test_a_muted_client_is_served_when_its_time_is_over() -> None:
    async with clients(1, Echo()) as (client,):
        await client.send(b"mute00010", b"next.....")
        assert await client.answers(2) == [b"mute00010", b"next....."]


async def test_a_client_that_waited_is_answered_and_muted() -> None:
    echo = Echo()
    async with clients(1, echo) as (client,):
        await client.send(b"wait.....", b"next.....")
        async with asyncio.timeout(SECONDS_MAX):
            while not echo.served:
                await asyncio.sleep(0)
        client.connection.finish_muted((framed(b"answer..."),), 10)
        assert client.connection.is_waiting
        assert await client.answers(2) == [b"answer...", b"next....."]


async def test_a_muted_client_that_leaves_is_closed() -> None:
    echo = Echo()
    async with clients(1, echo) as (client,):
        await client.send(b"mute60000")
        assert await client.answers(1) == [b"mute60000"]
        client.peer.shutdown(socket.SHUT_WR)
        assert await client.is_closed()
        assert echo.closed == [client.connection]


async def test_requests_of_a_muted_client_are_served_although_it_sends_no_more() -> None:
    async with clients(1, Echo()) as (client,):
        await client.send(b"mute00010")
        assert await client.answers(1) == [b"mute00010"]
        await client.send(b"last.....")
        client.peer.shutdown(socket.SHUT_WR)
        assert await client.answers(1) == [b"last....."]
        assert await client.is_closed()


async def test_a_muted_client_is_not_idle() -> None:
    async with clients(1, Echo()) as (client,):
        await client.send(b"mute60000")
        assert await client.answers(1) == [b"mute60000"]
        assert [swept([client.connection]) for _ in range(10)] == [[]] * 10
