"""The options of a reader: a table, or a merged view of two layers."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.spark.tables.source import TableOptions

SCHEMA = pa.schema([("id", pa.int64())])
SHOWN = MergedViewEntry("refined.n", ("id",), {"n": "sum"}, "refined.n__batch", "refined.n__speed")
OTHER = MergedViewEntry("refined.n", ("id",), {"n": "max"}, "refined.n__batch", "refined.n__speed")


@pytest.mark.parametrize(
    ("options", "view"),
    [
        pytest.param({}, SHOWN, id="as readers see it"),
        pytest.param({"generation": "2"}, SHOWN, id="of layers of this number"),
        pytest.param({"generation": "4"}, None, id="of the table that it moves to"),
        pytest.param({"view": msgspec.json.encode(OTHER).decode()}, OTHER, id="as it is given"),
    ],
)
def test_a_view_that_becomes_a_table_is_read_as_requested(
    tmp_path: Path, options: dict[str, str], view: MergedViewEntry | None
) -> None:
    """ARC-1, ARC-2: the run that moves it reads the new table, all others still both layers."""
    lake = Lake(tmp_path)
    lake.put_view("refined.n", SHOWN)
    lake.create("refined.n", SCHEMA, generation=4)
    chosen = TableOptions.of({"root": str(tmp_path), "table": "refined.n", **options})
    assert chosen.merged_view() == view
