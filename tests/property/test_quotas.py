"""Quotas against plain models: rates, buckets, throttle times and precedence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.quotas.precedence import PRODUCER_BYTE_RATE, Applied, Limits
from headrace.quotas.rates import Rate, TokenBucket, Windows
from headrace.quotas.throttling import Limited, Mutations

windows = st.builds(Windows, st.integers(2, 12), st.integers(100, 2000))
steps = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 10_000)), min_size=1, max_size=60)


@given(windows=windows, steps=steps)
def test_a_rate_counts_the_recent_values_and_no_old_ones(
    windows: Windows, steps: list[tuple[int, int]]
) -> None:
    """Values within the windows count, values before them by more than one window do not."""
    rate, now_ms = Rate(windows), 0
    values: list[tuple[int, int]] = []
    for wait_ms, value in steps:
        now_ms += wait_ms
        rate.record(value, now_ms)
        values.append((now_ms, value))
        whole_ms = windows.num * windows.size_ms
        counted = rate.measure(now_ms) * rate.window_ms(now_ms) / 1000
        recent = sum(value for at_ms, value in values if now_ms - at_ms < whole_ms - 1)
        possible = sum(
            value for at_ms, value in values if now_ms - at_ms < whole_ms + windows.size_ms
        )
        assert recent - 0.01 <= counted <= possible + 0.01


@given(windows=windows, steps=steps, limit=st.integers(1, 5000))
def test_a_client_that_waits_out_its_throttle_times_keeps_its_limit(
    windows: Windows, steps: list[tuple[int, int]], limit: int
) -> None:
    limited, now_ms, sent, last = Limited(Rate(windows), limit), 0, 0, 0
    for wait_ms, value in steps:
        now_ms += wait_ms + limited.record(value, now_ms + wait_ms)
        sent, last = sent + value, max(last, value)
    seconds = now_ms / 1000
    assert sent <= limit * (seconds + windows.burst_s + windows.size_ms / 1000) + last


@given(
    windows=windows,
    steps=st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 40)), min_size=1, max_size=60),
    limit=st.integers(1, 20),
)
def test_strict_mutations_equal_a_plain_bucket(
    windows: Windows, steps: list[tuple[int, int]], limit: int
) -> None:
    bucket, now_ms = TokenBucket(windows), 0
    burst = windows.burst_s * limit
    tokens = burst
    for wait_ms, count in steps:
        now_ms += wait_ms
        tokens = min(burst, tokens + limit * wait_ms / 1000)
        mutations = Mutations(bucket, limit, is_strict=True)
        is_accepted = True
        try:
            mutations.record(count, now_ms)
        except Exception:
            is_accepted = False
        if abs(tokens) > 1e-6:  # Rounding may decide on the edge.
            assert is_accepted == (tokens >= 0)
        if is_accepted:
            tokens -= count
        else:
            assert mutations.throttle_ms(now_ms) == pytest.approx(-tokens / limit * 1000, abs=1)


names = st.sampled_from(["ada", "bob", None])
entities = st.one_of(
    names.map(lambda name: (("user", name),)),
    names.map(lambda name: (("client-id", name),)),
    st.tuples(names, names).map(lambda two: (("client-id", two[0]), ("user", two[1]))),
)
quotas = st.dictionaries(entities, st.integers(1, 1000).map(float), max_size=12)


@given(
    quotas=quotas,
    user=st.sampled_from(["ada", "bob", "eve"]),
    client_id=st.sampled_from(["ada", "bob", "eve"]),
)
def test_precedence_equals_a_walk_through_kafkas_order(
    quotas: dict[tuple[tuple[str, str | None], ...], float], user: str, client_id: str
) -> None:
    limits = Limits(
        {one: {PRODUCER_BYTE_RATE: value} for one, value in quotas.items()}, PRODUCER_BYTE_RATE
    )
    assert limits.find(user, client_id) == _walk(quotas, user, client_id)


def _walk(
    quotas: dict[tuple[tuple[str, str | None], ...], float], user: str, client_id: str
) -> Applied | None:
    users: tuple[str | None, ...] = (user, None)
    clients: tuple[str | None, ...] = (client_id, None)
    for name in users:
        for client in clients:
            limit = quotas.get((("client-id", client), ("user", name)))
            if limit is not None:
                return Applied(user, client_id, limit)
        limit = quotas.get((("user", name),))
        if limit is not None:
            return Applied(user, "", limit)
    for client in clients:
        limit = quotas.get((("client-id", client),))
        if limit is not None:
            return Applied("", client_id, limit)
    return None
