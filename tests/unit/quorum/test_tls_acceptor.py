"""Handshakes at a controller listener while strangers hold connections and send nothing."""

import asyncio
import socket

import pytest

from headrace.quorum import tls_acceptor
from headrace.quorum.tls_acceptor import TlsAcceptor
from headrace.security.tls import ListenerTls
from headrace.settings.listener_security import TlsSettings
from tests.builders.certificates import Authority

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
