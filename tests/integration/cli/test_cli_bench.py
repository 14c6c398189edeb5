"""The load generator."""

import re

import pytest

from tests.clients.librdkafka import watermarks
from tests.integration.cli.commands import ok
from tests.processes.nodes import Node


def test_a_load_is_measured_on_both_sides(node: Node) -> None:
    """OPS-4: a load generator ships with the product and models the user's own load."""
    arguments = ["--records", "20000", "--size", "100", "--partitions", "2", "--producers", "2"]
    measured = ok(node, "bench", *arguments, "--compression", "lz4", "--json").document
    for side in ("produced", "consumed"):
        assert measured[side]["records"] == 20_000
        assert measured[side]["failed"] == 0
        assert measured[side]["records_per_s"] > 0
        latency = measured[side]["latency_ms"]
        assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["p99_9"]
        assert latency["p99_9"] <= latency["max"]
    topic = measured["plan"]["topic"]
    assert topic not in ok(node, "topics", "list").out


def test_figures_count_only_what_was_stored_and_read(node: Node, topic: str) -> None:
    """OPS-2, PUL-19: rates are records by seconds, and latencies those of acknowledged records."""
    arguments = ["--topic", topic, "--records", "5000", "--size", "200", "--json"]
    measured = ok(node, "bench", *arguments).document
    assert watermarks(node, topic)[1] == 5_000 + 1  # One record went ahead to open the way.
    for side in ("produced", "consumed"):
        figures = measured[side]
        rounding = 0.001 + 0.001 / figures["seconds"]  # Seconds have three digits.
        rate = figures["records"] / figures["seconds"]
        assert figures["records_per_s"] == pytest.approx(rate, rel=rounding)
        assert figures["mb_per_s"] * 1e6 == pytest.approx(figures["records_per_s"] * 200, rel=0.01)
        assert figures["latency_ms"]["p50"] > 0


def test_a_rate_is_kept(node: Node) -> None:
    """OPS-4"""
    arguments = ["--rate", "500", "--duration", "1", "--consumers", "0", "--json"]
    measured = ok(node, "bench", *arguments).document
    assert 250 <= measured["produced"]["records"] <= 501
    assert measured["consumed"] is None


def test_a_topic_of_the_user_is_kept_and_can_be_read_again(node: Node, topic: str) -> None:
    ok(node, "bench", "--topic", topic, "--records", "1000", "--size", "50", "--consumers", "0")
    _, end = watermarks(node, topic)
    assert end == 1000 + 1  # One record went ahead to open the way.
    shown = ok(node, "bench", "--topic", topic, "--producers", "0", "--consumers", "1").out
    assert re.search(r"^records +1,001$", shown, re.MULTILINE)
