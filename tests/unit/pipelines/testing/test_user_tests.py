"""Running the tests of a pipeline's folder."""

from pathlib import Path

import pytest

from headrace.pipelines.problems import PipelineError
from headrace.pipelines.testing.pipeline_test import (
    Unsecret,
    check_runnable,
    empty_inputs,
    folder_of,
)
from headrace.pipelines.testing.user_tests import run_tests
from tests.builders.declared_pipelines import load_folder, write_folder


@pytest.mark.parametrize(("test", "code"), [("assert True", 0), ("assert False", 1)])
def test_the_outcome_is_pytests(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], test: str, code: int
) -> None:
    folder = write_folder(tmp_path, {"tests/test_a.py": f"def test_a(): {test}"})
    assert run_tests(folder, ["-q"]) == code
    assert f"1 {'failed' if code else 'passed'}" in capfd.readouterr().out


def test_settings_of_a_project_around_the_folder_do_not_count(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They may require missing plugins; the folder's own settings count."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-config\nunknown = 1\n")
    folder = write_folder(tmp_path, {"tests/test_a.py": "def test_a(): pass"})
    assert run_tests(folder, ["-q"]) == 0
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --collect-only\n")
    assert run_tests(folder, ["-q"]) == 0
    assert "1 test collected" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pyproject.toml", '[project]\nname = "shop"\n'),
        ("setup.cfg", "[metadata]\nname = shop\n"),
        ("tox.ini", "[tox]\n"),
    ],
)
def test_files_of_other_tools_are_no_settings_of_pytest(
    tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --unknown\n")
    folder = write_folder(tmp_path, {"tests/test_a.py": "def test_a(): pass", name: content})
    assert run_tests(folder, ["-q"]) == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\naddopts = "--collect-only"\n'),
        ("setup.cfg", "[tool:pytest]\naddopts = --collect-only\n"),
        ("tox.ini", "[pytest]\naddopts = --collect-only\n"),
        ("pytest.toml", '[pytest]\naddopts = ["--collect-only"]\n'),
    ],
)
def test_settings_of_the_folder_count_wherever_they_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, content: str
) -> None:
    folder = write_folder(tmp_path, {"tests/test_a.py": "def test_a(): pass", name: content})
    assert run_tests(folder, ["-q"]) == 0
    assert "1 test collected" in capfd.readouterr().out


def test_a_conftest_around_the_folder_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("raise ValueError('another project')")
    conftest = "import pytest\n@pytest.fixture\ndef own(): return 1\n"
    test = "def test_a(own): assert own == 1"
    folder = write_folder(tmp_path, {"conftest.py": conftest, "tests/test_a.py": test})
    assert run_tests(folder, ["-q"]) == 0


def test_a_run_without_java_ends_with_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    tests = "def test_a(headrace_pipeline): pass\ndef test_b(headrace_pipeline): pass\n"
    folder = write_folder(tmp_path, {"tests/test_a.py": tests + "def test_c(): pass\n"})
    assert run_tests(folder, ["-q"]) != 0
    shown = "".join(capfd.readouterr())
    assert shown.count("install one, such as Debian's openjdk-17-jre-headless") == 1
    assert "Traceback" not in shown
    assert run_tests(folder, ["-q", "-k", "test_c"]) == 0


def test_the_output_names_no_settings_where_the_folder_has_none(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path, {"tests/test_a.py": "def test_a(): pass"})
    run_tests(folder)
    assert "configfile" not in capfd.readouterr().out


def test_a_folder_without_tests_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no folder tests"):
        run_tests(write_folder(tmp_path, {}))


def test_a_test_belongs_to_the_nearest_pipeline_above(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {"tests/deep/test_a.py": ""})
    assert folder_of(folder / "tests" / "deep" / "test_a.py") == folder
    with pytest.raises(PipelineError, match="no folder above"):
        folder_of(tmp_path / "test_a.py")


def test_tests_run_without_secrets() -> None:
    environment = Unsecret({"A": "1"})
    assert environment.get("A") == "1"
    assert environment.get("B", "2") == "2"
    assert environment.get("PASSWORD") == "not-set-in-tests"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sources.orders", r"sources\.orders is a source; run a dataset that reads it"),
        ("seen", "seen is not stored; run a dataset that reads it"),
        ("raw.oders", r"there is no raw\.oders to run; did you mean raw\.orders"),
        ("raw.readings", r"there is no raw\.readings to run; did you mean raw\.orders"),
        ("unread", "there is no unread to run; declare it, or run one of: sources"),
        (["raw.orders"], "one by one"),
    ],
)
def test_a_dataset_without_input_cannot_be_run(tmp_path: Path, name: object, told: str) -> None:
    tables = """
    CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);
    CREATE TEMPORARY VIEW seen AS SELECT * FROM STREAM(raw.orders);
    """
    pipeline = load_folder(tmp_path, {"a.sql": tables})
    check_runnable(pipeline, "raw.orders")
    with pytest.raises(PipelineError, match=told):
        check_runnable(pipeline, name)


def test_a_dataset_whose_inputs_are_all_empty_is_named() -> None:
    notice = empty_inputs("staging.x", {"raw.x"}, {"sources.orders"})
    assert notice is not None
    assert notice.startswith("staging.x reads raw.x, which has no rows in this test")
    assert empty_inputs("staging.x", {"raw.x", "raw.y"}, {"raw.y"}) is None
