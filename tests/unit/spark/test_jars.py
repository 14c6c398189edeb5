"""Fetching jars, and the errors if that fails."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.spark import jars
from headrace.spark.jars import JARS, JarsMissing, fetch_jars, jar_of, jars_in


class Maven:
    """Copies empty jars, or fails as configured."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure
        self.commands: list[Sequence[str]] = []

    def __call__(self, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        self.commands.append(command)
        named = dict(part[2:].split("=", 1) for part in command if part.startswith("-D"))
        if not self.failure:
            jar_of(Path(named["outputDirectory"]), named["artifact"].removesuffix(":jar")).touch()
        return subprocess.CompletedProcess(command, int(bool(self.failure)), self.failure, "")


@pytest.fixture(autouse=True)
def _has_maven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "which", lambda _: "mvn")


def test_every_jar_is_fetched_by_its_name(tmp_path: Path) -> None:
    found = fetch_jars(tmp_path / "jars", lambda _: None, Maven())
    assert [jar.name for jar in found] == [
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.1.0-preview1.jar",
        "kafka-clients-3.9.2.jar",
        "commons-pool2-2.13.1.jar",
        "spark-avro_2.13-4.1.1.jar",
    ]


def test_existing_jars_are_not_fetched_again(tmp_path: Path) -> None:
    fetch_jars(tmp_path, lambda _: None, Maven())
    jar_of(tmp_path, JARS[2]).unlink()
    maven = Maven()
    fetch_jars(tmp_path, lambda _: None, maven)
    assert len(maven.commands) == 1


def test_the_error_of_maven_is_reported(tmp_path: Path) -> None:
    maven = Maven(failure="[INFO] hm\n[ERROR] Could not resolve host\n[ERROR] more")
    with pytest.raises(JarsMissing, match=r"4\.2\.0: Could not resolve host"):
        fetch_jars(tmp_path, lambda _: None, maven)


def test_missing_maven_is_reported_with_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "which", lambda _: None)
    with pytest.raises(JarsMissing, match="Debian's package is maven"):
        fetch_jars(tmp_path, lambda _: None, Maven())


def test_jars_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(JarsMissing, match=r"has no spark-sql-kafka.*headrace spark jars"):
        jars_in(tmp_path)
