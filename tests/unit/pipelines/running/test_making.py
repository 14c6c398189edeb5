"""A table as it is wanted: made, found and changed, or made again."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.errors import TableLost
from headrace.pipelines.model import Place
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.making import TableMaking, WantedTable

ID = pa.field("id", pa.int64())
DAY = pa.field("day", pa.date32())
WANTED = WantedTable("staging.x", pa.schema([ID, DAY]), ("day",), place=Place("a.sql", 3))
SIZE = "delta.targetFileSize"


@pytest.fixture
def making(tmp_path: Path) -> TableMaking:
    return TableMaking(Lake(tmp_path), "shop")


def test_a_table_is_made_and_the_one_that_is_there_is_given_what_is_new(
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


def test_what_cannot_be_changed_is_told_with_its_place(making: TableMaking) -> None:
    making.make(WANTED, 1, is_seen=True)
    with pytest.raises(PipelineError, match=r"a\.sql:3: staging\.x is there, partitioned by day"):
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
