"""`headrace tables` on what is out of the ordinary."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from headrace.cli.tables import command
from headrace.errors import HeadraceError
from headrace.lake.catalog import Lake, MergedViewEntry


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
def test_of_a_merged_view_the_tables_behind_it_are_named(
    tmp_path: Path, arguments: list[str]
) -> None:
    lake = Lake(tmp_path)
    view = MergedViewEntry("refined.counts", ("key",), {"n": "sum"}, "refined.b", "refined.s")
    lake.put_view(view.name, view)
    asked = [*arguments, view.name, "--lake", str(tmp_path)]
    with pytest.raises(HeadraceError, match=r"is a merged view, .* refined\.b and refined\.s"):
        CliRunner().invoke(command, asked, catch_exceptions=False)
