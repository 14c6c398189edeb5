"""Usage by principal and client id: counts, windows, and bounds."""

import pytest

from headrace.broker.usage import OTHERS, Usage
from headrace.quotas.usage_windows import HOUR_MS, MINUTE_MS
from headrace.runtime.exposition import render
from headrace.security.principals import ANONYMOUS, Principal

NODE, BEGIN = 3, 10 * HOUR_MS


class Client:
    """A connection with counts."""

    def __init__(self, client_id: str | None, user: str = "ANONYMOUS") -> None:
        self.principal = ANONYMOUS if user == "ANONYMOUS" else Principal("User", user)
        self.client_id = client_id
        self.requests = self.bytes_in = self.bytes_out = self.spent_ns = 0

    def used(self, requests: int = 1, size: int = 100) -> "Client":
        self.requests += requests
        self.bytes_in += size
        self.bytes_out += 2 * size
        self.spent_ns += 1_000_000
        return self


@pytest.fixture
def usage() -> Usage:
    return Usage(NODE, BEGIN)


def rows(usage: Usage, now_ms: int = BEGIN) -> dict[tuple[str, str], tuple[int, int, int]]:
    """The rows of the present minute."""
    return {
        (row.user, row.client_id): (row.requests, row.bytes_in, row.bytes_out)
        for row in usage.page(now_ms).minutes[-1].rows
    }


def test_connections_of_a_client_are_added_up(usage: Usage) -> None:
    """CLD-2(b)."""
    usage.collect([Client("app").used(), Client("app").used(), Client("app", "ada").used()], BEGIN)
    assert rows(usage) == {("ANONYMOUS", "app"): (2, 200, 400), ("ada", "app"): (1, 100, 200)}


def test_counts_are_added_once(usage: Usage) -> None:
    client = Client(None).used()
    usage.collect([client], BEGIN)
    usage.collect([client], BEGIN)
    assert rows(usage) == {("ANONYMOUS", ""): (1, 100, 200)}


def test_a_minute_that_is_over_is_kept(usage: Usage) -> None:
    usage.add(Client("app").used(), BEGIN)
    usage.roll(BEGIN + MINUTE_MS)
    usage.add(Client("app").used(requests=5), BEGIN + MINUTE_MS)
    page = usage.page(BEGIN + MINUTE_MS + 1)
    assert [(one.begin_ms, one.end_ms) for one in page.minutes] == [
        (BEGIN, BEGIN + MINUTE_MS),
        (BEGIN + MINUTE_MS, BEGIN + MINUTE_MS + 1),
    ]
    assert [one.rows[0].requests for one in page.minutes] == [1, 5]
    assert [one.rows[0].requests for one in page.hours] == [6]
    assert page.node == NODE


def test_windows_without_traffic_have_no_rows(usage: Usage) -> None:
    usage.add(Client("app").used(), BEGIN)
    usage.roll(BEGIN + MINUTE_MS)
    assert rows(usage, BEGIN + MINUTE_MS) == {}


def test_the_number_of_windows_is_bounded(usage: Usage) -> None:
    for minute in range(1, 60 * 60):
        usage.roll(BEGIN + minute * MINUTE_MS)
    page = usage.page(BEGIN + HOUR_MS * 60)
    assert (len(page.minutes), len(page.hours)) == (61, 49)


def test_clients_beyond_the_maximum_share_a_row(usage: Usage) -> None:
    usage.collect([Client(f"c{number}").used() for number in range(600)], BEGIN)
    text = "".join(render(usage.families()))
    assert text.count("headrace_usage_requests_total{") == 501
    assert f'headrace_usage_requests_total{{user="{OTHERS}",client_id="{OTHERS}"}} 100' in text


def test_a_window_has_the_largest_clients_and_the_others_in_one_row(usage: Usage) -> None:
    usage.collect([Client(f"c{size}").used(size=size) for size in range(1, 101)], BEGIN)
    found = rows(usage)
    assert len(found) == 51
    assert next(iter(found)) == ("ANONYMOUS", "c100")
    assert found[OTHERS, OTHERS] == (50, sum(range(1, 51)), 2 * sum(range(1, 51)))


def test_only_the_first_part_of_a_long_client_id_counts(usage: Usage) -> None:
    """CLD-2(b): or the windows of 500 clients would have hundreds of megabytes of names."""
    usage.collect([Client("x" * 30_000).used(), Client("x" * 20_000).used()], BEGIN)
    assert rows(usage) == {("ANONYMOUS", "x" * 256): (2, 200, 400)}


def test_idle_clients_make_room_for_new_ones(usage: Usage) -> None:
    usage.collect([Client(f"c{number}").used() for number in range(500)], BEGIN)
    usage.roll(BEGIN + HOUR_MS)
    usage.add(Client("new").used(), BEGIN + HOUR_MS)
    assert list(rows(usage, BEGIN + HOUR_MS)) == [("ANONYMOUS", "new")]
