"""The ten minutes of docs/pipelines.md, typed as they stand there, in a folder of their own."""

import re
import runpy
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.pipelines import commands, spark_sessions
from headrace.pipelines.testing import user_tests
from headrace.pipelines.testing.pipeline_test import PipelineTest
from headrace.testing.process import BrokerProcess
from tests.integration.cli.commands import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipelines.md"
SECTION = PAGE.read_text().partition("\n## Ten minutes\n")[2].partition("\n## ")[0]
BLOCK = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = BLOCK.findall(SECTION)
TYPED = re.findall(r"^ {4}(\S.*)$", BLOCK.sub("", SECTION), re.MULTILINE)
DONE = ("headrace spark warm", "headrace up")
"""What comes before the tests: `make spark` does the first, and a node is there already."""


@pytest.fixture
def here(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder to type in, where commands have the session of the tests for their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spark_sessions, "open_spark", lambda pipelines, **_: spark)
    monkeypatch.setattr(commands, "session_for", lambda *_: nullcontext(spark))

    def run_tests(folder: Path, arguments: Sequence[str]) -> int:
        tests = runpy.run_path(str(folder / "tests" / "test_orders.py"))
        found = [test for name, test in tests.items() if name.startswith("test_")]
        for number, test in enumerate(found):
            test(PipelineTest(folder, spark, tmp_path / f"test-{number}"))
        return 0 if found else 1

    monkeypatch.setattr(user_tests, "run_tests", run_tests)
    return tmp_path


@pytest.mark.timeout(600)
def test_who_types_the_ten_minutes_gets_what_the_page_shows(
    here: Path, broker: BrokerProcess
) -> None:
    """ARC-4: from nothing to a refined table, and what was refused with its reason."""
    assert [line.partition("  ")[0] for line in TYPED[: len(DONE)]] == list(DONE)
    printed = [typed(line, broker.bootstrap_servers) for line in TYPED[len(DONE) :]]
    missing = [block for block in SHOWN if not any(is_in(block, text) for text in printed)]
    assert missing == [], "\n".join(printed)
    assert len(SHOWN) > 3


def typed(line: str, bootstrap: str) -> str:
    """What a line of the page prints; a shell does what comes before the pipe."""
    feed, _, command = line.rpartition(" | ")
    stdin = subprocess.run(feed, shell=True, capture_output=True, check=True).stdout
    done = run(bootstrap, *shlex.split(command, comments=True)[1:], stdin=stdin)
    assert done.code == 0, f"{line}: {done.err}"
    return done.out


def is_in(block: str, text: str) -> bool:
    """Whether the lines of a block are among those that were printed, one after the other."""
    lines = [line.rstrip() for line in text.splitlines()]
    return f"\n{block}" in "\n" + "\n".join([*lines, ""])
