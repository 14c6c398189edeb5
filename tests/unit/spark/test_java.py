"""The Java for Spark, and the errors if none fits."""

from pathlib import Path

import pytest

from headrace.spark.java import JavaMissing, find_java, version_in


def java_that_says(directory: Path, text: str) -> Path:
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    program.chmod(0o755)
    return directory


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("no Java here", None),
    ],
)
def test_the_version_is_read_as_all_javas_write_it(text: str, version: int | None) -> None:
    assert version_in(text) == version


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home = java_that_says(tmp_path / "home", 'openjdk version "21.0.1"')
    other = java_that_says(tmp_path / "other", 'openjdk version "17.0.1"')
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.path, found.version) == (home / "bin" / "java", 21)


def test_the_path_is_searched_without_java_home(tmp_path: Path) -> None:
    home = java_that_says(tmp_path, 'openjdk version "17.0.15"')
    assert find_java({"PATH": str(home / "bin")}).version == 17


def test_a_java_that_is_too_old_is_refused(tmp_path: Path) -> None:
    home = java_that_says(tmp_path, 'openjdk version "11.0.2"')
    with pytest.raises(JavaMissing, match="is Java 11 and Spark needs 17"):
        find_java({"JAVA_HOME": str(home)})


def test_missing_java_is_reported_with_the_package_to_install(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="openjdk-17-jre-headless"):
        find_java({"PATH": str(tmp_path)})
    with pytest.raises(JavaMissing, match="which has no bin/java"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_java_that_does_not_run_is_refused(tmp_path: Path) -> None:
    home = java_that_says(tmp_path, "hello")
    with pytest.raises(JavaMissing, match="does not report its version"):
        find_java({"JAVA_HOME": str(home)})
    (home / "bin" / "java").chmod(0o644)
    with pytest.raises(JavaMissing, match="does not run"):
        find_java({"JAVA_HOME": str(home)})
