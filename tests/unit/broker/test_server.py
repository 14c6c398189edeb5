"""Which connections are idle for too long."""

from types import SimpleNamespace
from typing import cast

from headrace.broker.connection import Connection
from headrace.broker.server import swept


def connection(*, is_active: bool = False, is_waiting: bool = False) -> Connection:
    made = SimpleNamespace(is_active=is_active, is_waiting=is_waiting, idle_sweeps=0)
    return cast(Connection, made)


def test_a_connection_is_idle_after_four_sweeps_without_a_request() -> None:
    quiet = connection()
    assert [swept([quiet]) for _ in range(4)] == [[], [], [], [quiet]]


def test_a_request_begins_the_count_anew() -> None:
    quiet = connection()
    for _ in range(3):
        swept([quiet])
    quiet.is_active = True
    assert [swept([quiet]) for _ in range(5)] == [[], [], [], [], [quiet]]


def test_a_request_under_way_is_activity() -> None:
    parked = connection(is_waiting=True)
    assert all(swept([parked]) == [] for _ in range(10))
