"""Quotas of clients: which requests are throttled, for how long, and by which quota."""

import pytest

from headrace.broker.client_quotas import BYTES_MAX, ClientQuotas, Meter
from headrace.quotas.precedence import Quotas
from headrace.quotas.rates import Windows
from headrace.testing.clock import SimulatedClock

ADA: Quotas = {(("user", "ada"),): {"producer_byte_rate": 100.0, "consumer_byte_rate": 100.0}}
SECOND_NS = 1_000_000_000


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def quotas(clock: SimulatedClock) -> ClientQuotas:
    quotas = ClientQuotas(clock, Windows())
    quotas.follow(ADA)
    return quotas


def meter(quotas: ClientQuotas, user: str = "ada", client_id: str = "app") -> Meter:
    found = quotas.meter(user, client_id)
    assert found is not None
    return found


def test_a_client_without_a_quota_has_no_meter(quotas: ClientQuotas) -> None:
    """QUO-1."""
    assert quotas.meter("bob", "app") is None


def test_bytes_beyond_the_quota_are_throttled(quotas: ClientQuotas) -> None:
    """QUO-1."""
    assert meter(quotas).produced(1000, 0) == 0
    assert meter(quotas).produced(500, 0) == 5000


def test_all_clients_of_a_user_share_its_quota(quotas: ClientQuotas) -> None:
    meter(quotas, client_id="one").produced(1000, 0)
    assert meter(quotas, client_id="two").produced(500, 0) == 5000


def test_producing_and_fetching_have_quotas_of_their_own(quotas: ClientQuotas) -> None:
    """QUO-2(b)."""
    meter(quotas).produced(1000, 0)
    assert meter(quotas).fetched(900, 0) == (0, True)


def test_a_changed_quota_is_in_force_at_once(quotas: ClientQuotas) -> None:
    """QUO-2."""
    meter(quotas).produced(1000, 0)
    assert quotas.follow({(("user", "ada"),): {"producer_byte_rate": 50.0}})
    assert meter(quotas).produced(0, 0) == 10_000


def test_quotas_that_are_the_same_change_nothing(quotas: ClientQuotas) -> None:
    assert not quotas.follow(dict(ADA))


def test_without_any_quota_nothing_is_counted(quotas: ClientQuotas) -> None:
    quotas.follow({})
    assert not quotas


def test_records_that_are_not_sent_do_not_count(quotas: ClientQuotas) -> None:
    meter(quotas).fetched(1000, 0)
    assert meter(quotas).fetched(500, 0) == (5000, False)
    assert meter(quotas).fetched(0, 0) == (0, True)


def test_a_batch_beyond_the_burst_is_sent_when_nothing_else_was(
    quotas: ClientQuotas, clock: SimulatedClock
) -> None:
    """Or its consumer would never get it."""
    assert meter(quotas).fetched(5000, 0) == (40_000, True)
    assert meter(quotas).fetched(5000, 0) == (90_000, False)
    clock.advance(40_000)
    assert meter(quotas).fetched(5000, 0) == (40_000, True)


def test_an_answer_is_limited_to_the_burst_of_its_quota(quotas: ClientQuotas) -> None:
    assert meter(quotas).fetch_bytes_max == 1000
    quotas.follow({(("user", "ada"),): {"producer_byte_rate": 1.0}})
    assert meter(quotas).fetch_bytes_max == BYTES_MAX


def test_request_time_is_throttled_for_one_window_at_most(quotas: ClientQuotas) -> None:
    quotas.follow({(("client-id", None),): {"request_percentage": 50.0}})
    assert meter(quotas).requested(5 * SECOND_NS) == 0
    assert meter(quotas).requested(SECOND_NS // 100) == 20
    assert meter(quotas).requested(100 * SECOND_NS) == 1000


def test_the_longer_throttle_time_counts(quotas: ClientQuotas) -> None:
    quotas.follow({(("user", "ada"),): {"producer_byte_rate": 100.0, "request_percentage": 1.0}})
    assert meter(quotas).produced(1100, 5 * SECOND_NS) == 1000
    assert meter(quotas).produced(4000, 0) == 41_000


def test_the_time_of_unanswered_requests_does_not_count(quotas: ClientQuotas) -> None:
    quotas.follow({(("user", "ada"),): {"request_percentage": 1.0}})
    assert meter(quotas).produced_unanswered(1 << 30) == 0


def test_figures_contain_the_owners_that_were_used_last(
    quotas: ClientQuotas, clock: SimulatedClock
) -> None:
    quotas.follow({(("client-id", None),): {"producer_byte_rate": 100.0}})
    for name in ("one", "two", "three"):
        meter(quotas, client_id=name).produced(2000, 0)
    figures = list(quotas.produce.figures(clock.monotonic_ms(), 2))
    assert [one.client_id for one in figures] == ["three", "two"]
    assert (figures[0].rate, figures[0].throttle_ms) == (200, 10_000)


def test_owners_that_are_idle_for_an_hour_are_forgotten(
    quotas: ClientQuotas, clock: SimulatedClock
) -> None:
    quotas.follow({(("client-id", None),): {"producer_byte_rate": 100.0}})
    meter(quotas, client_id="one").produced(1, 0)
    clock.advance(3_600_000)
    meter(quotas, client_id="two").produced(1, 0)
    assert len(quotas.produce) == 1


def test_the_number_of_owners_is_bounded(quotas: ClientQuotas) -> None:
    quotas.follow({(("client-id", None),): {"producer_byte_rate": 100.0}})
    for number in range(10_005):
        meter(quotas, client_id=f"c{number}").produced(1, 0)
    assert len(quotas.produce) == 10_000


def test_very_long_client_ids_are_counted_and_not_kept(quotas: ClientQuotas) -> None:
    """QUO-1: a client could fill the memory with ids that it invents."""
    for client_id in ("x", "y" * 30_000):
        assert quotas.meter("ada", client_id) is not None
    assert [key[1] for key in quotas._meters] == ["x"]
