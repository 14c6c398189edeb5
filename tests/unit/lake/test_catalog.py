"""The lake's catalog: names, generations, and switches of many at once."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.errors import IncompatibleSchema, InvalidName, LakeError, NoSuchTable, TableLost
from tests.builders.lakes import ids_of, numbers

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_a_table_is_a_folder_of_its_zone(lake: Lake) -> None:
    """ARC-4: each zone is a namespace."""
    table = lake.create("raw.orders", SCHEMA, pipeline="shop", comment="all orders")
    assert table.place == lake.root / "raw" / "orders"
    assert lake.names() == ["raw.orders"]
    (entry,) = lake.entries()
    assert (entry.current, entry.generations[1].pipeline) == (1, "shop")
    assert lake.has("raw.orders")
    assert not lake.has("raw.order")


def test_a_folder_without_a_catalog_is_an_empty_lake(lake: Lake) -> None:
    assert lake.names() == []
    with pytest.raises(NoSuchTable, match="the lake has none yet"):
        lake.table("raw.orders")


def test_creating_a_table_again_finds_it(lake: Lake) -> None:
    numbers(lake.create("raw.orders", SCHEMA), 1)
    assert ids_of(lake.create("raw.orders", SCHEMA)) == [1]


def test_a_table_that_lost_its_catalog_entry_in_a_crash_is_found_again(lake: Lake) -> None:
    numbers(lake.create("raw.orders", SCHEMA), 1)
    (lake.root / "_headrace" / "catalog.json").unlink()
    assert ids_of(lake.create("raw.orders", SCHEMA)) == [1]


def test_creating_it_otherwise_is_refused(lake: Lake) -> None:
    lake.create("raw.orders", SCHEMA)
    with pytest.raises(IncompatibleSchema, match="new column price"):
        lake.create("raw.orders", pa.schema([*SCHEMA, ("price", pa.float64())]))
    with pytest.raises(IncompatibleSchema, match="further columns: name string"):
        lake.create("raw.orders", pa.schema([("id", pa.int64())]))
    with pytest.raises(IncompatibleSchema, match="partitioned by nothing"):
        lake.create("raw.orders", SCHEMA, partition_by=["name"])


def test_misspelt_names_bring_near_ones(lake: Lake) -> None:
    lake.create("raw.orders", SCHEMA)
    with pytest.raises(NoSuchTable, match=r"did you mean raw\.orders\?"):
        lake.table("raw.oders")
    with pytest.raises(NoSuchTable, match=r"there are raw\.orders"):
        lake.table("quarantine.zzz")


@pytest.mark.parametrize("name", ["orders", "raw.", "raw.a.b", "raw.a/b", "../x.y", "raw.1", ""])
def test_names_that_are_no_zone_and_table_are_refused(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidName, match="a zone and a name"):
        lake.create(name, SCHEMA)


def test_a_new_generation_is_built_apart_and_switched_to_atomically(lake: Lake) -> None:
    """ARC-2: recompute into a new table, then switch, and back."""
    for name in ("trusted.a", "refined.b"):
        numbers(lake.create(name, SCHEMA), 1)
        numbers(lake.create(name, SCHEMA, generation=2), 2)
    assert lake.table("trusted.a", 2).place == lake.root / "trusted" / "a.v2"
    assert ids_of(lake.table("trusted.a")) == [1]
    lake.switch({"trusted.a": 2, "refined.b": 2})
    assert [ids_of(lake.table(name)) for name in lake.names()] == [[2], [2]]
    lake.switch({"trusted.a": 1})
    assert ids_of(lake.table("trusted.a")) == [1]


def test_a_switch_that_cannot_be_complete_is_not_made(lake: Lake) -> None:
    for generation in (1, 2):
        lake.create("trusted.a", SCHEMA, generation=generation)
    with pytest.raises(LakeError, match=r"trusted\.b has no generation 2"):
        lake.switch({"trusted.a": 2, "trusted.b": 2})
    assert lake.table("trusted.a").generation == 1
    with pytest.raises(LakeError, match="it has 1, 2"):
        lake.table("trusted.a", 3)


def test_a_generation_that_is_not_in_use_can_be_dropped(lake: Lake) -> None:
    for generation in (1, 2):
        lake.create("trusted.a", SCHEMA, generation=generation)
    place = lake.table("trusted.a", 2).place
    lake.drop("trusted.a", 2)
    assert not place.exists()
    with pytest.raises(LakeError, match="in use"):
        lake.drop("trusted.a", 1)


def test_a_table_goes_from_the_catalog_with_its_last_generation(lake: Lake) -> None:
    lake.create("trusted.a", SCHEMA)
    lake.switch({}, hidden=["trusted.a"])
    lake.drop("trusted.a", 1)
    assert lake.catalog().tables == {}


def test_a_view_replaces_a_table_atomically_and_restores_it(lake: Lake) -> None:
    """Readers find the one or the other at every moment, and never both."""
    view = MergedViewEntry("refined.v", ("id",), {"n": "sum"}, "refined.b", "refined.s", "shop")
    for name in ("refined.v", "refined.b", "refined.s"):
        lake.create(name, SCHEMA, generation=2)
    lake.switch({"refined.b": 2, "refined.s": 2}, hidden=["refined.v"], views={"refined.v": view})
    assert (lake.names(), [*lake.views()]) == (["refined.b", "refined.s"], ["refined.v"])
    before = lake.catalog()
    with pytest.raises(LakeError, match="no generation 7"):
        lake.switch({"refined.v": 7}, hidden=["refined.v", "refined.b", "refined.s"])
    assert lake.catalog() == before
    lake.switch({"refined.v": 2}, hidden=["refined.v", "refined.b", "refined.s"])
    assert (lake.names(), lake.views()) == (["refined.v"], {})


def test_a_view_does_not_take_the_name_of_a_table(lake: Lake) -> None:
    lake.create("refined.a", SCHEMA)
    view = MergedViewEntry("refined.v", ("id",), {"n": "sum"}, "refined.b", "refined.s", "shop")
    lake.put_view("refined.v", view)
    assert lake.views() == {"refined.v": view}
    with pytest.raises(LakeError, match="is a table already"):
        lake.put_view("refined.a", view)


def test_a_damaged_catalog_is_named(lake: Lake) -> None:
    lake.create("raw.orders", SCHEMA)
    (lake.root / "_headrace" / "catalog.json").write_text('{"tables": [')
    with pytest.raises(LakeError, match=r"catalog\.json is damaged"):
        lake.names()


def test_editors_at_the_same_time_lose_nothing(lake: Lake) -> None:
    def create_some(start: int) -> None:
        own = Lake(lake.root)
        for number in range(start, start + 5):
            own.create(f"raw.t{number}", SCHEMA)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(create_some, (0, 5, 10)))
    assert len(lake.names()) == 15


def test_a_table_whose_folder_is_missing_is_reported_with_advice(lake: Lake) -> None:
    shutil.rmtree(lake.create("raw.lost", SCHEMA, pipeline="shop").place)
    with pytest.raises(TableLost, match=r"back.*replay FOLDER` rebuilds the tables of shop"):
        lake.table("raw.lost")


def test_the_catalog_records_properties_that_a_pipeline_has_set(lake: Lake) -> None:
    """Entries of older releases do not have them, so no property counts as the pipeline's."""
    lake.create("raw.x", SCHEMA, pipeline="shop", properties={"delta.targetFileSize": "9"})
    lake.create("raw.x", SCHEMA, pipeline="shop", generation=2)
    lake.record_properties("raw.x", 2, {"delta.targetFileSize": "8"})
    made = lake.catalog().tables["raw.x"].generations
    assert [made[number].properties for number in (1, 2)] == [
        {"delta.targetFileSize": "9"},
        {"delta.targetFileSize": "8"},
    ]
    assert made[2].pipeline == "shop"
    file = lake.root / "_headrace" / "catalog.json"
    older = json.loads(file.read_text())
    for generation in older["tables"]["raw.x"]["generations"].values():
        del generation["properties"]
    file.write_text(json.dumps(older))
    assert lake.catalog().tables["raw.x"].generations[2].properties == {}
