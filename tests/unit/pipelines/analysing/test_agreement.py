"""Which columns a table has that several flows write to."""

import pyarrow as pa
import pytest

from headrace.pipelines.analysing.agreement import (
    Column,
    Part,
    agreed,
    as_declared,
    doubled_column_complaints,
)
from headrace.pipelines.model import Location
from headrace.pipelines.problems import PipelineError


def part(line: int, **columns: pa.DataType) -> Part:
    return Part(f"f{line}", Location("a.sql", line), pa.schema(columns))


def test_the_widest_of_each_column_is_taken_in_the_order_of_the_flows() -> None:
    parts = [part(1, id=pa.int64(), n=pa.int32()), part(2, n=pa.float64()), part(3, x=pa.string())]
    found = agreed("staging.t", parts)
    assert found == pa.schema([("id", pa.int64()), ("n", pa.float64()), ("x", pa.string())])


def test_conflicting_flows_are_reported_with_lines_column_and_types() -> None:
    """ARC-5: a decimal with a double became a double, which has lost digits."""
    parts = [part(1, d=pa.decimal128(38, 2)), part(4, x=pa.string()), part(7, d=pa.float64())]
    with pytest.raises(PipelineError) as raised:
        agreed("staging.t", parts)
    assert [str(one) for one in raised.value.problems] == [
        "a.sql:7: staging.t: f7 does not fit together with f1, at a.sql:1: column d is"
        " decimal(38,2) and double, and neither holds all values of the other. Cast it in one of"
        " them"
    ]


def test_names_that_delta_takes_for_one_are_refused() -> None:
    with pytest.raises(PipelineError, match="case-insensitive"):
        agreed("staging.t", [part(1, Id=pa.int64()), part(2, id=pa.int64())])


@pytest.mark.parametrize(
    ("brought", "declared", "stored"),
    [
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.decimal128(38, 2), pa.float64(), pa.float64()),
        (pa.float64(), pa.int64(), pa.float64()),
        (pa.string(), pa.int64(), pa.string()),
    ],
)
def test_a_declared_type_is_chosen_where_it_is_the_wider_kind(
    brought: pa.DataType, declared: pa.DataType, stored: pa.DataType
) -> None:
    """Others are left as they are, and refused with both types when they are put together."""
    flow, table = pa.schema([("n", brought), ("x", pa.bool_())]), pa.schema([("n", declared)])
    assert as_declared(flow, table) == pa.schema([("n", stored), ("x", pa.bool_())])


RAW_DAY = ("day", "raw.t.day")


@pytest.mark.parametrize(
    ("columns", "doubled"),
    [
        ([("id", ""), ("price", "")], []),
        ([("id", ""), ("ID", ""), ("id", "")], ["id"]),
        ([("Day", ""), ("day", ""), ("id", ""), ("id", "")], ["Day", "id"]),
    ],
)
def test_each_duplicate_column_is_reported_once(columns: list[Column], doubled: list[str]) -> None:
    found = list(doubled_column_complaints("staging.x", columns, "SELECT"))
    assert found == [
        f"staging.x has the column {name} twice; names that differ in small and capital letters"
        " only are the same, so rename one"
        for name in doubled
    ]


def test_a_duplicate_day_is_reported_with_the_table_that_adds_one() -> None:
    (found,) = doubled_column_complaints("staging.x", [("id", ""), RAW_DAY, ("DAY", "")], "SELECT")
    assert found == (
        "staging.x has the column day twice: raw.t adds one, as it is partitioned by topic"
        " and day. Write SELECT * EXCEPT (day), ..., or PARTITIONED BY () at raw.t"
    )


def test_advice_for_functions_is_written_in_python() -> None:
    (found,) = doubled_column_complaints("staging.x", [RAW_DAY, ("day", "")], lambda: None)  # type: ignore[arg-type,return-value]
    assert found.endswith('Write .drop("day") before your own, or partition_cols=[] at raw.t')
