"""The archive of classes that a JVM uses."""

import os
import shlex
import time
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from headrace.spark.launching import class_archive
from headrace.spark.launching.class_archive import (
    NotArchived,
    archive_path,
    java_options,
    make_archive,
)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a Java, a PySpark and a cache."""
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch()
    (tmp_path / "pyspark" / "jars").mkdir(parents=True)
    spec = ModuleSpec("pyspark", None, origin=str(tmp_path / "pyspark" / "__init__.py"))
    monkeypatch.setattr(class_archive, "find_spec", lambda name: spec)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def written_archive() -> Path:
    path = archive_path()
    assert path is not None
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_without_an_archive_a_jvm_gets_no_options() -> None:
    assert java_options() == ""


def test_an_existing_archive_is_used() -> None:
    assert f"-XX:SharedArchiveFile={written_archive()}" in java_options().split()


def test_a_path_with_blanks_stays_one_option(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine / "my cache"))
    assert f"-XX:SharedArchiveFile={written_archive()}" in shlex.split(java_options())


@pytest.mark.parametrize("changed", ["jdk/bin/java", "pyspark/jars"])
def test_an_archive_of_another_java_or_other_jars_is_not_used(machine: Path, changed: str) -> None:
    written_archive()
    os.utime(machine / changed, (1, 1))
    assert java_options() == ""


def test_a_machine_without_java_gets_no_options(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(machine / "gone"))
    assert java_options() == ""


def test_a_run_that_does_not_end_in_time_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "_WRITING_S_MAX", 0.001)
    with pytest.raises(NotArchived, match="did not end in 0 s; try again"):
        make_archive(again=False)


def test_files_of_a_killed_run_are_removed_by_the_next(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = machine / "cache" / "headrace" / "making" / "classes-of-a-killed-one.jsa"
    left.parent.mkdir(parents=True)
    left.touch()

    def written(archive: Path, directory: Path) -> None:
        assert list(directory.iterdir()) == []
        archive.touch()

    monkeypatch.setattr(class_archive, "_write", written)
    assert make_archive(again=False) == archive_path()
    assert not left.parent.exists()


@pytest.fixture
def cache(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of archives; one is written without a run of Spark."""
    monkeypatch.setattr(class_archive, "_write", lambda archive, directory: archive.touch())
    folder = machine / "cache" / "headrace"
    folder.mkdir(parents=True)
    return folder


def add_archive(cache: Path, name: str, jars: Path | None = None, *, days_ago: float = 1.0) -> Path:
    archive = cache / f"classes-{name}.jsa"
    archive.touch()
    used_s = time.time() - days_ago * 86_400
    os.utime(archive, (used_s, used_s))
    if jars is not None:
        archive.with_suffix(".jars").symlink_to(jars)
    return archive


@pytest.mark.parametrize("again", [False, True])
def test_archives_of_other_environments_are_kept(machine: Path, cache: Path, again: bool) -> None:
    other = add_archive(cache, "other", machine / "pyspark" / "jars")
    earlier = add_archive(cache, "of-an-earlier-version")
    written = make_archive(again=again)
    assert set(cache.glob("*.jsa")) == {written, other, earlier}
    assert written.with_suffix(".jars").resolve() == machine / "pyspark" / "jars"


def test_archives_without_jars_and_unused_ones_are_removed(machine: Path, cache: Path) -> None:
    add_archive(cache, "without-jars", machine / "removed")
    add_archive(cache, "unused", machine / "pyspark" / "jars", days_ago=31)
    written = make_archive(again=False)
    assert set(cache.glob("classes-*")) == {written, written.with_suffix(".jars")}


def test_the_least_recently_used_archives_above_the_limit_are_removed(cache: Path) -> None:
    others = [add_archive(cache, str(days), days_ago=days) for days in range(1, 8)]
    written = make_archive(again=False)
    assert set(cache.glob("*.jsa")) == {written, *others[:4]}


def test_a_used_archive_has_the_time_of_its_use(cache: Path) -> None:
    written = make_archive(again=False)
    os.utime(written, (1, 1))
    assert java_options()
    assert time.time() - written.stat().st_mtime < 60
