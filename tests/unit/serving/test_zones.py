"""Which zones may be served."""

import pytest

from headrace.lake.catalog import Catalog, Entry, MergedViewEntry
from headrace.serving.catalogue import USUAL_ZONES, NoSuchZone, check_zones, zones_of

VIEW = MergedViewEntry("views.v", ("k",), {"n": "sum"}, "refined.v_batch", "staging.v_speed")


def test_zones_of_a_lake_are_the_usual_ones_and_those_of_its_tables_and_views() -> None:
    tables = {name: Entry(name, 1, {}) for name in ("raw.a", "marts.b")}
    assert zones_of(Catalog(tables, {VIEW.name: VIEW})) == (*USUAL_ZONES, "marts", "views")


def test_a_zone_without_tables_is_served_if_every_lake_may_have_it() -> None:
    check_zones(["trusted", "raw"], zones_of(Catalog()))


def test_a_zone_that_is_misspelt_is_refused_by_the_name_that_is_near() -> None:
    with pytest.raises(
        NoSuchZone, match=r"unknown zone rfined.*quarantine; did you mean refined\?"
    ):
        check_zones(["raw", "rfined"], zones_of(Catalog()))
