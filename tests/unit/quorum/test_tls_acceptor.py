"""Handshakes at a controller listener that are slow, fail or are given up."""

import asyncio
import logging
import socket

import pytest

from headrace.quorum import tls_acceptor
from headrace.quorum.tls_acceptor import TlsAcceptor
from headrace.security.tls import ListenerTls
from headrace.settings.listener_security import TlsSettings
from tests.builders.certificates import Authority
from tests.unit.broker.test_connection import eventually

SECONDS_MAX = 30


def listener_tls() -> ListenerTls:
    authority = Authority()
    owned = authority.issue("node")
    return ListenerTls(
        "CONTROLLER",
        TlsSettings(
            keystore_type="PEM",
            keystore_key=owned.key_pem(),
            keystore_certificate_chain=owned.certificate_pem,
            truststore_type="PEM",
            truststore_certificates=authority.pem,
            client_auth="required",
        ),
        is_between_nodes=True,
    )


async def test_silent_strangers_do_not_keep_a_node_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-2."""
    monkeypatch.setattr(tls_acceptor, "_HANDSHAKES_MAX", 2)
    monkeypatch.setattr(tls_acceptor, "_PATIENCE_S", 0.01)
    monkeypatch.setattr(tls_acceptor, "_HANDSHAKE_TIMEOUT_S", 3600.0)
    tls, connected = listener_tls(), asyncio.get_running_loop().create_future()

    class Protocol(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            connected.set_result(transport)

    sock = socket.create_server(("127.0.0.1", 0))
    acceptor = TlsAcceptor(sock, tls, Protocol)
    address = sock.getsockname()[:2]
    strangers = [await asyncio.open_connection(*address) for _ in range(4)]
    async with asyncio.timeout(SECONDS_MAX):
        _, writer = await asyncio.open_connection(
            *address, ssl=tls.client, server_hostname="localhost"
        )
        node = await connected
        for reader, _ in strangers[:2]:
            assert await reader.read() == b""
    for end in (node, writer.transport, *(end.transport for _, end in strangers)):
        end.abort()
    acceptor.close()
    await asyncio.gather(*acceptor._handshakes, return_exceptions=True)
    for _ in range(5):  # Transports close their sockets in later turns.
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("opening", "level", "message"),
    [
        (b"", "INFO", "connection to a controller closed in its TLS handshake"),
        (b"\x16\x03\x01", "INFO", "connection to a controller closed in its TLS handshake"),
        (b"GET / HTTP/1.1\r\n\r\n", "WARNING", "TLS handshake with a controller failed"),
    ],
)
async def test_only_failed_handshakes_are_warnings(
    caplog: pytest.LogCaptureFixture, opening: bytes, level: str, message: str
) -> None:
    """SEC-2"""
    listening = socket.create_server(("127.0.0.1", 0))
    with caplog.at_level(logging.DEBUG, "headrace.quorum"):
        acceptor = TlsAcceptor(listening, listener_tls(), asyncio.Protocol)
        with socket.create_connection(listening.getsockname()) as peer:
            peer.sendall(opening)
        await eventually(lambda: bool(caplog.records))
        acceptor.close()
    assert [(row.levelname, row.message) for row in caplog.records] == [(level, message)]
