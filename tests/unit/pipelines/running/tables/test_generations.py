"""Generations of a pipeline's tables: listed, and dropped when they do not count."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Catalog, Lake, MergedViewEntry
from headrace.pipelines.model import Architecture, Pipeline
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.state.folders import PipelineState
from headrace.pipelines.running.tables.architectures import begin
from headrace.pipelines.running.tables.generations import check_way_back, drop, listed, next_number
from tests.builders.declared_pipelines import load_folder
from tests.builders.lakes import numbers

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
TABLES = """
CREATE STREAMING TABLE raw.o AS SELECT id FROM STREAM(sources.orders);
CREATE STREAMING TABLE staging.o;
CREATE FLOW f AS INSERT INTO staging.o BY NAME SELECT id FROM STREAM(raw.o);
CREATE MERGED VIEW refined.n MERGE (n SUM) AS
    SELECT id, count(*) AS n FROM STREAM(raw.o) GROUP BY id;
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return load_folder(tmp_path, {"tables.sql": TABLES})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two tables, of which one was built twice and switched; raw was kept."""
    lake = Lake(tmp_path / "lake")
    numbers(lake.create("raw.o", SCHEMA, pipeline="shop"), 1, 2, 3)
    for generation in (1, 2):
        made = lake.create("staging.o", SCHEMA, pipeline="shop", generation=generation)
        numbers(made, *range(generation))
    lake.create("staging.others", SCHEMA, pipeline="bank", generation=2)
    lake.switch({"staging.o": 2})
    return lake


@pytest.fixture
def state(lake: Lake) -> PipelineState:
    state = PipelineState.of(lake.root, "shop")
    for flow, generation in (("raw.o", 1), ("f", 1), ("f", 2)):
        state.flow(flow, generation).writer()
    state.record_switch({"staging.o": 1})
    return state


def test_all_generations_are_listed_with_rows_and_size(lake: Lake, pipeline: Pipeline) -> None:
    found = [(one.table, one.generation, one.is_live, one.rows) for one in listed(lake, pipeline)]
    assert found == [
        ("raw.o", 1, True, 3),
        ("staging.o", 1, False, 1),
        ("staging.o", 2, True, 2),
    ]
    assert all(one.size_bytes > 0 for one in listed(lake, pipeline))


def test_an_old_generation_is_removed_with_its_checkpoints(
    lake: Lake, state: PipelineState, pipeline: Pipeline
) -> None:
    """Only the tables that are not in use are removed if raw has the same number."""
    place = lake.table("staging.o", 1).place
    size = next(one.size_bytes for one in listed(lake, pipeline) if not one.is_live)
    dropped = drop(lake, state, pipeline, 1)
    assert dropped.tables == ("staging.o",)
    assert dropped.freed_bytes > size
    assert not place.exists()
    assert lake.table("raw.o").rows().num_rows == 3
    known = [state.flow(*one).is_known for one in (("raw.o", 1), ("f", 1), ("f", 2))]
    assert known == [True, False, True]


def test_a_dropped_generation_ends_the_switch_back_and_keeps_its_number(
    lake: Lake, state: PipelineState, pipeline: Pipeline
) -> None:
    drop(lake, state, pipeline, 1)
    assert state.last_switch() == {}
    state.record_switch({"staging.o": 2})
    assert (state.last_switch(), state.newest_dropped()) == ({"staging.o": 2}, 1)


def test_switches_back_over_a_dropped_generation_are_removed_too(
    lake: Lake, state: PipelineState, pipeline: Pipeline
) -> None:
    """Replayed with raw kept, then as a whole: the first note fits the raw table of before only."""
    for name, number in (("raw.o", 3), ("staging.o", 3), ("raw.o", 4), ("staging.o", 4)):
        lake.create(name, SCHEMA, pipeline="shop", generation=number)
    lake.switch({"raw.o": 4, "staging.o": 4})
    state.record_switch({"raw.o": 1, "staging.o": 2})
    state.record_switch({"raw.o": 3, "staging.o": 3})
    drop(lake, state, pipeline, 2)
    assert state.last_switch() == {"raw.o": 3, "staging.o": 3}
    state.forget_switch()
    assert state.last_switch() == {}


def test_a_live_generation_is_never_dropped(
    lake: Lake, state: PipelineState, pipeline: Pipeline
) -> None:
    with pytest.raises(PipelineError, match="cannot be removed"):
        drop(lake, state, pipeline, 2)
    assert lake.table("staging.o").rows().num_rows == 2


def test_an_unknown_generation_is_reported(
    lake: Lake, state: PipelineState, pipeline: Pipeline
) -> None:
    with pytest.raises(PipelineError, match="no generation 7; there are: 1, 2"):
        drop(lake, state, pipeline, 7)


LAYERS = ("refined.n__batch", "refined.n__speed")


def layered(lake: Lake, generation: int) -> None:
    """A merged view as a run in lambda leaves it."""
    for name in LAYERS:
        lake.create(name, SCHEMA, pipeline="shop", generation=generation)
    view = MergedViewEntry("refined.n", ("id",), {"n": "sum"}, *LAYERS, "shop")
    lake.switch(dict.fromkeys(LAYERS, generation), views={"refined.n": view})


def live(lake: Lake, pipeline: Pipeline) -> list[str]:
    return [one.table for one in listed(lake, pipeline) if one.is_live]


@pytest.mark.parametrize("hidden", [("refined.n",), ("refined.n", *LAYERS)])
def test_layers_count_only_while_readers_see_them_and_can_be_dropped_then(
    lake: Lake, state: PipelineState, pipeline: Pipeline, hidden: tuple[str, ...]
) -> None:
    """Lakes of before have layers that count after a pipeline was turned to kappa."""
    layered(lake, 3)
    state.flow("refined.n__speed", 3).writer()
    assert live(lake, pipeline) == ["raw.o", *LAYERS, "staging.o"]
    with pytest.raises(PipelineError, match="cannot be removed"):
        drop(lake, state, pipeline, 3)
    lake.create("refined.n", SCHEMA, pipeline="shop", generation=4)
    lake.switch({"refined.n": 4}, hidden=hidden)
    assert live(lake, pipeline) == ["raw.o", "refined.n", "staging.o"]
    assert drop(lake, state, pipeline, 3).tables == LAYERS
    assert not {*LAYERS} & lake.catalog().tables.keys()
    assert not state.flow("refined.n__speed", 3).is_known


def test_a_former_table_of_a_merged_view_can_be_dropped(
    lake: Lake, state: PipelineState, pipeline: Pipeline
) -> None:
    lake.create("refined.n", SCHEMA, pipeline="shop")
    lake.switch({}, hidden=["refined.n"])
    layered(lake, 3)
    assert drop(lake, state, lambda_(pipeline), 1).tables == ("refined.n", "staging.o")
    assert "refined.n" not in lake.catalog().tables
    assert next_number(lake, state, "shop") == 4


def test_tables_of_another_architecture_are_dropped_only_when_unused(
    lake: Lake, state: PipelineState, pipeline: Pipeline
) -> None:
    lake.create("refined.n", SCHEMA, pipeline="shop")
    begin(lake, state, lambda_(pipeline), 3)
    for name in LAYERS:
        lake.create(name, SCHEMA, pipeline="shop", generation=3)
    with pytest.raises(PipelineError, match="__speed of generation 3 are built for a change"):
        drop(lake, state, lambda_(pipeline), 3)
    with state.held(), pytest.raises(PipelineError, match="stop the pipeline"):
        drop(lake, state, pipeline, 3)
    assert drop(lake, state, pipeline, 3).tables == LAYERS
    assert state.building() == {}


def test_generation_numbers_exceed_those_of_hidden_tables(lake: Lake, state: PipelineState) -> None:
    lake.create("refined.n", SCHEMA, pipeline="shop", generation=5)
    lake.create("refined.m", SCHEMA, pipeline="bank", generation=9)
    assert next_number(lake, state, "shop") == 6


def lambda_(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, settings=replace(pipeline.settings, architecture=Architecture.LAMBDA))


@pytest.mark.parametrize(
    ("chosen", "earlier"),
    [
        (Architecture.LAMBDA, {"staging.o": 1, "refined.n": 1}),
        (Architecture.KAPPA, {"staging.o": 1, "refined.n__batch": 1, "refined.n__speed": 1}),
    ],
)
def test_a_switch_back_to_another_architecture_is_refused(
    pipeline: Pipeline, chosen: Architecture, earlier: dict[str, int]
) -> None:
    turned = replace(pipeline, settings=replace(pipeline.settings, architecture=chosen))
    check_way_back(Catalog(), turned, {"staging.o": 1})
    with pytest.raises(PipelineError, match=r"refined\.n .*Change it back\. Run"):
        check_way_back(Catalog(), turned, earlier)


def test_no_switch_back_before_readers_see_the_chosen_architecture(
    pipeline: Pipeline,
) -> None:
    """The tables of before would stand beside a view of their name."""
    layered = MergedViewEntry("refined.n", ("id",), {}, "refined.n__batch", "refined.n__speed", "")
    with pytest.raises(PipelineError, match=r"readers do not see refined\.n .*Run the pipeline"):
        check_way_back(Catalog(views={"refined.n": layered}), pipeline, {"refined.n": 1})
