"""Counters: exact counts, and totals that never go back."""

import pytest

from headrace.broker.metrics.counters import Metrics, RequestMetrics


def test_requests_are_counted_by_version() -> None:
    requests = RequestMetrics()
    requests.served(0, 9, 5_000)
    requests.served(0, 9, 7_000)
    requests.served_late(0, 11, 3_000_000, queued_ns=500_000, waited_ns=2_000_000)
    api = requests.apis[0]
    assert api.versions == {9: 2, 11: 1}
    assert api.at_once.count == 2
    assert api.total.sum_ms == pytest.approx(3, abs=0.002)
    assert api.local.sum_ms == pytest.approx(0.5, abs=0.002)
    assert api.at_once.merged(api.total).count == 3


def test_errors_are_counted_by_code() -> None:
    requests = RequestMetrics()
    for code in (3, 3, 5):
        requests.failed(3, code)
    assert requests.apis[3].errors == {3: 2, 5: 1}


def test_totals_outlive_a_deleted_topic() -> None:
    metrics = Metrics()
    metrics.topic("a").bytes_in += 10
    metrics.topic("b").bytes_in += 5
    metrics.failed_produce_requests += 1
    metrics.forget_topic("a")
    metrics.forget_topic("never there")
    assert metrics.all_topics().bytes_in == 15
    assert metrics.all_topics().failed_produce_requests == 1
    assert list(metrics.topics) == ["b"]


def test_a_topic_keeps_its_counters() -> None:
    metrics = Metrics()
    assert metrics.topic("a") is metrics.topic("a")
