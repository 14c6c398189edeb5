"""The served tables and views, by their names."""

from headrace.lake.catalog import Catalog, Entry, Generation, MergedViewEntry
from headrace.serving.catalogue import planned_units, spellings


def entry(name: str, current: int | None = 1) -> Entry:
    return Entry(name, current, {1: Generation(name), 2: Generation(f"{name}.v2")})


def catalog(*entries: Entry, view: MergedViewEntry | None = None) -> Catalog:
    tables = {one.name: one for one in entries}
    return Catalog(tables, {view.name: view} if view else {})


VIEW = MergedViewEntry("refined.v", ("k",), {"n": "sum"}, "refined.v_batch", "staging.v_speed")


def test_only_tables_of_the_zones_are_served() -> None:
    plans = planned_units(catalog(entry("raw.a"), entry("refined.b")), ["refined"])
    assert list(plans) == ["refined.b"]


def test_a_table_whose_first_generation_is_being_built_is_not_served() -> None:
    assert planned_units(catalog(entry("refined.a", None)), ["refined"]) == {}


def test_the_current_generation_is_served() -> None:
    assert planned_units(catalog(entry("refined.a", 2)), ["refined"])["refined.a"].tables == (
        ("refined.a", 2),
    )


def test_both_layers_of_a_view_are_one_unit_speed_first() -> None:
    layers = entry("refined.v_batch"), entry("staging.v_speed")
    plans = planned_units(catalog(*layers, view=VIEW), ["refined"])
    assert {name: plan.tables for name, plan in plans.items()} == {
        "refined.v": (("staging.v_speed", 1), ("refined.v_batch", 1))
    }


def test_a_view_without_its_layers_waits() -> None:
    plans = planned_units(catalog(entry("refined.v_batch"), view=VIEW), ["refined"])
    assert list(plans) == ["refined.v_batch"]


def test_tables_of_the_default_zone_have_a_bare_name() -> None:
    known = spellings(["refined.Orders", "raw.log", "quarantine.x"], ["refined", "raw"], "refined")
    assert known == {
        "refined.orders": "refined.Orders",
        "orders": "refined.Orders",
        "raw.log": "raw.log",
    }
