"""The history of a table's versions, as read from its log."""

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.lineage import Lineage
from headrace.lake.rewriting import optimize
from headrace.lake.tables import Table
from tests.builders.lakes import appended, numbers


@pytest.fixture
def table(tmp_path: Path) -> Table:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    return Lake(tmp_path / "lake").create("raw.orders", schema)


def test_the_newest_lineage_is_found_behind_commits_without_one(table: Table) -> None:
    lineage = Lineage(pipeline="shop", pipeline_version="2", flow="orders", inputs={"a.b": (1, 4)})
    appended(table, [{"id": 1, "name": "a"}], None, lineage)
    numbers(table, 2)
    assert table.history.lineage() == lineage
    assert table.history.lineage(2) is None
    assert [commit.operation for commit in table.history.commits()] == [
        "append",
        "append",
        "CREATE TABLE",
    ]
    assert [commit.version for commit in table.history.commits(1)] == [2]


def test_versions_that_only_rewrite_files_have_the_rows_of_the_one_before(table: Table) -> None:
    numbers(table, 1)
    rows = numbers(table, 2)
    optimize(table)
    assert table.history.latest_with_same_rows(rows) == table.version == rows + 1
    more = numbers(table, 3)
    assert (
        table.history.latest_with_same_rows(rows),
        table.history.latest_with_same_rows(rows - 1),
    ) == (more - 1, rows - 1)
