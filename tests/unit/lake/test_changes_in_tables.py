"""Change events in Delta tables: what the wheel merges is what was decided."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.applied_changes import (
    ChangeRules,
    apply_changes,
    history_name,
    history_schema,
    target_schema,
)
from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.tables import Table
from tests.builders.change_tables import LINEAGE, Change, delete, events_of

NAME = "trusted.customers"
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)


class Customers:
    """A target and its history in a lake."""

    def __init__(self, root: Path, scd_type: int, sequence_type: Any = None) -> None:
        lake = Lake(root)
        self.scd_type = scd_type
        self.sequence_type = sequence_type or pa.int64()
        columns = events_of([], self.sequence_type).schema
        self.table: Table = lake.create(
            NAME,
            target_schema(
                columns,
                sequence_by="sequence",
                deletes="is_delete",
                scd_type=scd_type,
                except_columns=["sequence"],
            ),
        )
        self.history: Table = lake.create(
            history_name(NAME), history_schema(columns, keys=["key"], sequence_by="sequence")
        )

    def apply(self, batch: int, *changes: Change) -> int:
        return apply_changes(
            self.table,
            self.history,
            events_of(changes, self.sequence_type),
            ChangeRules(("key",), "sequence", "is_delete", self.scd_type),
            Token("flow", batch),
            LINEAGE,
        )

    def rows(self) -> set[tuple[Any, ...]]:
        return {tuple(row.values()) for row in self.table.rows().to_pylist()}


def test_type_1_in_a_delta_table(tmp_path: Path) -> None:
    """ARC-4: inserted, replaced and deleted in one commit; what is late changes nothing."""
    customers = Customers(tmp_path, scd_type=1)
    customers.apply(0, Change("ada", 1, "London"), Change("bob", 1, "Rome"))
    before = customers.table.version
    after = customers.apply(
        1, Change("ada", 3, "Paris"), delete("bob", 2), Change("cyd", 1, "Oslo")
    )
    customers.apply(2, Change("ada", 2, "Bonn"), Change("bob", 1, "Rome"))
    assert after == before + 1
    assert customers.rows() == {("ada", "Paris"), ("cyd", "Oslo")}


def test_type_2_in_a_delta_table(tmp_path: Path) -> None:
    """ARC-4: intervals are split and closed in one commit."""
    customers = Customers(tmp_path, 2, pa.timestamp("us", "UTC"))
    friday, sunday = MONDAY + timedelta(days=4), MONDAY + timedelta(days=6)
    customers.apply(0, Change("ada", MONDAY, "London"), Change("ada", sunday, "Paris"))
    before = customers.table.version
    after = customers.apply(1, Change("ada", friday, "Rome"), delete("bob", friday))
    customers.apply(2, Change("bob", MONDAY, "Oslo"))
    assert after == before + 1
    assert customers.rows() == {
        ("ada", "London", MONDAY, friday),
        ("ada", "Rome", friday, sunday),
        ("ada", "Paris", sunday, None),
        ("bob", "Oslo", MONDAY, friday),
    }


@pytest.mark.parametrize("scd_type", [1, 2])
def test_a_sequence_of_several_columns_in_a_delta_table(tmp_path: Path, scd_type: int) -> None:
    sequence_type = pa.struct([("epoch", pa.int32()), ("offset", pa.int64())])
    customers = Customers(tmp_path, scd_type, sequence_type)
    customers.apply(0, Change("ada", {"epoch": 2, "offset": 1}, "Paris"))
    customers.apply(1, Change("ada", {"epoch": 1, "offset": 9}, "London"))
    customers.apply(2, Change("ada", {"epoch": 2, "offset": 1}, "Lyon"))
    values = {row["value"] for row in customers.table.rows().to_pylist()}
    assert values == ({"Lyon"} if scd_type == 1 else {"London", "Lyon"})


@pytest.mark.parametrize("scd_type", [1, 2])
def test_a_repeated_batch_makes_no_version(tmp_path: Path, scd_type: int) -> None:
    customers = Customers(tmp_path, scd_type)
    first = customers.apply(0, Change("ada", 1, "London"), delete("bob", 1))
    remembered = customers.history.version
    assert customers.apply(0, Change("ada", 1, "London"), delete("bob", 1)) == first
    assert customers.history.version == remembered


@pytest.mark.parametrize("scd_type", [1, 2])
def test_a_batch_that_changes_nothing_leaves_its_token_in_both_tables(
    tmp_path: Path, scd_type: int
) -> None:
    customers = Customers(tmp_path, scd_type)
    customers.apply(0, delete("ada", 1))
    customers.apply(1)
    customers.apply(2, delete("ada", 1))
    assert customers.table.has(Token("flow", 2))
    assert customers.history.has(Token("flow", 2))


def test_more_keys_than_a_list_may_have_are_found_between_their_bounds(tmp_path: Path) -> None:
    customers = Customers(tmp_path, scd_type=1)
    keys = [f"{n:05}" for n in range(12_000)]
    customers.apply(0, *(Change(key, 2, "new") for key in keys))
    customers.apply(1, *(Change(key, 1, "late") for key in keys))
    assert {row[1] for row in customers.rows()} == {"new"}
    assert customers.table.rows().num_rows == len(keys)


def test_rows_of_a_changed_table_are_found_by_a_text(tmp_path: Path) -> None:
    customers = Customers(tmp_path, scd_type=1)
    customers.apply(0, Change("ada", 1, "London"), Change("bob", 1, "Rome"))
    found = customers.table.rows(where="key = 'ada' AND value > 'A'")
    assert found.to_pylist() == [{"key": "ada", "value": "London"}]


@pytest.mark.parametrize("scd_type", [1, 2])
def test_a_delete_with_a_date_that_cannot_be_a_partition_removes_the_row(
    tmp_path: Path, scd_type: int
) -> None:
    lake = Lake(tmp_path)
    far, near = 900_000_000, 20_000
    schema = pa.schema(
        [("key", pa.string()), ("n", pa.int64()), ("day", pa.date32()), ("gone", pa.bool_())]
    )
    columns = target_schema(schema, sequence_by="n", scd_type=scd_type, deletes="gone")
    table = lake.create(NAME, columns, partition_by=["day"])
    remembered = history_schema(schema, keys=["key"], sequence_by="n")
    history = lake.create(history_name(NAME), remembered)
    rules = ChangeRules(("key",), "n", "gone", scd_type)
    for batch, (day, gone) in enumerate([(near, False), (far, True)]):
        values = [["ada"], [batch], pa.array([day], pa.int32()).cast(pa.date32()), [gone]]
        events = pa.Table.from_arrays([pa.array(one) for one in values], schema=schema)
        apply_changes(table, history, events, rules, Token("flow", batch), LINEAGE)
    assert [row.get("__END_AT", 0) for row in table.rows().to_pylist()] == [1] * (scd_type == 2)
