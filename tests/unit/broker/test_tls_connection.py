"""A connection with TLS serves frames as one without, and ends when its peer misbehaves."""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headrace.broker import handshakes as handshakes_module
from headrace.broker.connection import Connection
from headrace.broker.frame_buffers import FrameBuffers, Frames
from headrace.broker.handshakes import Handshakes
from headrace.broker.ready_sockets import ReadySockets
from headrace.broker.tls_connection import TlsConnection
from headrace.runtime.files import OpenFile
from headrace.security.principals import Principal
from headrace.security.tls import ListenerTls
from headrace.settings.listener_security import TlsSettings
from tests.builders.certificates import Authority
from tests.unit.broker.test_connection import QuietRound, eventually, framed, numbered

SECONDS_MAX = 30
AUTHORITY = Authority()
OWNED = AUTHORITY.issue("ada")
TLS = ListenerTls(
    "SSL",
    TlsSettings(
        keystore_type="PEM",
        keystore_key=OWNED.key_pem(),
        keystore_certificate_chain=OWNED.certificate_pem,
        truststore_type="PEM",
        truststore_certificates=AUTHORITY.pem,
        client_auth="requested",
    ),
    is_between_nodes=False,
)


class Answering:
    """Answers a frame with its content, with a file, or keeps it waiting."""

    def __init__(self, file: Path | None = None) -> None:
        self.served: list[bytes] = []
        self.closed: list[Connection] = []
        self._file = file

    def __call__(self, connection: Connection, data: Frames, position: int, end: int) -> None:
        content = bytes(data[position:end])
        self.served.append(content[:9])
        if content.startswith(b"wait"):
            connection.wait()
        elif content.startswith(b"file") and self._file is not None:
            size = self._file.stat().st_size
            part = OpenPart(self._file, size)
            connection.answer_parts([struct.pack(">i", size), part])
        else:
            connection.answer(framed(content))


class OpenPart:
    """A file as part of an answer."""

    def __init__(self, path: Path, size: int) -> None:
        self._file = OpenFile(os.open(path, os.O_RDONLY))
        self.position = 0
        self.size = size

    def fileno(self) -> int:
        return self._file.fileno()


class Client:
    """One connection with both of its ends; the client's end is asyncio's own TLS."""

    def __init__(self, ready: ReadySockets, answering: Answering, handshakes: Handshakes) -> None:
        ours, self.peer = socket.socketpair()
        self.peer.setblocking(False)
        ours.setblocking(False)
        secured = TLS.server.wrap_socket(ours, server_side=True, do_handshake_on_connect=False)
        self.connection = TlsConnection(
            secured,
            ("10.0.0.7", 40_000),
            "SSL",
            handshakes=handshakes,
            principal_of=TLS.principal_of,
            loop=asyncio.get_running_loop(),
            ready=ready,
            buffers=FrameBuffers(1 << 22),
            take=lambda *_: False,
            dispatch=answering,
            on_close=answering.closed.append,
        )
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, tls: ListenerTls = TLS) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            self.reader, self.writer = await asyncio.open_connection(
                sock=self.peer, ssl=tls.client, server_hostname="localhost"
            )
        self._writers.append(self.writer)

    async def close(self) -> None:
        self.connection.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # The transport closes its socket in the next turn.
        self.peer.close()

    def send(self, *contents: bytes) -> None:
        self.writer.write(b"".join(map(framed, contents)))

    async def answers(self, count: int) -> list[bytes]:
        async with asyncio.timeout(SECONDS_MAX):
            return [await self._answer() for _ in range(count)]

    async def _answer(self) -> bytes:
        size = struct.unpack(">i", await self.reader.readexactly(4))[0]
        return await self.reader.readexactly(size)


@asynccontextmanager
async def served(answering: Answering, *, count: int = 1) -> AsyncIterator[list[Client]]:
    loop = asyncio.get_running_loop()
    ready = ReadySockets(loop, QuietRound())
    handshakes = Handshakes(loop, lambda: None)
    made = [Client(ready, answering, handshakes) for _ in range(count)]
    try:
        yield made
    finally:
        for client in made:
            await client.close()
        handshakes.close()
        ready.close()


async def test_frames_are_answered_in_order() -> None:
    """SEC-2."""
    async with served(Answering()) as (client,):
        await client.connect()
        client.send(*numbered(5_000))
        assert await client.answers(5_000) == numbered(5_000)


async def test_many_clients_are_served_at_once() -> None:
    async with served(Answering(), count=20) as clients:
        await asyncio.gather(*(client.connect() for client in clients))
        for client in clients:
            client.send(*numbered(50))
        for client in clients:
            assert await client.answers(50) == numbered(50)


async def test_the_certificate_of_a_client_names_its_principal() -> None:
    """SEC-3."""
    async with served(Answering()) as (client,):
        await client.connect()
        client.send(b"a request")
        await client.answers(1)
        assert client.connection.principal == Principal("User", "CN=ada")


