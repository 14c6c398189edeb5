"""When a view is computed by something else than before."""

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.pipelines.analysing.fingerprints import fingerprint
from headrace.pipelines.analysing.graph import consumers
from headrace.pipelines.analysing.reads import reads_of
from headrace.pipelines.model import MaterializedView, MergedView
from tests.builders.declared_pipelines import load_folder

SQL = """
CREATE STREAMING TABLE staging.o AS SELECT * FROM STREAM(sources.orders);
CREATE TEMPORARY VIEW some AS SELECT id FROM staging.o WHERE id > 1;
CREATE TEMPORARY VIEW few AS SELECT id FROM some WHERE id > 2;
CREATE MATERIALIZED VIEW refined.x (CONSTRAINT c EXPECT (id > 3)) AS SELECT id FROM few;
CREATE MERGED VIEW refined.m MERGE (n SUM) DEDUPLICATE BY (id) AS
  SELECT op, count(*) AS n FROM STREAM(staging.o) GROUP BY op;
"""
PYTHON = """
import helpers
from headrace import pipelines as dp
from headrace.pipelines import read
LEAST, WORDS = 1, {"a", "b", "c"}

def kept(frame, most=9):
    return frame.where(f"id >= {LEAST} AND id < {most}")

def outer(shift):
    def shifted(): return kept(read("staging.o")).select(f"id + {shift}")
    return shifted

@dp.materialized_view(name="refined.x")
def x():
    named = map(lambda word: word + "!", WORDS)
    return outer(4)().where(f"id != {helpers.WRONG}").withColumns(dict.fromkeys(named, 5))
"""
HELPERS = "WRONG = 6\n"


def described(folder: Path, files: dict[str, str], name: str = "refined.x", plan: str = "") -> str:
    pipeline = load_folder(folder, files)
    reads = {one.name: reads_of(one.query) for one in consumers(pipeline)}
    view = pipeline.datasets[name]
    assert isinstance(view, MaterializedView | MergedView)
    return fingerprint(view, pipeline, reads, plan)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("refined.x", "SELECT id FROM few", "SELECT id FROM few WHERE true"),
        ("refined.x", "WHERE id > 2", "WHERE id > 7"),
        ("refined.x", "WHERE id > 1", "WHERE id > 7"),
        ("refined.x", "EXPECT (id > 3)", "EXPECT (id > 7)"),
        ("refined.x", "EXPECT (id > 3)", "EXPECT (id > 3) ON VIOLATION DROP ROW"),
        ("refined.m", "BY (id)", "BY (id, op)"),
    ],
)
def test_a_change_of_anything_that_decides_on_the_rows_is_seen(
    tmp_path: Path, name: str, old: str, new: str
) -> None:
    before = described(tmp_path / "1", {"a.sql": SQL}, name)
    assert described(tmp_path / "2", {"a.sql": SQL.replace(old, new)}, name) != before


def test_a_change_elsewhere_does_not_change_a_view(tmp_path: Path) -> None:
    before = described(tmp_path / "1", {"a.sql": SQL}, "refined.m")
    assert (
        described(tmp_path / "2", {"a.sql": SQL.replace("id > 2", "id > 7")}, "refined.m") == before
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LEAST, WORDS = 1,", "LEAST, WORDS = 7,"),
        ('"b", ', ""),
        ("most=9", "most=7"),
        ("id + ", "id - "),
        ("outer(4)", "outer(7)"),
        ('word + "!"', 'word + "?"'),
        ("WRONG = 6", "WRONG = 7"),
    ],
)
def test_a_fingerprint_includes_names_that_a_function_uses(
    tmp_path: Path, old: str, new: str
) -> None:
    before = described(
        tmp_path / "1", {"a.sql": SQL_OF_INPUT, "b.py": PYTHON, "helpers.py": HELPERS}
    )
    sys.modules.pop("helpers", None)
    files = {"b.py": PYTHON.replace(old, new), "helpers.py": HELPERS.replace(old, new)}
    after = described(tmp_path / "2", {"a.sql": SQL_OF_INPUT, **files})
    sys.modules.pop("helpers", None)
    assert after != before


def test_a_fingerprint_includes_the_plan_of_spark(tmp_path: Path) -> None:
    """A function may take a value from its environment, which none of its names shows."""
    one = described(tmp_path / "1", {"a.sql": SQL}, plan="Filter (id > 1)")
    assert described(tmp_path / "2", {"a.sql": SQL}, plan="Filter (id > 2)") != one


SQL_OF_INPUT = SQL.splitlines()[1]
IN_A_PROCESS = """
from pathlib import Path
from tests.unit.pipelines.analysing import test_fingerprints as tests
files = {"a.sql": tests.SQL_OF_INPUT, "b.py": tests.PYTHON, "helpers.py": tests.HELPERS}
print(tests.described(Path(%r), files))
"""


def test_the_next_process_computes_the_same_fingerprint(tmp_path: Path) -> None:
    """Places in memory and the order of sets differ there."""
    texts = {
        subprocess.run(
            [sys.executable, "-c", IN_A_PROCESS % str(tmp_path / str(seed))],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(texts) == 1
