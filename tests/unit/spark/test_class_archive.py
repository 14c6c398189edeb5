"""Which archive of classes a JVM is told to use."""

import os
import shlex
from pathlib import Path

import pytest

from headrace.spark import class_archive
from headrace.spark.class_archive import NotArchived, archive_of, java_options, make_archive
from headrace.spark.home import own_home


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that does nothing but tell its version."""
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("""#!/bin/sh\necho 'openjdk version "17.0.1"' >&2\n""")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return program


@pytest.fixture
def home(tmp_path: Path, java: Path) -> Path:
    (tmp_path / "home" / "jars").mkdir(parents=True)
    return tmp_path / "home"


def test_without_an_archive_a_jvm_is_told_nothing(home: Path) -> None:
    assert java_options(home) == ""


def test_an_archive_that_is_there_is_used(home: Path) -> None:
    archive_of(home).touch()
    assert f"-XX:SharedArchiveFile={archive_of(home)}" in java_options(home).split()


def test_a_path_with_blanks_stays_one_option(home: Path) -> None:
    spaced = home.rename(home.with_name("my home"))
    archive_of(spaced).touch()
    assert f"-XX:SharedArchiveFile={archive_of(spaced)}" in shlex.split(java_options(spaced))


@pytest.mark.parametrize("changed", ["jdk/bin/java", "home/jars"])
def test_that_of_another_java_or_other_jars_is_not(
    home: Path, tmp_path: Path, changed: str
) -> None:
    archive_of(home).touch()
    os.utime(tmp_path / changed, (1, 1))
    assert java_options(home) == ""


def test_a_start_that_does_not_end_in_time_is_told(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(class_archive, "_MAKING_S_MAX", 0.001)
    with pytest.raises(NotArchived, match="did not end in 0 s; try again"):
        make_archive(again=False)


def test_what_a_killed_start_has_left_is_removed_by_the_next(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = own_home()
    assert home is not None
    left = home / "making" / "classes-of-a-killed-one.jsa"
    left.parent.mkdir()
    left.touch()

    def written(archive: Path, directory: Path) -> None:
        assert list(directory.iterdir()) == []
        archive.touch()

    monkeypatch.setattr(class_archive, "_run_for_classes", written)
    assert make_archive(again=False) == archive_of(home)
    assert not left.parent.exists()
