"""Spark's home without zipped modules."""

import os
from pathlib import Path

import pytest

from headrace.spark.home import compiled_modules

pytest.importorskip("pyspark")


@pytest.fixture(autouse=True)
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)


def test_a_jvm_finds_all_of_spark_but_the_zip_of_its_modules() -> None:
    with compiled_modules():
        home = Path(os.environ["SPARK_HOME"])
    assert (home / "bin" / "spark-submit").is_file()
    assert list((home / "jars").glob("spark-core_*.jar"))
    assert not (home / "python").exists()


def test_the_environment_is_afterwards_as_it_was() -> None:
    with compiled_modules():
        pass
    assert "SPARK_HOME" not in os.environ


def test_a_home_that_the_user_has_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    with compiled_modules():
        assert os.environ["SPARK_HOME"] == "/opt/spark"
