"""The program: light to import, clear when it fails."""

import subprocess
import sys

import pytest

from headrace.cli import main as program
from headrace.cli.main import COMMANDS, main
from headrace.errors import HeadraceError

HEAVY = ("click", "rich", "confluent_kafka", "msgspec", "asyncio")


def test_starting_imports_nothing_that_a_node_does_not_need() -> None:
    check = f"import sys, headrace.cli.main; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["topics", "configs", "offsets", "log", "cluster", "records"])
def test_administration_needs_neither_rich_nor_librdkafka(command: str) -> None:
    check = (
        f"import sys, headrace.cli.{command}, headrace.client.admin;"
        "print('rich' in sys.modules, 'confluent_kafka' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert "Usage: headrace " + command in capsys.readouterr().out


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topicz"]) == 2
    assert "No such command 'topicz'" in capsys.readouterr().err


def test_an_error_is_one_line_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: list[str]) -> int:
        raise HeadraceError("the disk is on fire; put it out")

    monkeypatch.setattr(program, "_run", fail)
    assert main([]) == 1
    assert capsys.readouterr().err == "headrace: the disk is on fire; put it out\n"


def test_an_unreachable_cluster_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Port 1 is reserved and refuses at once."""
    assert main(["topics", "list", "--bootstrap", "127.0.0.1:1"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("headrace: cannot reach 127.0.0.1:1: connection refused; start a node")
    assert error.count("\n") == 1


def test_ctrl_c_is_no_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "_run", interrupt)
    assert main([]) == 130


def test_a_library_of_an_extra_that_is_missing_is_named_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: list[str]) -> int:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    monkeypatch.setattr(program, "_run", run)
    assert main(["pipelines", "run"]) == 1
    assert "headrace[spark]" in capsys.readouterr().err
