"""What becomes of each redriven row, and which rows are removed from quarantine."""

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.quarantine import QUARANTINE_SCHEMA, TOLD_BY, UNREADABLE
from headrace.pipelines.running.redrive_fates import (
    LOST,
    READ_OTHERWISE,
    REMADE,
    UNTOLD,
    Plan,
    conditions,
    fates_of,
    read_otherwise,
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
    fates = fates_of(rows, Plan().after({("it's", 0, 0), ("it's", 0, 3)}, {("it's", 0, 3)}))
    assert (fates.is_taken, fates.reasons) == ([False, True], {LOST: 1})


def test_rows_are_judged_as_they_were_where_their_records_cannot_be_told() -> None:
    rows = table_of(refused(0), refused(None))
    fates = fates_of(rows, Plan().after({("it's", 0, 0)}, None))
    assert fates.as_they_were == [True, True]


def test_a_row_of_a_record_that_has_rows_in_the_table_is_judged_as_it_was() -> None:
    """What a flow has made of the record besides it must not come twice."""
    rows = table_of(refused(0), refused(3), refused(5, rule=UNREADABLE))
    stored = frozenset({("it's", 0, 3), ("it's", 0, 5)})
    fates = fates_of(rows, Plan(stored=stored).after({("it's", 0, 0)}, {("it's", 0, 0)}))
    assert (fates.is_taken, fates.as_they_were) == ([True] * 3, [False, True, False])


def test_a_row_of_a_topic_that_was_made_again_needs_its_bytes() -> None:
    """Other rows of its place may be of another record; what the table has of it keeps it apart."""
    rows = table_of(refused(0), refused(0, payload=b"x"), refused(3), refused(None))
    plan = Plan(remade=frozenset({"it's"}), stored=frozenset({("it's", 0, 3)}))
    fates = fates_of(rows, plan.after({("it's", 0, 0)}, {("it's", 0, 0)}))
    assert fates.is_taken == [False, True, True, True]
    assert fates.as_they_were == [False, False, True, True]
    assert fates.reasons == {REMADE: 1}


def test_rows_are_judged_as_they_were_where_a_table_has_two_records_of_their_place() -> None:
    rows = table_of(refused(0), refused(0, rule=UNREADABLE, payload=b"x"))
    fates = fates_of(rows, Plan(untold=frozenset({"it's"})))
    assert (fates.as_they_were, fates.reasons) == ([True, False], {UNTOLD: 1})


def unreadable(offset: int, source: str | None) -> dict[str, Any]:
    row = {"timestamp": None, **({} if source is None else {TOLD_BY: source})}
    return refused(offset, rule=UNREADABLE, row=json.dumps(row))


def test_records_that_another_source_of_the_flow_has_read_do_not_come_twice() -> None:
    """A flow read a topic by `a` and `b`, which decode otherwise, and goes on with `a` alone.

    Of 0 the table has what `a` read; 1 neither could read; of 2 the table has the rows of another
    flow; nobody knows who could not read 3; 4 was read by no one else.
    """
    rows = table_of(
        *(unreadable(offset, "b") for offset in (0, 1, 4)),
        *(unreadable(offset, "a") for offset in (1, 2)),
        unreadable(3, None),
    )
    places = {offset: ("it's", 0, offset) for offset in range(5)}
    found = read_otherwise(rows, {"a"})
    assert found == {places[0], places[4]}
    stored = frozenset(places[offset] for offset in (0, 2, 3))
    plan = Plan(stored=stored, read_otherwise=stored & found)
    wanted = {*places.values()} - {places[0]}
    fates = fates_of(rows, plan.after(wanted, wanted))
    assert [fates.is_taken[number] for number in range(6)] == [False, *[True] * 5]
    assert (sum(fates.as_they_were), fates.reasons) == (0, {READ_OTHERWISE: 1})


@pytest.mark.parametrize("plan", [Plan(), Plan(is_anew=False)])
def test_a_payload_that_was_not_decoded_is_not_judged_as_a_row_of_nulls(plan: Plan) -> None:
    fates = fates_of(table_of(refused(None, rule=UNREADABLE)), plan)
    assert (fates.is_taken, fates.as_they_were, fates.reasons) == ([False], [False], {UNTOLD: 1})


def test_a_plan_is_the_same_after_a_crash() -> None:
    stored, read = frozenset({("a", 0, 6), ("a", 0, 8)}), frozenset({("a", 0, 8)})
    lost = frozenset({("a", 0, 5), ("b", 1, 7)})
    plan = Plan(True, lost, stored, read, remade=frozenset({"a"}), untold=frozenset({"b"}))
    assert Plan.from_json(plan.to_json()) == plan


def test_a_plan_of_an_older_version_knows_of_no_topic_that_was_made_again() -> None:
    assert Plan.from_json({"is_anew": True, "lost": [["a", 0, 5]]}) == Plan(
        lost=frozenset({("a", 0, 5)})
    )


@pytest.mark.parametrize("lost", [set(), {0}, {1, 4}, {0, 1, 3, 4}])
def test_the_taken_rows_are_removed_and_no_other(lost: set[int], tmp_path: Path) -> None:
    """Others are of another batch or flow, or of another round: by offset, or without a record."""
    own = [refused(offset) for offset in (0, 1, 3, 4)] + [refused(None, quarantined_at=LATER)]
    others = [
        refused(3, quarantined_at=LATER),
        refused(3, flow="another"),
        refused(None),
        refused(5),
    ]
    quarantine = Lake(tmp_path).create("quarantine.o", QUARANTINE_SCHEMA)
    quarantine.append(written(quarantine, own + others))
    rows = table_of(*own)
    fates = fates_of(rows, Plan(lost=frozenset(("it's", 0, offset) for offset in lost)))
    for condition in conditions("o", rows, fates.is_taken):
        quarantine.delete(condition)
    left = [row for row in own if row["offset"] in lost]
    found = quarantine.rows().to_pylist()
    assert Counter(map(named, found)) == Counter(map(named, left + others))


@pytest.mark.parametrize("offsets", [(0,), (0, 1, 2)])
def test_what_could_not_be_read_is_left_where_other_rows_of_its_record_are_taken(
    offsets: tuple[int, ...], tmp_path: Path
) -> None:
    """A flow reads a topic by two sources: what one made broke a rule, the other could not read."""
    own = [row for offset in offsets for row in (refused(offset), unreadable(offset, "b"))]
    quarantine = Lake(tmp_path).create("quarantine.o", QUARANTINE_SCHEMA)
    quarantine.append(written(quarantine, [*own, refused(9)]))
    rows = table_of(*own, refused(9))
    fates = fates_of(rows, Plan(is_anew=False))
    assert fates.taken == len(offsets) + 1
    for condition in conditions("o", rows, fates.is_taken):
        quarantine.delete(condition)
    left = {(row["offset"], row["rule"]) for row in quarantine.rows().to_pylist()}
    assert left == {(offset, UNREADABLE) for offset in offsets}


def test_a_row_without_bytes_is_left_where_another_of_its_place_is_taken(tmp_path: Path) -> None:
    own = [row for n in (0, 1) for row in (refused(n), refused(n, payload=b"x"))]
    quarantine = Lake(tmp_path).create("quarantine.o", QUARANTINE_SCHEMA)
    quarantine.append(written(quarantine, own))
    fates = fates_of(table_of(*own), Plan(remade=frozenset({"it's"})))
    for condition in conditions("o", table_of(*own), fates.is_taken):
        quarantine.delete(condition)
    left = [(row["offset"], row["payload"]) for row in quarantine.rows().to_pylist()]
    assert sorted(left) == [(0, None), (1, None)]
