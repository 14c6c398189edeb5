"""Handshakes under way: their bounds, and their results as events of the audit log."""

import asyncio
from collections.abc import Callable
from typing import cast
from unittest.mock import Mock

import pytest

from headrace.broker import handshakes as handshakes_module
from headrace.broker.handshakes import Handshakes
from headrace.security.principals import ANONYMOUS, Principal

ADA = Principal("User", "CN=ada")


class Connection:
    """A connection whose handshake is under way."""

    host = "10.0.0.7"
    peer = "10.0.0.7:4711"

    def __init__(self, principal: Principal = ANONYMOUS, listener: str = "SSL") -> None:
        self.principal = principal
        self.listener = listener
        self.handshakes: Handshakes | None = None
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True
        if self.handshakes is not None:
            self.handshakes.end(self)


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


class StoppedLoop:
    """A loop whose time the test sets, and whose timers it runs."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Mock:
        self.timers.append((self.now_s + delay_s, call))
        return Mock()

    call_at = call_later

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        due = [timer for timer in self.timers if timer[0] <= self.now_s]
        for timer in due:
            self.timers.remove(timer)
            timer[1]()


def begun(handshakes: Handshakes, listener: str, count: int) -> list[Connection]:
    connections = [Connection(listener=listener) for _ in range(count)]
    for connection in connections:
        connection.handshakes = handshakes
        handshakes.begin(connection)
    return connections


def test_a_full_listener_leaves_room_at_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-2: silent strangers must not keep brokers from connecting to each other."""
    monkeypatch.setattr(handshakes_module, "HANDSHAKES_MAX", 3)
    handshakes = Handshakes(cast(asyncio.AbstractEventLoop, StoppedLoop()), lambda: None)
    begun(handshakes, "PUBLIC", 3)
    assert not handshakes.has_room("PUBLIC")
    assert handshakes.has_room("BROKERS")


def test_a_full_listener_loses_the_handshakes_that_stand_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handshakes_module, "HANDSHAKES_MAX", 3)
    loop, rooms = StoppedLoop(), list[bool]()
    handshakes = Handshakes(
        cast(asyncio.AbstractEventLoop, loop),
        lambda: rooms.append(handshakes.has_room("PUBLIC")),
    )
    elsewhere = begun(handshakes, "BROKERS", 1)[0]
    silent, active, also_silent = begun(handshakes, "PUBLIC", 3)
    assert not handshakes.has_room("PUBLIC")
    loop.pass_time(2)
    handshakes.moved(active)
    loop.pass_time(1)
    assert rooms, "the listener is asked again without a new connection"
    assert handshakes.has_room("PUBLIC")
    assert silent.is_closed
    assert also_silent.is_closed
    assert not active.is_closed
    assert not elsewhere.is_closed, "its listener is not full"
    assert handshakes.failed == 2
