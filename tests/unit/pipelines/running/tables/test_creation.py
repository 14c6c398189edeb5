"""A table as it is wanted: made, found and changed, or made again."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import PROPERTIES, Lake
from headrace.lake.errors import TableLost
from headrace.pipelines.model import Location
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.tables.creation import (
    TableMaking,
    WantedTable,
    property_change,
    wanted_properties,
)

ID = pa.field("id", pa.int64())
DAY = pa.field("day", pa.date32())
WANTED = WantedTable("staging.x", pa.schema([ID, DAY]), ("day",), location=Location("a.sql", 3))
SIZE = "delta.targetFileSize"


@pytest.fixture
def making(tmp_path: Path) -> TableMaking:
    return TableMaking(Lake(tmp_path), "shop")


def test_a_table_is_created_and_an_existing_one_gets_new_columns(
    making: TableMaking,
) -> None:
    """ARC-4: schemas evolve by rule."""
    making.make(WANTED, 1, is_seen=True)
    table = making.lake.table("staging.x")
    more = pa.schema([ID, DAY, pa.field("name", pa.string())])
    making.make(replace(WANTED, columns=more, properties={SIZE: "9"}), 1, is_seen=True)
    assert (table.schema, table.properties[SIZE]) == (more, "9")
    making.make(replace(WANTED, columns=more), 1, is_seen=True)
    assert SIZE not in table.properties
    assert making.lake.catalog().tables["staging.x"].generations[1].properties == {}


def test_impossible_changes_are_reported_with_their_line(making: TableMaking) -> None:
    making.make(WANTED, 1, is_seen=True)
    with pytest.raises(PipelineError, match=r"a\.sql:3: staging\.x exists, partitioned by day"):
        making.make(replace(WANTED, partition_by=()), 1, is_seen=True)
    narrow = pa.schema([pa.field("id", pa.string()), DAY])
    with pytest.raises(PipelineError, match=r"a\.sql:3: staging\.x does not fit its table: .*id"):
        making.make(replace(WANTED, columns=narrow), 1, is_seen=True)


def test_the_table_of_another_pipeline_is_refused(making: TableMaking) -> None:
    making.make(WANTED, 1, is_seen=True)
    with pytest.raises(PipelineError, match="belongs to the pipeline shop"):
        replace(making, pipeline="web").make(WANTED, 1, is_seen=True)


def test_a_table_that_was_removed_is_made_again_only_where_no_rows_are_lost(
    making: TableMaking,
) -> None:
    making.make(WANTED, 1, is_seen=True)
    shutil.rmtree(making.lake.table("staging.x").place)
    with pytest.raises(TableLost):
        making.make(WANTED, 1, is_seen=True)
    making.make(replace(WANTED, is_made_again=True), 1, is_seen=True)
    assert making.lake.table("staging.x").version == 0


def test_readers_see_a_table_that_is_there_when_they_may(making: TableMaking) -> None:
    making.make(WANTED, 2, is_seen=False)
    making.make(WANTED, 2, is_seen=False)
    assert making.lake.names() == []
    making.make(WANTED, 2, is_seen=True)
    assert making.lake.names() == ["staging.x"]


LOGS = "delta.logRetentionDuration"
COLUMNS = "delta.dataSkippingNumIndexedCols"
GROWS = "delta.appendOnly"


@pytest.mark.parametrize(
    ("name", "declared", "wanted"),
    [
        ("staging.x", {}, {}),
        ("staging.x", {COLUMNS: "3"}, {COLUMNS: "3"}),
        ("staging.x", {GROWS: "TRUE"}, {GROWS: "true"}),
        ("raw.x", {}, {GROWS: "true"}),
    ],
)
def test_a_zone_may_require_more_than_is_declared(
    name: str, declared: dict[str, str], wanted: dict[str, str]
) -> None:
    assert wanted_properties(name, declared) == wanted


def test_unknown_properties_are_refused() -> None:
    with pytest.raises(PipelineError, match="owner is not a property of a Delta table"):
        wanted_properties("raw.x", {"owner": "me", COLUMNS: "3"})


def test_properties_that_are_no_longer_declared_are_removed() -> None:
    """ARC-4: what is declared is what the tables are."""
    change = property_change({COLUMNS: "3"}, {}, ours={COLUMNS: "3"})
    assert (change.put, change.dropped, change.ours) == ({}, frozenset({COLUMNS}), {})


def test_default_properties_are_restored() -> None:
    change = property_change({LOGS: "interval 9 days"}, {}, ours={LOGS: "interval 9 days"})
    assert (change.put, change.dropped) == ({LOGS: PROPERTIES[LOGS]}, frozenset())


@pytest.mark.parametrize(
    ("existing", "ours"),
    [
        ({COLUMNS: "3"}, {}),
        ({COLUMNS: "3"}, {COLUMNS: "5"}),
        ({}, {COLUMNS: "3"}),
        ({"delta.minWriterVersion": "7"}, {"delta.minWriterVersion": "7"}),
    ],
    ids=["set by hand", "changed by hand since", "taken off by hand", "only for new tables"],
)
def test_properties_changed_by_others_are_kept(
    existing: dict[str, str], ours: dict[str, str]
) -> None:
    change = property_change(existing, {}, ours)
    assert (change.put, change.dropped) == ({}, frozenset())


def test_properties_set_before_the_declaration_are_not_owned() -> None:
    there = {COLUMNS: "3", LOGS: "interval 7 days"}
    wanted = {COLUMNS: "3", LOGS: "interval 9 days"}
    first = property_change(there, wanted, ours={})
    assert first.ours == {LOGS: "interval 9 days"}
    assert property_change({**there, **first.put}, wanted, first.ours).ours == first.ours


def test_a_property_required_by_the_zone_is_never_removed() -> None:
    """ARC-4: tables of raw are append-only, with or without a declaration of it."""
    wanted = wanted_properties("raw.x", {})
    change = property_change({GROWS: "true"}, wanted, ours={GROWS: "true"})
    assert (change.put, change.dropped) == ({GROWS: "true"}, frozenset())
