"""What becomes of each redriven row, and which rows are removed from quarantine."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.quarantine import QUARANTINE_SCHEMA, UNREADABLE
from headrace.pipelines.running.redrive_fates import (
    LOST,
    UNTOLD,
    Plan,
    conditions,
    fates_of,
    moments_of,
    rows_at,
)
from tests.lakes import written

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
LATER = NOW + dt.timedelta(seconds=1)


def refused(offset: int | None, **more: Any) -> dict[str, Any]:
    """A row of quarantine; without an offset it names no record."""
    place = ("it's", 0, offset) if offset is not None else (None, None, None)
    named = dict(zip(("topic", "partition", "offset"), place, strict=True))
    row = {"quarantined_at": NOW, "flow": "o", "rule": "dear", **named, **more}
    return {name: row.get(name) for name in QUARANTINE_SCHEMA.names}


def named(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["quarantined_at"], row["flow"], row["offset"]


def table_of(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), QUARANTINE_SCHEMA)


def test_a_row_whose_record_was_not_found_is_left() -> None:
    rows = table_of(refused(0), refused(3))
    fates = fates_of(rows, Plan.of({("it's", 0, 0), ("it's", 0, 3)}, {("it's", 0, 3)}))
    assert (fates.is_taken, fates.reasons) == ([False, True], {LOST: 1})


def test_rows_are_judged_as_they_were_where_their_records_cannot_be_told() -> None:
    rows = table_of(refused(0), refused(None))
    fates = fates_of(rows, Plan.of({("it's", 0, 0)}, None))
    assert fates.as_they_were == [True, True]


def test_rows_of_batches_are_told_from_others_by_flow_and_moment() -> None:
    rows = table_of(refused(0), refused(1, quarantined_at=LATER), refused(2, flow="p"))
    moments = {"o": moments_of(rows.slice(0, 1))["o"]}
    parts = [rows_at(rows, moments, is_at=is_at)["offset"].to_pylist() for is_at in (True, False)]
    assert parts == [[0], [1, 2]]


def test_a_row_of_a_record_that_has_rows_in_the_table_is_judged_as_it_was() -> None:
    """What a flow has made of the record besides it must not come twice."""
    rows = table_of(refused(0), refused(3), refused(5, rule=UNREADABLE))
    stored = {("it's", 0, 3), ("it's", 0, 5)}
    fates = fates_of(rows, Plan.of({("it's", 0, 0)}, {("it's", 0, 0)}, stored))
    assert (fates.is_taken, fates.as_they_were) == ([True] * 3, [False, True, False])


@pytest.mark.parametrize("plan", [Plan(), Plan(is_anew=False)])
def test_a_payload_that_was_not_decoded_is_not_judged_as_a_row_of_nulls(plan: Plan) -> None:
    fates = fates_of(table_of(refused(None, rule=UNREADABLE)), plan)
    assert (fates.is_taken, fates.as_they_were, fates.reasons) == ([False], [False], {UNTOLD: 1})


def test_a_plan_is_the_same_after_a_crash() -> None:
    plan = Plan(lost=frozenset({("a", 0, 5), ("b", 1, 7)}), stored=frozenset({("a", 0, 6)}))
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("lost", [set(), {0}, {1, 4}, {0, 1, 3, 4}])
def test_the_taken_rows_are_removed_and_no_other(lost: set[int], tmp_path: Path) -> None:
    own = [refused(offset) for offset in (0, 1, 3, 4)] + [refused(None)]
    others = [
        refused(3, quarantined_at=LATER),
        refused(3, flow="another"),
    ]
    quarantine = Lake(tmp_path).create("quarantine.o", QUARANTINE_SCHEMA)
    quarantine.append(written(quarantine, own + others))
    rows = table_of(*own)
    fates = fates_of(rows, Plan(lost=frozenset(("it's", 0, offset) for offset in lost)))
    for condition in conditions("o", rows, fates.is_taken):
        quarantine.delete(condition)
    left = [row for row in own if row["offset"] in lost]
    found = quarantine.rows().to_pylist()
    assert sorted(map(named, found)) == sorted(map(named, left + others))
