"""Which properties a table has once a run has begun: those declared, and those others have set."""

import pytest

from headrace.lake.catalog import PROPERTIES
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.table_properties import property_change, wanted_properties

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
def test_a_zone_may_ask_for_more_than_is_declared(
    name: str, declared: dict[str, str], wanted: dict[str, str]
) -> None:
    assert wanted_properties(name, declared) == wanted


def test_what_is_no_property_of_delta_is_refused() -> None:
    with pytest.raises(PipelineError, match="owner is no property of a Delta table"):
        wanted_properties("raw.x", {"owner": "me", COLUMNS: "3"})


def test_what_is_no_longer_declared_is_taken_off() -> None:
    """ARC-4: what is declared is what the tables are."""
    change = property_change({COLUMNS: "3"}, {}, ours={COLUMNS: "3"})
    assert (change.put, change.dropped, change.ours) == ({}, frozenset({COLUMNS}), {})


def test_what_every_table_has_from_the_start_comes_back() -> None:
    change = property_change({LOGS: "interval 9 days"}, {}, ours={LOGS: "interval 9 days"})
    assert (change.put, change.dropped) == ({LOGS: PROPERTIES[LOGS]}, frozenset())


@pytest.mark.parametrize(
    ("standing", "ours"),
    [
        ({COLUMNS: "3"}, {}),
        ({COLUMNS: "3"}, {COLUMNS: "5"}),
        ({}, {COLUMNS: "3"}),
        ({"delta.minWriterVersion": "7"}, {"delta.minWriterVersion": "7"}),
    ],
    ids=["set by hand", "changed by hand since", "taken off by hand", "only for new tables"],
)
def test_what_is_not_as_the_pipeline_has_put_it_stays(
    standing: dict[str, str], ours: dict[str, str]
) -> None:
    change = property_change(standing, {}, ours)
    assert (change.put, change.dropped) == ({}, frozenset())


def test_what_was_there_before_it_was_declared_is_not_the_pipelines() -> None:
    there = {COLUMNS: "3", LOGS: "interval 7 days"}
    wanted = {COLUMNS: "3", LOGS: "interval 9 days"}
    first = property_change(there, wanted, ours={})
    assert first.ours == {LOGS: "interval 9 days"}
    assert property_change({**there, **first.put}, wanted, first.ours).ours == first.ours


def test_a_zones_own_rule_is_never_taken_off() -> None:
    """ARC-4: tables of raw only grow, whether a file says so or not."""
    wanted = wanted_properties("raw.x", {})
    change = property_change({GROWS: "true"}, wanted, ours={GROWS: "true"})
    assert (change.put, change.dropped) == ({GROWS: "true"}, frozenset())
