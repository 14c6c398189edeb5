"""What `make run` does about Java, on machines that have none."""

import os
import runpy
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest

RUN = Path(__file__).resolve().parents[2] / "tools" / "run.py"
APT = """#!/bin/sh
echo "$DEBIAN_FRONTEND" "$@" >> "{folder}/told"
[ "$1" = update ] || {move} "{folder}/package" "{folder}/installed"
"""
"""Stands for Debian's: tells what it was asked for, and brings what is in the package."""


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
    find: Callable[[], bool] = runpy.run_path(str(RUN))["find_java"]
    return find()


def test_who_may_install_java_gets_debians(machine: Path) -> None:
    add_apt(machine)
    assert find_java()
    assert (machine / "told").read_text().splitlines() == [
        "noninteractive update -qq",
        "noninteractive install -qq --no-install-recommends openjdk-17-jre-headless -y",
    ]


def test_what_was_installed_must_do_for_spark(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_apt(machine, java="11.0.2")
    assert not find_java()
    assert "is Java 11 and Spark needs 17" in capsys.readouterr().out


def test_who_may_not_install_java_is_told_what_to_install(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_apt(machine)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not find_java()
    assert "such as Debian's openjdk-17-jre-headless" in capsys.readouterr().out
    assert not (machine / "told").exists()


def test_a_machine_without_debians_tool_is_told_what_to_install(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not find_java()
    assert "such as Debian's openjdk-17-jre-headless" in capsys.readouterr().out
