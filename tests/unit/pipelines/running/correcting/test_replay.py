"""The keys of compared tables, and pipelines that cannot be replayed."""

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.pipelines.model import Architecture, Pipeline
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.correcting.replay import (
    Sinks,
    check_architecture,
    check_kept,
    keys_of,
    rebuilt_tables,
)
from tests.builders.declared_pipelines import load_folder, turned

TABLES = """
CREATE STREAMING TABLE raw.o AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE trusted.newest KEYS (id) AS SELECT * FROM STREAM(raw.o);
CREATE STREAMING TABLE trusted.changed;
CREATE FLOW c AS AUTO CDC INTO trusted.changed FROM STREAM(raw.o) KEYS (id) SEQUENCE BY ts;
CREATE STREAMING TABLE trusted.versions;
CREATE FLOW v AS AUTO CDC INTO trusted.versions FROM STREAM(raw.o) KEYS (id) SEQUENCE BY ts
    STORED AS SCD TYPE 2;
CREATE MERGED VIEW refined.n MERGE (n SUM) AS
    SELECT id, op, count(*) AS n FROM STREAM(raw.o) GROUP BY id, op;
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return load_folder(tmp_path, {"tables.sql": TABLES})


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        ("raw.o", ()),
        ("quarantine.raw__o", ()),
        ("trusted.newest", ("id",)),
        ("trusted.changed", ("id",)),
        ("trusted.versions", ()),
        ("refined.n", ("id", "op")),
    ],
)
def test_rows_are_found_again_by_unique_columns(
    pipeline: Pipeline, table: str, keys: tuple[str, ...]
) -> None:
    assert keys_of(pipeline, table, ["id", "op", "n"]) == keys


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def keep_merged(lake: Lake, architecture: Architecture) -> None:
    """The catalog as a run in this architecture leaves it."""
    if architecture is Architecture.KAPPA:
        lake.create("refined.n", pa.schema([("id", pa.int64())]), pipeline="shop")
    else:
        layers = ("refined.n__batch", "refined.n__speed")
        entry = MergedViewEntry("refined.n", ("id", "op"), {"n": "sum"}, *layers, "shop")
        lake.put_view("refined.n", entry)


@pytest.mark.parametrize("kept", Architecture)
@pytest.mark.parametrize("chosen", Architecture)
def test_a_replay_waits_for_the_run_that_follows_a_change_of_architecture(
    lake: Lake, pipeline: Pipeline, kept: Architecture, chosen: Architecture
) -> None:
    """Readers do not see the tables yet that a replay would compare with and return to."""
    check_architecture(lake, turned(pipeline, chosen))
    keep_merged(lake, kept)
    if kept is chosen:
        check_architecture(lake, turned(pipeline, chosen))
        return
    with pytest.raises(PipelineError, match=r"refined\.n is not in .* run FOLDER --once"):
        check_architecture(lake, turned(pipeline, chosen))


TRUSTED = dict.fromkeys(("trusted.newest", "trusted.changed", "trusted.versions"), 2)
INPUTS = {
    "raw.o": {"sources.orders"},
    **{name: {"raw.o"} for name in TRUSTED},
    "refined.n": {"raw.o"},
}


@pytest.mark.parametrize(
    ("architecture", "stored"),
    [
        (Architecture.KAPPA, ("refined.n",)),
        (Architecture.LAMBDA, ("refined.n__batch", "refined.n__speed")),
    ],
)
def test_a_table_behind_a_rebuilt_input_cannot_be_kept(
    pipeline: Pipeline, architecture: Architecture, stored: tuple[str, ...]
) -> None:
    """Also a merged view, however its tables are called."""
    chosen = turned(pipeline, architecture)
    check_kept(chosen, INPUTS, {"raw.o": 2, **TRUSTED, **dict.fromkeys(stored, 2)})
    check_kept(chosen, INPUTS, {**TRUSTED, **dict.fromkeys(stored, 2)})
    with pytest.raises(PipelineError, match=r"trusted\.newest is kept, but reads raw\.o"):
        check_kept(chosen, INPUTS, {"raw.o": 2, **dict.fromkeys(stored, 2)})
    with pytest.raises(PipelineError, match=r"refined\.n is kept, but reads raw\.o"):
        check_kept(chosen, INPUTS, {"raw.o": 2, **TRUSTED})


@pytest.mark.parametrize(
    ("keep", "sinks", "anew"),
    [
        ((), None, ["raw.o", "trusted.o"]),
        ((), Sinks.FROM_NOW, ["raw.o", "trusted.o"]),
        ((), Sinks.AGAIN, ["raw.o", "trusted.o", "alerts"]),
        (("raw",), Sinks.AGAIN, ["trusted.o", "alerts"]),
    ],
)
def test_a_replay_rebuilds_all_but_kept_zones_and_sinks(
    tmp_path: Path, keep: tuple[str, ...], sinks: Sinks | None, anew: list[str]
) -> None:
    tables = """
    CREATE STREAMING TABLE raw.o AS SELECT * FROM STREAM(sources.orders);
    CREATE STREAMING TABLE trusted.o AS SELECT * FROM STREAM(raw.o);
    CREATE SINK alerts TOPIC 'alerts';
    CREATE FLOW sent AS INSERT INTO alerts BY NAME SELECT * FROM STREAM(trusted.o);
    """
    assert rebuilt_tables(load_folder(tmp_path, {"tables.sql": tables}), keep, sinks) == anew
