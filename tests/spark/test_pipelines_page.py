"""Runs the tutorial of pipelines and the example of correcting as written, each in a folder."""

import re
import runpy
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.client.admin import Admin
from headrace.pipelines import commands, spark_sessions
from headrace.pipelines.testing import user_tests
from headrace.pipelines.testing.pipeline_test import PipelineTest
from headrace.testing.process import BrokerProcess
from tests.integration.cli.commands import run

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "tutorials" / "first-pipeline.md"
CORRECTING = DOCS / "guides" / "pipelines" / "correct.md"


def section(page: Path, heading: str) -> str:
    return page.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def lines(text: str) -> list[str]:
    """The commands that a text asks to type."""
    return "".join(blocks(text, "sh")).splitlines()


TYPED = lines(section(PAGE, "Run it"))
SHOWN = blocks(section(PAGE, "Run it"), "text")
FIXED = section(PAGE, "Fix a rule and take rejected rows back")
REDRIVEN = blocks(section(CORRECTING, "Redrive rejected rows"), "text")
OLD_TEST = re.compile(
    r"^def test_an_order_for_nothing_is_set_aside.*?\n(?=\n)", re.MULTILINE | re.DOTALL
)
DONE = ["headrace spark warm", "headrace up"]
"""Commands that the tests do not repeat: `make spark` runs the first, a fixture starts a node."""


@pytest.fixture
def here(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A new folder to type in, where commands use the session of the tests; no topic stays."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spark_sessions, "open_spark", lambda pipelines, **_: spark)
    monkeypatch.setattr(commands, "session_for", lambda *_: nullcontext(spark))

    numbers = count()

    def run_tests(folder: Path, arguments: Sequence[str]) -> int:
        tests = runpy.run_path(str(folder / "tests" / "test_orders.py"))
        found = [test for name, test in tests.items() if name.startswith("test_")]
        for test in found:
            test(PipelineTest(folder, spark, tmp_path / f"test-{next(numbers)}"))
        return 0 if found else 1

    monkeypatch.setattr(user_tests, "run_tests", run_tests)
    yield tmp_path
    with Admin(broker.bootstrap_servers) as admin:
        admin.topics.delete(["orders"])


@pytest.mark.timeout(600)
def test_the_commands_of_the_tutorial_print_the_output_that_it_shows(
    here: Path, broker: BrokerProcess
) -> None:
    """ARC-4: from an empty folder to a refined table, and rejected rows with their reasons."""
    assert TYPED[: len(DONE)] == DONE
    printed = [typed(line, broker.bootstrap_servers) for line in TYPED[len(DONE) :]]
    missing = [block for block in SHOWN if not any(is_in(block, text) for text in printed)]
    assert missing == [], "\n".join(printed)
    assert len(SHOWN) > 3

    (fix,) = re.findall(r"`(dp\.between\(.*?\))`", FIXED)
    trusted = here / "shop" / "trusted.py"
    trusted.write_text(re.sub(r"dp\.between\(.*?\)", fix, trusted.read_text()))
    test, *others = lines(FIXED)
    with pytest.raises(ValueError, match="not enough values to unpack"):
        typed(test, broker.bootstrap_servers)
    tests = here / "shop" / "tests" / "test_orders.py"
    (new_test,) = blocks(FIXED, "python")
    replaced, replacements = OLD_TEST.subn(new_test, tests.read_text())
    assert replacements == 1
    tests.write_text(replaced)
    printed = [typed(line, broker.bootstrap_servers) for line in (test, *others)]
    shown = blocks(FIXED, "text")
    assert shown[0] == REDRIVEN[0]
    assert [block for block in shown if not any(is_in(block, text) for text in printed)] == []
    preview = PAGE.read_text().partition("\n## ")[0]
    assert blocks(preview, "text")[0].partition("\n")[2] == shown[-1]


@pytest.mark.timeout(600)
def test_the_first_example_of_correcting_prints_the_output_that_it_shows(
    here: Path, broker: BrokerProcess
) -> None:
    example = CORRECTING.read_text().partition("\n| ")[0]
    printed = [typed(line, broker.bootstrap_servers) for line in lines(example)]
    (shown,) = blocks(example, "text")
    assert is_in(shown, printed[-1])


def typed(line: str, bootstrap: str) -> str:
    """Return the output of a line of the page; a shell runs the part before the pipe."""
    feed, _, command = line.rpartition(" | ")
    if not command.startswith("headrace "):
        return subprocess.run(line, shell=True, capture_output=True, check=True, text=True).stdout
    stdin = subprocess.run(feed, shell=True, capture_output=True, check=True).stdout
    done = run(bootstrap, *shlex.split(command, comments=True)[1:], stdin=stdin)
    assert done.code == 0, f"{line}: {done.err}"
    return done.out


def is_in(block: str, text: str) -> bool:
    """Return whether the lines of a block were printed, one after the other."""
    printed = [line.rstrip() for line in text.splitlines()]
    return f"\n{block}" in "\n" + "\n".join([*printed, ""])
