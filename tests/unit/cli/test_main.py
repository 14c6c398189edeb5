"""The program: light to import, clear when it fails."""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.cli import extras
from headrace.cli import main as program
from headrace.cli.group import COMMANDS
from headrace.cli.main import main
from headrace.errors import HeadraceError
from headrace.runtime.installation import pip_command

HEAVY = ("click", "rich", "confluent_kafka", "msgspec", "asyncio")


def test_starting_imports_nothing_that_a_node_does_not_need() -> None:
    check = f"import sys, headrace.cli.main; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command",
    [
        "acls",
        "cluster",
        "configs",
        "log",
        "offsets",
        "quotas",
        "records",
        "tokens",
        "topics",
        "users",
    ],
)
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
    assert "No such command 'topicz'. Did you mean 'topics'?" in capsys.readouterr().err


def test_only_close_names_are_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produse"]) == 2
    assert capsys.readouterr().err.endswith("No such command 'produse'. Did you mean 'produce'?\n")


def test_a_name_unlike_any_command_is_rejected_without_a_suggestion(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["xyzzy"]) == 2
    assert capsys.readouterr().err.endswith("No such command 'xyzzy'.\n")


def test_an_error_is_one_line_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: list[str]) -> int:
        raise HeadraceError("the disk is on fire; put it out")

    monkeypatch.setattr(program, "_run", fail)
    assert main([]) == 1
    assert capsys.readouterr().err == "headrace: the disk is on fire; put it out\n"


def test_an_unreachable_cluster_gives_advice(capsys: pytest.CaptureFixture[str]) -> None:
    """Port 1 is reserved and refuses at once."""
    assert main(["topics", "list", "--bootstrap", "127.0.0.1:1"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("headrace: cannot reach 127.0.0.1:1: connection refused; start a node")
    assert error.count("\n") == 1


def test_ctrl_c_is_not_reported_as_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "_run", interrupt)
    assert main([]) == 130


def failing_import(error: ImportError) -> Callable[[list[str]], int]:
    def run(_: list[str]) -> int:
        raise error

    return run


@pytest.mark.parametrize("library", ["pyspark", "pyarrow.parquet", "deltalake"])
def test_pipelines_name_the_extra_of_spark_for_any_missing_library(
    library: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = ModuleNotFoundError(f"No module named {library!r}", name=library)
    monkeypatch.setattr(program, "_run", failing_import(missing))
    assert main(["pipelines", "run"]) == 1
    error = capsys.readouterr().err
    assert "make .venv/installed-spark" in error
    assert pip_command("spark") in error


def test_a_library_of_an_extra_that_is_missing_is_named_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = ModuleNotFoundError("No module named 'deltalake'", name="deltalake")
    monkeypatch.setattr(program, "_run", failing_import(missing))
    assert main(["tables", "list"]) == 1
    assert pip_command("lake") in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'deltalake'", name="deltalake"),
        ModuleNotFoundError("No module named 'arro3'", name="arro3"),
        ImportError("cannot import name 'lib' from 'pyarrow'", name="pyarrow"),
    ],
)
def test_an_import_during_an_installation_reports_the_installation(
    error: ImportError,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A library may be installed in part, so other import errors get the advice too."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(program, "_run", failing_import(error))
    with extras.installing():
        assert main(["tables", "show", "refined.x"]) == 1
    reported = capsys.readouterr().err
    assert "is installing now" in reported
    assert "try again" in reported


def test_a_failed_import_of_our_own_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with extras.installing():
        pass  # One that is over leaves its file behind, and no lock.
    fault = ImportError("cannot import name 'x' from 'headrace.lake'", name="headrace.lake")
    monkeypatch.setattr(program, "_run", failing_import(fault))
    with pytest.raises(ImportError, match="cannot import name 'x'"):
        main(["tables", "list"])


def test_make_run_signals_the_installation_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test's own `make` replaces the slow one, and looks for the lock."""
    look = f"import sys; sys.prefix = {str(tmp_path)!r}; from headrace.cli import extras"
    make = tmp_path / "make"
    make.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c"
        f' "{look}; print(extras.is_installing())" > {tmp_path}/seen\n'
    )
    make.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    run = runpy.run_path(str(Path(__file__).resolve().parents[3] / "tools" / "run.py"))
    assert run["install_spark"]()
    assert (tmp_path / "seen").read_text() == "True\n"
    assert not extras.is_installing()
