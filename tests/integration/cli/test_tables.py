"""`headrace tables`: what a person and a program see of a lake."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.lake.tables import Table
from tests.builders.lakes import appended, numbers, written
from tests.integration.cli.commands import Done, run

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    lake = Lake(tmp_path / "lake")
    monkeypatch.setenv("HEADRACE_LAKE", str(lake.root))
    return lake


@pytest.fixture
def table(lake: Lake) -> Table:
    table = lake.create("raw.orders", SCHEMA, pipeline="shop")
    lineage = Lineage(
        pipeline="shop",
        pipeline_version="3",
        pipeline_fingerprint="1f2e3d4c5b6a",
        flow="orders",
        offsets={"orders": {"0": (0, 2), "10": (0, 1), "2": (4, 5)}},
    )
    rows = [{"id": 1, "name": "ant"}, {"id": 2, "name": "bee"}]
    appended(table, rows, Token("shop.orders", 0), lineage)
    return table


def tables(*arguments: str) -> Done:
    return run("127.0.0.1:1", "tables", *arguments)


def ok(*arguments: str) -> Done:
    done = tables(*arguments)
    assert done.code == 0, done.err
    return done


def test_tables_and_views_are_listed(lake: Lake, table: Table) -> None:
    """ARC-4"""
    lake.put_view(
        "refined.words", MergedViewEntry("refined.words", ("w",), {"n": "sum"}, "a.b", "a.c")
    )
    listed = ok("list", "--json").document
    assert [(one["name"], one["rows"], one["version"]) for one in listed["tables"]] == [
        ("raw.orders", 2, 1)
    ]
    assert [one["name"] for one in listed["views"]] == ["refined.words"]
    shown = ok("list").out
    assert "raw.orders" in shown
    assert "refined.words" in shown


def test_a_table_that_is_gone_does_not_hide_the_others(lake: Lake, table: Table) -> None:
    shutil.rmtree(lake.create("raw.lost", SCHEMA).place)
    done = tables("list", "--json")
    assert (done.code, [one["name"] for one in done.document["tables"]]) == (1, ["raw.orders"])
    assert "raw.lost: there is no Delta table at" in done.err


def test_rows_are_shown_to_people_and_programs(table: Table) -> None:
    shown = ok("show", "raw.orders").out
    assert "ant" in shown
    assert "2 of 2 rows at version 1" in shown
    document = ok("show", "raw.orders", "--where", "id > 1", "--columns", "name", "--json").document
    assert document == [{"name": "bee"}]
    ordered = ok("show", "raw.orders", "--order", "id DESC", "--limit", "1", "--json").document
    assert ordered == [{"id": 2, "name": "bee"}]


def test_old_versions_are_shown(table: Table) -> None:
    numbers(table, 3)
    assert len(ok("show", "raw.orders", "--version", "1", "--json").document) == 2
    refused = tables("show", "raw.orders", "--version", "9")
    assert (refused.code, refused.err) == (
        1,
        "headrace: raw.orders has no version 9; its newest is 2\n",
    )


def test_a_merged_view_is_shown_as_one_table(lake: Lake) -> None:
    """ARC-1: the serving layer merges batch and speed."""
    columns = [("word", pa.string()), ("n", pa.int64())]
    batch = lake.create("refined.words__batch", pa.schema(columns))
    speed = lake.create(
        "refined.words__speed", pa.schema([*columns, ("_commit_version", pa.int64())])
    )
    lake.put_view(
        "refined.words",
        MergedViewEntry("refined.words", ("word",), {"n": "sum"}, batch.name, speed.name),
    )
    appended(speed, [{"word": "a", "n": 1, "_commit_version": v} for v in (1, 2, 3)])
    files = written(batch, [{"word": "a", "n": 20}])
    batch.replace(files, Token("batch", 0), Lineage(inputs={"raw.text": (-1, 2)}))
    assert ok("show", "refined.words", "--json").document == [{"word": "a", "n": 21}]
    assert "batch and speed layer merged" in ok("show", "refined.words", "--where", "n > 1").out
    assert "use one of these" in tables("history", "refined.words").err


def test_history_lists_batches_and_rows(table: Table) -> None:
    numbers(table, 3, 4, 5)
    history = ok("history", "raw.orders", "--json").document
    assert [(one["version"], one["operation"], one["rows_added"]) for one in history] == [
        (2, "append", 3),
        (1, "append", 2),
        (0, "CREATE TABLE", 0),
    ]
    assert history[1]["tokens"] == [{"writer": "shop.orders", "batch": 0}]
    assert "shop.orders 0" in ok("history", "raw.orders", "--limit", "2").out


def test_history_and_lineage_name_the_pipeline_version_of_a_commit(table: Table) -> None:
    """ARC-4: lineage names the pipeline's version; older releases did not write it down."""
    appended(table, [{"id": 3}], Token("shop.orders", 1), Lineage(pipeline="shop"))
    after, first = ok("history", "raw.orders", "--limit", "2").out.splitlines()[-2:]
    assert first.split()[-3:] == ["shop", "3", "1f2e3d4c5b6a"]
    assert after.split()[-2:] == ["shop", "-"]
    newest, before = ok("history", "raw.orders", "--limit", "2", "--json").document
    assert before["lineage"]["pipeline_fingerprint"] == "1f2e3d4c5b6a"
    assert "pipeline_fingerprint" not in newest["lineage"]
    lines = ok("lineage", "raw.orders", "--version", "1").out.splitlines()
    assert lines[:2] == ["pipeline     shop 3", "fingerprint  1f2e3d4c5b6a"]


