"""Rates of new connections: which listener waits, and which address is refused."""

import pytest

from headrace.broker.connection_rates import ConnectionRates
from headrace.quotas.precedence import Quotas
from headrace.quotas.rates import Windows

# Two windows of a second: connections of one second are one burst.
WINDOWS = Windows(2, 1000)
ONE_A_SECOND: Quotas = {(("ip", None),): {"connection_creation_rate": 1.0}}


@pytest.fixture
def rates() -> ConnectionRates:
    return ConnectionRates(WINDOWS)


def test_without_limits_nothing_waits(rates: ConnectionRates) -> None:
    assert [rates.accepted("A", 0) for _ in range(100)] == [0] * 100
    assert rates.refusal_ms("A", "10.0.0.7", 0) == 0


def test_connections_beyond_the_rate_make_their_listener_wait(rates: ConnectionRates) -> None:
    rates.limit(2, {})
    assert [rates.accepted("A", 0) for _ in range(3)] == [0, 0, 500]
    assert rates.accepted("B", 500) == 500
    assert rates.delays["A"].measure(500) == 500


def test_a_listener_has_a_rate_of_its_own(rates: ConnectionRates) -> None:
    rates.limit(None, {"A": 1})
    assert [rates.accepted("A", 0) for _ in range(2)] == [0, 1000]
    assert [rates.accepted("B", 0) for _ in range(2)] == [0, 0]


def test_the_listener_between_brokers_ignores_the_rate_of_the_broker(
    rates: ConnectionRates,
) -> None:
    rates.limit(1, {})
    rates.exempt_listener = "A"
    assert [rates.accepted("A", 0) for _ in range(9)] == [0] * 9


def test_a_throttle_time_is_one_window_at_most(rates: ConnectionRates) -> None:
    rates.limit(1, {})
    assert max(rates.accepted("A", 0) for _ in range(50)) == 1000


def test_a_changed_limit_applies_to_connections_before_it(rates: ConnectionRates) -> None:
    rates.limit(10, {})
    assert [rates.accepted("A", 0) for _ in range(3)] == [0] * 3
    rates.limit(2, {})
    assert rates.accepted("A", 0) == 1000


def test_an_address_beyond_its_rate_is_refused_and_others_are_not(rates: ConnectionRates) -> None:
    """QUO-1."""
    rates.follow(ONE_A_SECOND)
    assert [rates.refusal_ms("A", "10.0.0.7", 0) for _ in range(3)] == [0, 1000, 1000]
    assert rates.refusal_ms("A", "10.0.0.8", 0) == 0


def test_refused_connections_count_nowhere(rates: ConnectionRates) -> None:
    rates.limit(2, {"A": 2})
    rates.follow(ONE_A_SECOND)
    delays = []
    for _ in range(9):
        delays.append(rates.accepted("A", 0))
        rates.refusal_ms("A", "10.0.0.7", 0)
    assert delays == [0] * 9
    assert rates.refusal_ms("A", "10.0.0.7", 2000) == 0


def test_an_address_has_a_limit_of_its_own(rates: ConnectionRates) -> None:
    rates.follow({**ONE_A_SECOND, (("ip", "10.0.0.7"),): {"connection_creation_rate": 3.0}})
    assert [rates.refusal_ms("A", "10.0.0.7", 0) for _ in range(4)] == [0, 0, 0, 333]


def test_the_number_of_addresses_is_bounded(rates: ConnectionRates) -> None:
    rates.follow(ONE_A_SECOND)
    for number in range(10_005):
        rates.refusal_ms("A", f"10.0.{number >> 8}.{number & 255}", 0)
    assert len(rates._addresses) == 10_000


def test_a_quota_is_found_however_its_address_is_written(rates: ConnectionRates) -> None:
    """QUO-1: Java's tools write all parts of an IPv6 address."""
    rates.follow({(("ip", "2001:DB8:0:0:0:0:0:1"),): {"connection_creation_rate": 1.0}})
    assert [rates.refusal_ms("A", "2001:db8::1", 0) for _ in range(2)] == [0, 1000]
    assert [rates.refusal_ms("A", "2001:db8::2", 0) for _ in range(2)] == [0, 0]
