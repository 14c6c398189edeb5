"""The fixtures of the pytest plugin, as far as they need neither a broker nor Spark."""

import re
from pathlib import Path

import pytest

from headrace.runtime.installation import pip_command
from headrace.testing import plugin


def test_a_fixture_without_spark_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "find_spec", lambda name: None)
    with pytest.raises(pytest.fail.Exception, match=re.escape(pip_command("spark"))):
        plugin._require_spark()


def test_a_fixture_without_java_names_a_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plugin, "find_spec", lambda name: name)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match="openjdk-17-jre-headless") as failure:
        plugin._require_spark()
    assert failure.value.__context__ is None
