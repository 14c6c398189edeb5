"""Which connections may come, and which are idle for too long."""

from types import SimpleNamespace
from typing import cast

from headrace.broker.connection import Connection
from headrace.broker.server import swept
from headrace.broker.server_limits import ServerLimits


def connection(*, is_active: bool = False, is_waiting: bool = False) -> Connection:
    made = SimpleNamespace(is_active=is_active, is_waiting=is_waiting, idle_sweeps=0)
    return cast(Connection, made)


def test_a_connection_is_idle_after_four_sweeps_without_a_request() -> None:
    quiet = connection()
    assert [swept([quiet]) for _ in range(4)] == [[], [], [], [quiet]]


def test_a_request_restarts_the_count() -> None:
    quiet = connection()
    for _ in range(3):
        swept([quiet])
    quiet.is_active = True
    assert [swept([quiet]) for _ in range(5)] == [[], [], [], [], [quiet]]


def test_a_request_under_way_is_activity() -> None:
    parked = connection(is_waiting=True)
    assert all(swept([parked]) == [] for _ in range(10))


def test_an_address_may_have_a_limit_of_its_own() -> None:
    limits = ServerLimits(
        max_connections_per_ip=1, max_connections_per_ip_overrides={"10.0.0.7": 5}
    )
    assert (limits.connections_of("10.0.0.7"), limits.connections_of("10.0.0.8")) == (5, 1)
