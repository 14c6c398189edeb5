"""`headrace tables` on what is out of the ordinary."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from headrace.cli.tables import command, whole_hours
from headrace.errors import HeadraceError
from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.pipelines.running.state.folders import PipelineState
from headrace.spark.tables.plans import Position
from tests.builders.checkpoints import flow_at
from tests.builders.lakes import numbers


@pytest.mark.parametrize("arguments", [["show", "raw.far"], ["diff", "raw.far", "0", "1"]])
def test_times_beyond_python_s_years_are_shown(tmp_path: Path, arguments: list[str]) -> None:
    table = Lake(tmp_path).create("raw.far", pa.schema([("at", pa.timestamp("us", "UTC"))]))
    with table.writer() as writer:
        far = pa.array([1_772_366_400_000 * 1_000_000], table.schema.field("at").type)
        writer.write(pa.table({"at": far}))
        table.append(writer.close())
    asked = [*arguments, "--lake", str(tmp_path)]
    for one in (asked, [*asked, "--json"]):
        done = CliRunner().invoke(command, one, catch_exceptions=False)
        assert done.exit_code == 0
        assert "+58134-01-21T00:00:00Z" in done.output
    json.loads(done.output)


@pytest.mark.parametrize(
    "arguments", [["schema"], ["history"], ["files"], ["optimize"], ["vacuum"], ["lineage"]]
)
def test_a_merged_view_is_rejected_with_the_names_of_its_tables(
    tmp_path: Path, arguments: list[str]
) -> None:
    lake = Lake(tmp_path)
    view = MergedViewEntry("refined.counts", ("key",), {"n": "sum"}, "refined.b", "refined.s")
    lake.put_view(view.name, view)
    asked = [*arguments, view.name, "--lake", str(tmp_path)]
    with pytest.raises(HeadraceError, match=r"is a merged view, .* refined\.b and refined\.s"):
        CliRunner().invoke(command, asked, catch_exceptions=False)


def test_optimize_joins_files_only_as_far_as_flows_have_read(tmp_path: Path) -> None:
    table = Lake(tmp_path).create(
        "raw.orders", pa.schema([("id", pa.int64()), ("name", pa.string())])
    )
    for number in range(6):
        numbers(table, number)
    folder = PipelineState.of(tmp_path, "shop").flow("staging.orders", 1).directory
    flow_at(folder, Position("raw.orders", table.table_id, 4))
    asked = ["optimize", "raw.orders", "--lake", str(tmp_path)]
    done = CliRunner().invoke(command, asked, catch_exceptions=False)
    assert "raw.orders: 4 files of" in done.output
    assert "files after version 4 are kept for shop/flows/staging.orders/g1" in done.output
    flow_at(folder, Position("raw.orders", table.table_id, 6))
    done = CliRunner().invoke(command, asked, catch_exceptions=False)
    assert "left to" not in done.output
    assert len(table.files()) == 1


@pytest.mark.parametrize(("minutes", "hours"), [(5, 0), (59, 0), (60, 1), (90, 2), (120, 2)])
def test_files_are_kept_for_whole_hours(minutes: int, hours: int) -> None:
    """Less than asked for would take files away that were to stay."""
    assert whole_hours(minutes * 60_000) == hours


def test_a_folder_around_a_lake_is_reported_with_the_lake_in_it(tmp_path: Path) -> None:
    asked = ["show", "raw.orders", "--lake", str(tmp_path)]
    with pytest.raises(HeadraceError, match=r"no lake at .*; run a pipeline first"):
        CliRunner().invoke(command, asked, catch_exceptions=False)
    Lake(tmp_path / "lake").create("raw.orders", pa.schema([("id", pa.int64())]))
    with pytest.raises(HeadraceError, match=rf"did you mean {tmp_path / 'lake'}\?"):
        CliRunner().invoke(command, asked, catch_exceptions=False)
