"""`headrace spark`, as far as it needs neither Spark nor Maven."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.spark import command
from headrace.spark.jars import JARS, jar_of


def test_jars_prints_the_setting_for_existing_jars(tmp_path: Path) -> None:
    for artifact in JARS:
        jar_of(tmp_path, artifact).touch()
    done = CliRunner().invoke(command, ["jars", str(tmp_path)])
    paths = ",".join(str(jar_of(tmp_path, artifact)) for artifact in JARS)
    assert done.output == f"spark.jars={paths}\n"


def test_doctor_fails_where_java_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(command, ["doctor"])
    assert done.exit_code == 1
    assert "FAIL  Spark needs a Java runtime" in done.output
    assert "ok    pyspark" in done.output
