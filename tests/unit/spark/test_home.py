"""Spark's home without zipped modules."""

import os
from pathlib import Path

import pytest

from headrace.spark.home import compiled_modules, linked_home, own_home, pyspark_zips

pytest.importorskip("pyspark")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_jvm_finds_all_of_spark_but_the_zip_of_its_modules() -> None:
    with compiled_modules():
        home = Path(os.environ["SPARK_HOME"])
    assert (home / "bin" / "spark-submit").is_file()
    assert list((home / "jars").glob("spark-core_*.jar"))
    assert not (home / "python").exists()


def test_a_python_without_pyspark_can_be_given_what_the_home_lacks() -> None:
    names = [path.name for path in pyspark_zips()]
    assert "pyspark.zip" in names
    assert any(name.startswith("py4j-") for name in names)


def test_the_environment_is_afterwards_as_it_was() -> None:
    with compiled_modules():
        pass
    assert "SPARK_HOME" not in os.environ


def test_a_home_that_the_user_has_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    with compiled_modules():
        assert os.environ["SPARK_HOME"] == "/opt/spark"


def test_the_home_is_at_the_same_place_each_time() -> None:
    assert own_home() == own_home()


def test_what_was_installed_anew_is_linked_anew(tmp_path: Path) -> None:
    installed = tmp_path / "pyspark"
    (installed / "jars").mkdir(parents=True)
    jars = linked_home(installed) / "jars"
    jars.unlink()
    jars.symlink_to(tmp_path / "gone")
    linked_home(installed)
    assert jars.samefile(installed / "jars")


def test_spark_keeps_its_own_home_where_there_is_no_cache(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.write_text("not a directory")
    with compiled_modules() as home:
        assert home is None
        assert "SPARK_HOME" not in os.environ
    assert "set XDG_CACHE_HOME" in caplog.text
