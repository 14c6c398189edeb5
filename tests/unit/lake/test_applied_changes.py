"""Change events applied to tables: the newest row (type 1) and every version (type 2)."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headrace.lake.applied_changes import (
    ChangeRules,
    apply_changes,
    history_name,
    history_schema,
    target_schema,
)
from headrace.lake.change_events import InvalidChange
from headrace.lake.commit_log import Token
from tests.builders.change_tables import (
    LINEAGE,
    Change,
    ChangedTable,
    Crash,
    MemoryTable,
    delete,
    events_of,
)


def test_type_1_keeps_the_newest_row_of_each_key() -> None:
    """ARC-4: the trusted zone is kept by change events."""
    table = ChangedTable(scd_type=1)
    table.apply(Change("ada", 1, "London"), Change("ada", 2, "Paris"), Change("bob", 1, "Rome"))
    assert table.rows() == {("ada", "Paris"), ("bob", "Rome")}


def test_type_1_a_late_event_changes_nothing() -> None:
    table = ChangedTable(scd_type=1)
    table.apply(Change("ada", 5, "Paris"))
    table.apply(Change("ada", 4, "London"))
    assert table.rows() == {("ada", "Paris")}


def test_type_1_a_late_upsert_does_not_bring_a_deleted_row_back() -> None:
    table = ChangedTable(scd_type=1)
    table.apply(Change("ada", 1, "London"))
    table.apply(delete("ada", 3))
    table.apply(Change("ada", 2, "Paris"))
    assert table.rows() == set()


def test_type_1_a_delete_of_an_unknown_key_holds_against_late_rows() -> None:
    table = ChangedTable(scd_type=1)
    table.apply(delete("ada", 3))
    table.apply(Change("ada", 2, "Paris"))
    assert table.rows() == set()


def test_type_1_a_newer_upsert_after_a_delete_is_a_new_row() -> None:
    table = ChangedTable(scd_type=1)
    table.apply(Change("ada", 1, "London"), delete("ada", 2))
    table.apply(Change("ada", 3, "Paris"))
    assert table.rows() == {("ada", "Paris")}


@pytest.mark.parametrize("scd_type", [1, 2])
@pytest.mark.parametrize("in_one_batch", [True, False])
def test_a_delete_wins_over_an_upsert_of_equal_sequence(scd_type: int, in_one_batch: bool) -> None:
    table = ChangedTable(scd_type)
    changes = [delete("ada", 2), Change("ada", 2, "Paris")]
    if in_one_batch:
        table.apply(*changes)
    else:
        for change in changes:
            table.apply(change)
    assert table.rows() == set()


def test_the_later_of_two_upserts_of_equal_sequence_counts() -> None:
    table = ChangedTable(scd_type=1)
    table.apply(Change("ada", 2, "London"), Change("ada", 2, "Paris"))
    table.apply(Change("ada", 2, "Rome"))
    assert table.rows() == {("ada", "Rome")}


def test_type_2_closes_a_version_where_the_next_begins() -> None:
    table = ChangedTable(scd_type=2)
    table.apply(Change("ada", 1, "London"))
    table.apply(Change("ada", 4, "Paris"))
    assert table.rows() == {("ada", "London", 1, 4), ("ada", "Paris", 4, None)}


def test_type_2_a_late_event_splits_the_interval_that_it_falls_into() -> None:
    table = ChangedTable(scd_type=2)
    table.apply(Change("ada", 1, "London"), Change("ada", 9, "Paris"))
    table.apply(Change("ada", 5, "Rome"))
    assert table.rows() == {
        ("ada", "London", 1, 5),
        ("ada", "Rome", 5, 9),
        ("ada", "Paris", 9, None),
    }


def test_type_2_an_event_older_than_all_comes_first() -> None:
    table = ChangedTable(scd_type=2)
    table.apply(Change("ada", 5, "Paris"))
    table.apply(Change("ada", 1, "London"))
    assert table.rows() == {("ada", "London", 1, 5), ("ada", "Paris", 5, None)}


def test_type_2_a_delete_closes_the_version_and_opens_none() -> None:
    table = ChangedTable(scd_type=2)
    table.apply(Change("ada", 1, "London"))
    table.apply(delete("ada", 4))
    assert table.rows() == {("ada", "London", 1, 4)}


def test_type_2_a_delete_closes_also_a_version_that_comes_later() -> None:
    table = ChangedTable(scd_type=2)
    table.apply(delete("ada", 4))
    table.apply(Change("ada", 1, "London"))
    table.apply(Change("ada", 7, "Paris"))
    assert table.rows() == {("ada", "London", 1, 4), ("ada", "Paris", 7, None)}


def test_type_2_a_late_delete_splits_too() -> None:
    table = ChangedTable(scd_type=2)
    table.apply(Change("ada", 1, "London"), Change("ada", 9, "Paris"))
    table.apply(delete("ada", 5))
    assert table.rows() == {("ada", "London", 1, 5), ("ada", "Paris", 9, None)}


def test_type_2_a_delete_at_the_start_of_a_version_removes_it() -> None:
    table = ChangedTable(scd_type=2)
    table.apply(Change("ada", 1, "London"), Change("ada", 4, "Paris"))
    table.apply(delete("ada", 4))
    assert table.rows() == {("ada", "London", 1, 4)}


def test_type_2_other_keys_are_left_alone() -> None:
    table = ChangedTable(scd_type=2)
    table.apply(Change("ada", 1, "London"), Change("bob", 1, "Rome"))
    table.apply(Change("ada", 2, "Paris"))
    assert ("bob", "Rome", 1, None) in table.rows()


def test_type_2_reads_no_version_that_ended_before_the_batch() -> None:
    table = ChangedTable(scd_type=2)
    table.apply(*(Change("ada", n, str(n)) for n in range(100)))
    table.apply(Change("ada", 100, "last"))
    assert table.target.read[-1] == 1


@pytest.mark.parametrize("scd_type", [1, 2])
@pytest.mark.parametrize("crashes", ["target", "history"])
def test_a_batch_that_failed_between_its_commits_is_completed(scd_type: int, crashes: str) -> None:
    changes = [Change("ada", 3, "Paris"), delete("bob", 3), Change("ada", 2, "London")]
    whole, broken = ChangedTable(scd_type), ChangedTable(scd_type)
    whole.apply(Change("bob", 1, "Rome"))
    whole.apply(*changes)
    broken.apply(Change("bob", 1, "Rome"))
    dying: MemoryTable = getattr(broken, crashes)
    dying.crashes = True
    with pytest.raises(Crash):
        broken.apply(*changes)
    dying.crashes = False
    broken.repeat(*changes)
    assert broken.rows() == whole.rows()
    assert sorted(map(str, broken.history.content)) == sorted(map(str, whole.history.content))


@pytest.mark.parametrize("scd_type", [1, 2])
def test_a_batch_that_is_done_is_not_done_again(scd_type: int) -> None:
    table = ChangedTable(scd_type)
    table.apply(Change("ada", 1, "London"))
    table.repeat(Change("ada", 1, "something else"))
    assert "London" in str(table.rows())


@pytest.mark.parametrize("scd_type", [1, 2])
def test_a_batch_without_events_leaves_its_token(scd_type: int) -> None:
    table = ChangedTable(scd_type)
    table.apply()
    assert table.target.has(Token("writer", 1))
    assert table.history.has(Token("writer", 1))


@pytest.mark.parametrize(
    ("sequence_type", "earlier", "later"),
    [
        (pa.string(), "2026-01-01", "2026-01-02"),
        (pa.float64(), 1.5, 2.5),
        (
            pa.timestamp("us", "UTC"),
            datetime(2026, 1, 1, tzinfo=UTC),
            datetime(2026, 1, 2, tzinfo=UTC),
        ),
        (
            pa.struct([("epoch", pa.int32()), ("offset", pa.int64())]),
            {"epoch": 1, "offset": 9},
            {"epoch": 2, "offset": 3},
        ),
    ],
    ids=str,
)
def test_a_sequence_is_of_any_ordered_type(
    sequence_type: pa.DataType, earlier: object, later: object
) -> None:
    newest = ChangedTable(1, sequence_type)
    newest.apply(Change("ada", later, "Paris"))
    newest.apply(Change("ada", earlier, "London"))
    assert newest.rows() == {("ada", "Paris")}
    versions = ChangedTable(2, sequence_type)
    versions.apply(Change("ada", later, "Paris"))
    versions.apply(Change("ada", earlier, "London"))
    ends = {row["value"]: row["__END_AT"] for row in versions.target.content}
    assert ends == {"London": later, "Paris": None}


def test_a_null_in_the_column_of_deletes_is_no_delete() -> None:
    table = ChangedTable(scd_type=1)
    table.apply(Change("ada", 1, "London", None))
    assert table.rows() == {("ada", "London")}


def test_null_keys_are_refused_with_their_count() -> None:
    table = ChangedTable(scd_type=1)
    with pytest.raises(InvalidChange, match=r"2 of 3 change events have a null key \(column key\)"):
        table.apply(Change(None, 1), Change("ada", 1), Change(None, 2))


def test_null_sequences_are_refused_with_their_count() -> None:
    table = ChangedTable(scd_type=2)
    with pytest.raises(InvalidChange, match="1 of 1 change events have a null sequence"):
        table.apply(Change("ada", None))


def test_a_key_that_events_do_not_have_is_named() -> None:
    table = ChangedTable(scd_type=1)
    with pytest.raises(InvalidChange, match="no column customer; they have key, sequence"):
        apply_changes(
            table.target,
            table.history,
            events_of([]),
            ChangeRules(("customer",), "sequence", None, 1),
            Token("writer", 1),
            LINEAGE,
        )


def test_a_type_that_does_not_fit_names_the_column_and_both_types() -> None:
    table = ChangedTable(scd_type=1)
    events = events_of([Change("ada", "one")], pa.string())
    with pytest.raises(InvalidChange, match="string in column sequence where the table has int64"):
        apply_changes(
            table.target,
            table.history,
            events,
            ChangeRules(("key",), "sequence", None, 1),
            Token("writer", 1),
            LINEAGE,
        )


def test_keys_may_be_several_columns() -> None:
    schema = pa.schema([("bank", pa.string()), ("account", pa.int64()), ("at", pa.int64())])
    events = pa.Table.from_pylist(
        [
            {"bank": "a", "account": 1, "at": 1},
            {"bank": "a", "account": 2, "at": 1},
            {"bank": "b", "account": 1, "at": 1},
            {"bank": "a", "account": 1, "at": 2},
        ],
        schema=schema,
    )
    keys = ("bank", "account")
    target = MemoryTable(target_schema(schema, sequence_by="at", deletes=None, scd_type=1))
    history = MemoryTable(history_schema(schema, keys=keys, sequence_by="at"))
    apply_changes(
        target,
        history,
        events,
        ChangeRules(tuple(keys), "at", None, 1),
        Token("writer", 1),
        LINEAGE,
    )
    assert {tuple(row.values()) for row in target.content} == {
        ("a", 1, 2),
        ("a", 2, 1),
        ("b", 1, 1),
    }


def test_the_sequence_need_not_be_stored_and_versions_have_theirs() -> None:
    schema = events_of([]).schema
    newest = target_schema(
        schema, sequence_by="sequence", deletes="is_delete", scd_type=1, except_columns=["sequence"]
    )
    versions = target_schema(schema, sequence_by="sequence", deletes="is_delete", scd_type=2)
    assert newest.names == ["key", "value"]
    assert versions.names == ["key", "sequence", "value", "__START_AT", "__END_AT"]


def test_the_history_has_the_name_of_its_table_and_a_suffix() -> None:
    assert history_name("trusted.customers") == "trusted.customers__changes"