@pytest.mark.parametrize("size", [16_380, 16_384, 70_000, 3_000_000])
async def test_large_frames_arrive_whole_in_both_directions(size: int) -> None:
    """SEC-2."""
    content = bytes(range(256)) * (size // 256)
    async with served(Answering()) as (client,):
        await client.connect()
        client.send(content, b"the next.", content)
        assert await client.answers(3) == [content, b"the next.", content]


async def test_bytes_inside_openssl_are_served_after_a_request_that_waited() -> None:
    """All frames are in one record, so epoll reports none of them again."""
    answering = Answering()
    async with served(answering) as (client,):
        await client.connect()
        client.send(b"wait", b"a".ljust(9), b"wait", b"b".ljust(9))
        for count in (1, 3):
            await eventually(lambda: len(answering.served) == count)  # noqa: B023
            client.connection.finish([framed(b"answer")])
        assert await client.answers(4) == [b"answer", b"a".ljust(9), b"answer", b"b".ljust(9)]


async def test_files_arrive_whole_at_a_client_that_reads_late(tmp_path: Path) -> None:
    """SEC-2: nothing of a segment is lost between the pieces in which it is encrypted."""
    file = tmp_path / "segment"
    content = b"".join(number.to_bytes(4) for number in range(1_000_000))
    file.write_bytes(content)
    answering = Answering(file)
    async with served(answering) as (client,):
        await client.connect()
        client.send(b"file", b"a".ljust(9), b"file", b"b".ljust(9))
        await eventually(lambda: bool(answering.served))
        assert await client.answers(4) == [content, b"a".ljust(9), content, b"b".ljust(9)]


async def test_the_end_of_the_stream_closes_the_connection() -> None:
    """SEC-2: by close_notify."""
    answering = Answering()
    async with served(answering) as (client,):
        await client.connect()
        client.writer.close()
        await eventually(lambda: bool(answering.closed))


async def test_an_end_without_notice_closes_the_connection() -> None:
    """SEC-2: a truncated stream leaks nothing."""
    answering = Answering()
    async with served(answering) as (client,):
        await client.connect()
        client.send(b"a request")
        await client.answers(1)
        client.peer.shutdown(socket.SHUT_RDWR)
        await eventually(lambda: bool(answering.closed))


async def test_a_request_of_a_lost_peer_is_abandoned() -> None:
    answering, abandoned = Answering(), []
    async with served(answering) as (client,):
        await client.connect()
        client.send(b"wait")
        await eventually(lambda: bool(answering.served))
        client.connection.on_abandoned = lambda: abandoned.append(1)
        client.writer.close()
        client.peer.shutdown(socket.SHUT_RDWR)
        await eventually(lambda: bool(answering.closed))
        assert abandoned == [1]


@pytest.mark.parametrize(
    ("opening", "reason"),
    [
        (framed(b"\0\x12\0\3\0\0\0\1\0\1a"), "it speaks no TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "it speaks no TLS"),
        (b"\x16\x03\x01\x00\x05hello", "unexpected message"),
        (b"\x16\x03\x01\xff\xff" + bytes(70_000), "packet length too long"),
    ],
)
async def test_a_peer_without_tls_is_refused_with_one_log_line(
    caplog: pytest.LogCaptureFixture, opening: bytes, reason: str
) -> None:
    """SEC-2: plaintext on a TLS port, and invalid handshakes."""
    answering = Answering()
    with caplog.at_level(logging.WARNING):
        async with served(answering) as (client,):
            client.peer.send(opening)
            await eventually(lambda: bool(answering.closed))
    (record,) = caplog.records
    assert record.message == "TLS handshake failed, connection closed"
    assert reason in record.reason  # type: ignore[attr-defined]
    assert not answering.served


@pytest.mark.parametrize(
    ("opening", "level", "message"),
    [
        (b"", "DEBUG", "connection closed before its TLS handshake"),
        (b"\x16\x03\x01\x00\xff\x01", "INFO", "connection closed in its TLS handshake"),
    ],
)
async def test_a_peer_that_closes_in_its_handshake_is_no_failure(
    caplog: pytest.LogCaptureFixture, opening: bytes, level: str, message: str
) -> None:
    """SEC-2: port checks and peers that end."""
    answering = Answering()
    with caplog.at_level(logging.DEBUG, "headrace.broker.handshakes"):
        async with served(answering) as (client,):
            client.peer.send(opening)
            client.peer.shutdown(socket.SHUT_WR)
            await eventually(lambda: bool(answering.closed))
    (record,) = caplog.records
    assert (record.levelname, record.message) == (level, message)


async def test_a_flood_of_failed_handshakes_is_logged_in_part(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SEC-2."""
    answering = Answering()
    async with served(answering, count=30) as clients:
        for client in clients:
            client.peer.send(b"no TLS at all")
        await eventually(lambda: len(answering.closed) == 30)
    assert len(caplog.records) == 10


async def test_a_handshake_that_does_not_end_is_closed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SEC-2: a peer that connects and sends nothing, or half a greeting."""
    monkeypatch.setattr(handshakes_module, "_TIMEOUT_S", 0.01)
    answering = Answering()
    async with served(answering, count=2) as clients:
        clients[0].peer.send(b"\x16\x03\x01")
        async with asyncio.timeout(SECONDS_MAX):
            while len(answering.closed) < 2:
                await asyncio.sleep(0.001)
    assert "it was not finished in" in caplog.text or len(caplog.records) == 2


async def test_a_client_of_a_foreign_authority_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SEC-3."""
    foreign = Authority("foreign").issue("eve")
    client_tls = ListenerTls(
        "SSL",
        TlsSettings(
            keystore_type="PEM",
            keystore_key=foreign.key_pem(),
            keystore_certificate_chain=foreign.certificate_pem,
            truststore_type="PEM",
            truststore_certificates=AUTHORITY.pem,
        ),
        is_between_nodes=False,
    )
    answering = Answering()
    async with served(answering) as (client,):
        await client.connect(client_tls)
        await eventually(lambda: bool(answering.closed))
    assert "unable to get local issuer certificate" in caplog.records[0].reason  # type: ignore[attr-defined]
    assert not answering.served
