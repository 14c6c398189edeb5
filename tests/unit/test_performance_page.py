"""Claims on the performance page against its own figures."""

import re
from functools import partial
from pathlib import Path

import pytest

from headrace.cli import sizing

PAGE = (Path(__file__).parents[2] / "docs" / "internals" / "performance.md").read_text()


def figure(load: str) -> float:
    """Return Headrace's figure of a row."""
    (found,) = re.findall(rf"^\| {re.escape(load)} \| [^|]+ \| ([\d.,]+) \|", PAGE, re.MULTILINE)
    return float(found.replace(",", ""))


def claim(pattern: str) -> float:
    (found,) = re.findall(pattern, PAGE)
    return float(found.replace(",", ""))


def test_claims_about_one_node_follow_from_the_measured_figures() -> None:
    """OPS-2: one core per gigabyte, per million records and per request bounds the rates."""
    assert 1_000 / figure("produce 1000 B records, acks=1") > claim(r"more than (\d+) MB/s")
    assert 1e6 / figure("small request, 200 connections") > claim(r"more than ([\d,]+) small")
    records_per_s = 1e6 / figure("produce 100 B records, acks=1")
    assert records_per_s > claim(r"more than ([\d,]+) records of 100 B")
    assert figure("idle memory") < claim(r"less than (\d+) MB when idle")


def test_sizes_are_calculated_from_the_measured_figures() -> None:
    """OPS-2, OPS-5: a million records of 1,000 B are a gigabyte."""
    in_gb, records = sizing.CPU_S_PER_GB_IN, sizing.CPU_S_PER_MILLION_RECORDS
    near = partial(pytest.approx, rel=0.15)
    assert in_gb + records == near(figure("produce 1000 B records, acks=1"))
    assert in_gb / 10 + records == near(figure("produce 100 B records, acks=1"))
    assert near(figure("consume 1000 B records")) == sizing.CPU_S_PER_GB_OUT


def test_figures_out_of_reach_are_named() -> None:
    """OPS-2"""
    assert "| terabytes per node | not measured |" in PAGE
    assert re.search(r"a trillion messages a day .* not within reach", PAGE)
