"""`headrace pipelines test` as users type it: the tests of a new folder, in their own process."""

import subprocess
import sys
from pathlib import Path

import pytest

MORE = """
from test_orders import order


def test_the_failing_check(headrace_pipeline):
    headrace_pipeline.given("staging.orders", [order(1), order(1)])
    headrace_pipeline.run("trusted.orders")
    assert len(headrace_pipeline.rows("trusted.orders")) == 2


def test_that_needs_spark_alone(headrace_spark):
    assert headrace_spark.range(3).count() == 3
"""
"""An expectation that the template does not meet, and one of the session."""


@pytest.mark.timeout(300)
def test_a_new_folders_tests_pass_and_a_wrong_one_beside_them_fails(tmp_path: Path) -> None:
    """One run shows both: each would start a JVM."""
    made = headrace(tmp_path, "init", "shop")
    assert made.returncode == 0, made.stderr
    (tmp_path / "shop" / "tests" / "test_more.py").write_text(MORE)
    tested = headrace(tmp_path, "test", "shop", "-v")
    outcomes = {
        line.partition("::")[2].split()[0]: line.split()[1]
        for line in tested.stdout.splitlines()
        if line.partition("::")[2].endswith("%]")
    }
    assert outcomes == {
        "test_an_order_counts_once": "PASSED",
        "test_an_order_for_nothing_is_set_aside": "PASSED",
        "test_revenue_is_summed_by_day": "PASSED",
        "test_the_failing_check": "FAILED",
        "test_that_needs_spark_alone": "PASSED",
    }, tested.stdout + tested.stderr
    assert "assert 1 == 2" in tested.stdout
    assert tested.returncode == 1


def headrace(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "headrace.cli.main", "pipelines", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