def test_lineage_lists_offsets_in_the_order_of_partitions(table: Table) -> None:
    document = ok("lineage", "raw.orders", "--json").document
    assert document["offsets"]["orders"]["2"] == [4, 5]
    lines = ok("lineage", "raw.orders").out.splitlines()
    assert lines[2] == "flow         orders"
    assert [line.split()[1] for line in lines if line.startswith("orders")] == ["0", "2", "10"]
    assert "has no lineage for" in tables("lineage", "raw.orders", "--version", "0").err


def test_the_schema_is_shown_with_partitions(lake: Lake) -> None:
    lake.create("raw.parted", SCHEMA, partition_by=["name"])
    fields = ok("schema", "raw.parted", "--json").document
    assert [(one["name"], one["type"], one["is_partition"]) for one in fields] == [
        ("id", "long", False),
        ("name", "string", True),
    ]
    assert "partition" in ok("schema", "raw.parted").out


def test_two_versions_are_compared(table: Table) -> None:
    table.upsert(pa.table({"id": [2], "name": ["wasp"]}, schema=SCHEMA), ["id"])
    document = ok("diff", "raw.orders", "1", "2", "--json").document
    assert document["removed"] == [{"id": 2, "name": "bee"}]
    assert document["added"] == [{"id": 2, "name": "wasp"}]
    assert (
        "1 row added, 1 row removed from version 1 to 2" in ok("diff", "raw.orders", "1", "2").out
    )


def test_files_are_listed_joined_and_removed(table: Table) -> None:
    numbers(table, 3)
    numbers(table, 4)
    files = ok("files", "raw.orders", "--json").document
    assert sorted((one["rows"], one["version"]) for one in files) == [(1, 2), (1, 3), (2, 1)]
    assert all(Path(one["path"]).exists() for one in files)
    assert "2 files of" in ok("optimize", "raw.orders").out
    assert ok("optimize", "raw.orders").out == "raw.orders: nothing to join\n"
    assert ok("vacuum", "raw.orders", "--dry-run").out == "0 files would be removed\n"
    assert json.loads(ok("vacuum", "raw.orders", "--retain", "7d", "--json").out)["files"] == []
    assert "an hour" in tables("vacuum", "raw.orders", "--retain", "5m").err


def test_an_old_version_is_restored(table: Table) -> None:
    numbers(table, 3)
    done = ok("restore", "raw.orders", "1", "--yes")
    assert done.out == "raw.orders is at version 3, with the rows of version 1\n"
    assert len(ok("show", "raw.orders", "--json").document) == 2


def test_mistakes_are_reported_in_one_line(table: Table, tmp_path: Path) -> None:
    assert tables("show", "raw.order").err == (
        "headrace: there is no table raw.order; did you mean raw.orders?\n"
    )
    nowhere = tables("list", "--lake", str(tmp_path / "nowhere"))
    assert "give the folder with --lake" in nowhere.err
    assert "no column colour" in tables("show", "raw.orders", "--columns", "colour").err
