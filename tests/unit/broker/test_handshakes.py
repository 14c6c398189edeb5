"""Handshakes as events of the audit log."""

import asyncio

from headrace.broker.handshakes import Handshakes
from headrace.security.principals import ANONYMOUS, Principal

ADA = Principal("User", "CN=ada")


class Connection:
    """A connection whose handshake is under way."""

    listener = "SSL"
    host = "10.0.0.7"
    peer = "10.0.0.7:4711"

    def __init__(self, principal: Principal = ANONYMOUS) -> None:
        self.principal = principal

    def close(self) -> None: ...


async def test_failures_and_clients_with_certificates_are_events() -> None:
    """SEC-9"""
    events: list[tuple[object, ...]] = []
    handshakes = Handshakes(asyncio.get_running_loop(), lambda: None)
    handshakes.audit = lambda *event: events.append(event)
    for principal in (ADA, ANONYMOUS):
        connection = Connection(principal)
        handshakes.begin(connection)
        handshakes.succeed(connection)
    handshakes.fail(Connection(), "it speaks no TLS")
    handshakes.close()
    assert events == [
        ("SSL", "10.0.0.7", "TLS", ADA, None),
        ("SSL", "10.0.0.7", "TLS", None, "it speaks no TLS"),
    ]
