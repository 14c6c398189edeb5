"""A folder as a whole: the files that are read, and the reports of their mistakes."""

import sys
from pathlib import Path

import pytest

from headrace.pipelines.problems import PipelineError
from headrace.pipelines.project import load
from tests.builders.declared_pipelines import SETTINGS, load_folder, problems_of, told, write_folder

TABLE = (
    "from headrace import pipelines as dp\n"
    "@dp.table(name='raw.{0}')\n"
    "def {0}(): return dp.read_stream('sources.orders')\n"
)
VIEW = "CREATE TEMPORARY VIEW {0} AS SELECT 1 AS one;"


def test_sql_and_python_of_all_folders_are_one_pipeline(tmp_path: Path) -> None:
    pipeline = load_folder(
        tmp_path, {"b.sql": VIEW.format("b"), "more/a.py": TABLE.format("a"), "c.txt": "no"}
    )
    assert list(pipeline.datasets) == ["b", "raw.a"]
    assert pipeline.datasets["raw.a"].location.file == "more/a.py"


@pytest.mark.parametrize(
    "name", ["tests/x.sql", "test_x.py", "conftest.py", "_x.py", ".hidden/x.sql", "lake/x.sql"]
)
def test_some_files_declare_nothing(tmp_path: Path, name: str) -> None:
    pipeline = load_folder(tmp_path, {"a.sql": VIEW.format("a"), name: "this is nothing"})
    assert list(pipeline.datasets) == ["a"]


def test_libraries_choose_the_files(tmp_path: Path) -> None:
    settings = '[pipeline]\nname = "x"\nlibraries = ["sql/*.sql"]'
    files = {"sql/a.sql": VIEW.format("a"), "b.sql": VIEW.format("b")}
    assert list(load_folder(tmp_path, files, settings).datasets) == ["a"]


@pytest.mark.parametrize("pattern", ["sql/*.txt", "/a.sql", "b.sql/**", "", "["])
def test_a_pattern_without_files_is_reported(tmp_path: Path, pattern: str) -> None:
    settings = f'[pipeline]\nname = "x"\nlibraries = ["*.sql", "{pattern}"]'
    (problem,) = told(problems_of(tmp_path, {"a.sql": VIEW.format("a")}, settings))
    assert problem.startswith(f"pipeline.toml:3: no file matches {pattern};")


def test_files_may_import_their_neighbours_and_leave_no_trace(tmp_path: Path) -> None:
    pipeline = load_folder(
        tmp_path,
        {
            "_shared.py": "NAME = 'raw.a'",
            "a.py": "from headrace import pipelines as dp\nimport _shared\n"
            "from dataclasses import dataclass\n"
            "@dataclass\nclass Thing:\n    name: 'str'\n"
            "@dp.table(name=_shared.NAME)\ndef a(): return dp.read_stream('sources.orders')\n",
        },
    )
    assert list(pipeline.datasets) == ["raw.a"]
    assert not {"_shared", "a", "headrace_pipeline.a"} & sys.modules.keys()
    assert pipeline.directory not in sys.path


def test_a_file_that_another_imports_counts_once(tmp_path: Path) -> None:
    files = {"a.py": "import b\n" + TABLE.format("a"), "b.py": TABLE.format("b")}
    assert sorted(load_folder(tmp_path, files).datasets) == ["raw.a", "raw.b"]


def test_two_pipelines_may_have_neighbours_of_one_name(tmp_path: Path) -> None:
    files = {"a.py": "import _n\n" + TABLE.format("a").replace("'raw.a'", "_n.NAME")}
    one = load_folder(tmp_path / "1", {**files, "_n.py": "NAME = 'raw.one'"})
    two = load_folder(tmp_path / "2", {**files, "_n.py": "NAME = 'raw.two'"})
    assert [*one.datasets, *two.datasets] == ["raw.one", "raw.two"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\ny = 1 / 0", "a.py:2: ZeroDivisionError: division by zero"),
        ("def f(:\n  pass", "a.py:1: SyntaxError: "),
        ("import _broken", "_broken.py:2: KeyError: 'x'"),
        ("import nowhere_to_be_found", "a.py:1: ModuleNotFoundError: No module named 'nowhere"),
        ("raise SystemExit(3)", "a.py:1: SystemExit: 3"),
        ("from headrace import pipelines as dp\ndp.not_null()", "a.py:2: not_null needs the name"),
    ],
)
def test_a_file_that_raises_is_reported_with_its_line(
    tmp_path: Path, code: str, message: str
) -> None:
    problems = problems_of(tmp_path, {"a.py": code, "_broken.py": "\n{}['x']"})
    assert told(problems)[0].startswith(message)


def test_mistakes_of_all_files_are_reported_together(tmp_path: Path) -> None:
    """A user can fix all of them at once, by file and line."""
    problems = problems_of(
        tmp_path,
        {
            "b.sql": "CREATE X;\n" + VIEW.format("sources.x"),
            "a.py": "1 / 0",
            "c.py": TABLE.format("c").replace("raw", "rwa"),
        },
        SETTINGS + "\n[source.x]",
    )
    assert [str(one.location) for one in problems] == [
        "a.py:1",
        "b.sql:1",
        "b.sql:2",
        "c.py:2",
        "pipeline.toml:9",
    ]


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {})
    (folder / "a.sql").write_bytes(b"\xff\xfe")
    with pytest.raises(PipelineError, match=r"a\.sql:1: the file is not in UTF-8"):
        load(folder, {})


def test_a_folder_that_declares_nothing_is_no_pipeline(tmp_path: Path) -> None:
    assert "declares anything" in told(problems_of(tmp_path, {}))[0]


def test_reading_a_pipeline_does_not_need_spark(tmp_path: Path) -> None:
    import subprocess

    folder = write_folder(tmp_path, {"a.py": TABLE.format("a"), "b.sql": VIEW.format("b")})
    program = (
        "import sys; from headrace.pipelines import load;"
        f"load({str(folder)!r}); sys.exit('pyspark' in sys.modules or 'pyarrow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_udf_that_needs_a_session_is_reported_with_advice(tmp_path: Path) -> None:
    """In a process of its own, as one with a session would not complain."""
    import subprocess

    text = "from pyspark.sql.functions import udf\n\nmade = udf(str, 'string')\n"
    folder = write_folder(tmp_path, {"a.py": text + TABLE.format("a")})
    program = f"from headrace.pipelines import load; load({str(folder)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "a.py:3: " in done.stderr
    assert "inside the function of a query" in done.stderr


@pytest.mark.parametrize(
    ("master", "kind"), [("sc://127.0.0.1", "pyspark.sql.connect.udf"), (None, "pyspark.sql.udf")]
)
def test_udfs_of_files_are_of_the_spark_that_will_run_them(
    tmp_path: Path, master: str | None, kind: str
) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpc")
    text = (
        "from pyspark.sql.functions import udf\n"
        "from pyspark.sql.types import StringType\n"
        "made = udf(lambda name: name, StringType())\n"
        f"assert type(made._unwrapped).__module__ == {kind!r}\n"
    )
    folder = write_folder(tmp_path, {"a.py": text + TABLE.format("a")})
    assert list(load(folder, {}, master=master).datasets) == ["raw.a"]


def test_missing_spark_is_not_reported_as_a_fault_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is passed on: the command line has the advice to install Spark."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ModuleNotFoundError, match="pyspark"):
        load_folder(tmp_path, {"a.py": "import pyspark\n"})
    (problem,) = problems_of(tmp_path, {"a.py": "import no_such_module\n"})
    assert str(problem).startswith("a.py:1: ")
