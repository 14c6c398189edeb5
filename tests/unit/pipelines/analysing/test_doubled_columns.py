"""Columns that a query brings twice under one name."""

import pytest

from headrace.pipelines.analysing.doubled_columns import Column, complaints

RAW_DAY = ("day", "raw.t.day")


@pytest.mark.parametrize(
    ("columns", "doubled"),
    [
        ([("id", ""), ("price", "")], []),
        ([("id", ""), ("ID", ""), ("id", "")], ["id"]),
        ([("Day", ""), ("day", ""), ("id", ""), ("id", "")], ["Day", "id"]),
    ],
)
def test_each_name_that_comes_again_is_told_once(columns: list[Column], doubled: list[str]) -> None:
    found = list(complaints("staging.x", columns, "SELECT"))
    assert found == [
        f"staging.x has the column {name} twice; names that differ in small and capital letters"
        " only are the same, so rename one"
        for name in doubled
    ]


def test_who_computes_a_day_is_told_which_table_has_one_by_itself() -> None:
    (found,) = complaints("staging.x", [("id", ""), RAW_DAY, ("DAY", "")], "SELECT")
    assert found == (
        "staging.x has the column day twice: raw.t has one by itself, as it is partitioned by topic"
        " and day. Write SELECT * EXCEPT (day), ..., or PARTITIONED BY () at raw.t"
    )


def test_functions_are_told_in_python() -> None:
    (found,) = complaints("staging.x", [RAW_DAY, ("day", "")], lambda: None)  # type: ignore[arg-type,return-value]
    assert found.endswith('Write .drop("day") before your own, or partition_cols=[] at raw.t')
