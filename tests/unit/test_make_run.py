"""`make run` on machines without Java, and its output on a terminal."""

import io
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pyarrow as pa
import pytest

from headrace.cli.progress import ProgressLine
from headrace.lake.catalog import Lake
from tests.builders.lakes import numbers

RUN = Path(__file__).resolve().parents[2] / "tools" / "run.py"
APT = """#!/bin/sh
echo "$DEBIAN_FRONTEND" "$@" >> "{folder}/calls"
[ "$1" = update ] || {move} "{folder}/package" "{folder}/installed"
"""
"""Replaces Debian's: records its arguments, and creates the files of the package."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One where the path leads to two folders of the test and nowhere else."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), str(tmp_path / "installed")]))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def add_apt(machine: Path, java: str = "17.0.15") -> None:
    """An `apt-get` whose package has a Java of a version."""
    move = which("mv", path=os.defpath)
    program(machine / "apt-get", APT.format(folder=machine, move=move))
    program(machine / "package" / "java", f"#!/bin/sh\necho 'openjdk version \"{java}\"' >&2\n")


def find_java() -> bool:
    """Look for Java as `make run` does, which first decides whether it may install one."""
    functions = runpy.run_path(str(RUN))
    may_install: Callable[[], bool] = functions["may_install_java"]
    find: Callable[..., bool] = functions["find_java"]
    return find(may_install=may_install())


def test_users_who_may_install_packages_get_java_from_debian(machine: Path) -> None:
    add_apt(machine)
    assert find_java()
    assert (machine / "calls").read_text().splitlines() == [
        "noninteractive update -qq",
        "noninteractive install -qq --no-install-recommends openjdk-17-jre-headless -y",
    ]


def test_an_installed_java_must_be_recent_enough_for_spark(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_apt(machine, java="11.0.2")
    assert not find_java()
    assert "is Java 11 and Spark needs 17" in capsys.readouterr().out


def test_users_without_rights_get_the_package_to_install(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_apt(machine)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not find_java()
    assert "such as Debian's openjdk-17-jre-headless" in capsys.readouterr().out
    assert not (machine / "calls").exists()


def test_machines_without_debians_tool_get_the_package_to_install(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not find_java()
    assert "such as Debian's openjdk-17-jre-headless" in capsys.readouterr().out


class Terminal(io.StringIO):
    """A terminal that records the output, or has a text to read."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "is_installed"), [("y\n", True), ("\n", False), ("", False)])
def test_users_with_a_terminal_are_asked_and_the_end_of_the_input_means_no(
    machine: Path, monkeypatch: pytest.MonkeyPatch, answer: str, *, is_installed: bool
) -> None:
    add_apt(machine)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    assert find_java() is is_installed
    assert (machine / "calls").exists() is is_installed


def test_a_closed_standard_input_installs_nothing(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_apt(machine)
    monkeypatch.setattr(sys, "stdin", None)
    assert not find_java()
    assert not (machine / "calls").exists()


def test_the_question_is_answered_before_any_process_starts(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_apt(machine)
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    monkeypatch.setattr(sys, "argv", ["run.py", "--registry", "no", "--rest", "no"])
    answers: list[bool] = []

    class NotStarted:
        """A run that only records the answer."""

        def __init__(self, *_: object, may_install_java: bool) -> None:
            answers.append(may_install_java)

        def serve(self, *, with_pipeline: bool) -> int:
            return 0 if with_pipeline else 1

    main = runpy.run_path(str(RUN))["main"]
    monkeypatch.setitem(main.__globals__, "Run", NotStarted)
    assert main() == 0
    assert answers == [True]


def test_lines_of_the_node_replace_the_status_line_of_the_pipeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    status = ProgressLine(terminal)
    pass_on = runpy.run_path(str(RUN))["pass_on"]
    status.show("access-logs: waiting for its first batch  0 rows/s")
    pass_on(["INFO broker: topic created\n", "INFO broker: group\n"], terminal)
    status.show("access-logs: raw 10")
    shown = [line.rpartition("\r\x1b[K")[2] for line in terminal.getvalue().split("\n")]
    assert shown[:2] == ["INFO broker: topic created", "INFO broker: group"]
    assert shown[2].strip() == "access-logs: raw 10"


def test_lines_of_the_node_are_unchanged_in_a_file() -> None:
    file = io.StringIO()
    runpy.run_path(str(RUN))["pass_on"](["INFO broker: topic created\n"], file)
    assert file.getvalue() == "INFO broker: topic created\n"


def test_a_url_is_no_folder_for_tables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", "--lake", "s3://bucket/lake"])
    with pytest.raises(SystemExit):
        runpy.run_path(str(RUN))["main"]()
    assert "s3://bucket/lake is not a folder" in capsys.readouterr().err


def test_rows_of_an_earlier_run_are_found_in_any_generation(tmp_path: Path) -> None:
    has_rows: Callable[[Path], bool] = runpy.run_path(str(RUN))["has_rows"]
    place = tmp_path / "refined" / "traffic_by_minute"
    assert not has_rows(place)
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    lake = Lake(tmp_path)
    lake.create("refined.traffic_by_minute", schema)
    assert not has_rows(place)
    numbers(lake.create("refined.traffic_by_minute", schema, generation=2), 1)
    assert has_rows(place)


@pytest.mark.parametrize(
    ("assignments", "warnings"),
    [
        (["PROT=19092"], ["PROT has no effect here"]),
        (["PORT=19092", "HEADRACE_KILLS=3", "ARGS=--set num.partitions=3 A=b"], []),
    ],
)
def test_a_variable_that_no_target_uses_is_reported(
    assignments: list[str], warnings: list[str]
) -> None:
    environment = {name: value for name, value in os.environ.items() if name[:4] != "MAKE"}
    command = ["make", "--dry-run", "clean", *assignments]
    done = subprocess.run(
        command, cwd=RUN.parents[1], env=environment, capture_output=True, text=True, check=True
    )
    assert [line.partition(": ")[2] for line in done.stderr.splitlines()] == warnings


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["--set", "num.partitions=3"], None),
        (["--secure"], RUN.parents[1] / "headrace-data/security/client.properties"),
        (["--secure", "--data", "/d"], Path("/d/security/client.properties")),
    ],
)
def test_clients_of_a_secured_node_get_its_settings(
    arguments: list[str], file: Path | None
) -> None:
    assert runpy.run_path(str(RUN))["client_settings"](arguments) == file
