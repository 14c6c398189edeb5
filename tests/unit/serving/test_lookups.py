"""Conditions of a lookup as SQL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.serving.errors import ColumnNotFound, UnfitValue
from headrace.serving.lookups import is_rounded, lookup_columns, lookup_sql, may_be_rounded
from tests.builders.lake_services import ServedLake, as_tuples

TYPES = {"id": "BIGINT", 'odd"name': "VARCHAR"}
PATH = '"refined"."orders"'


def test_values_are_parameters_cast_to_the_columns_type() -> None:
    assert lookup_sql(PATH, TYPES, ["id"], [1]) == (
        'SELECT * FROM "refined"."orders" WHERE "id" = CAST(? AS BIGINT)'
    )


def test_several_values_of_a_column_ask_for_any_of_them() -> None:
    sql = lookup_sql(PATH, TYPES, ["id"], [2])
    assert sql.endswith('WHERE "id" IN (CAST(? AS BIGINT), CAST(? AS BIGINT))')


def test_several_columns_must_all_fit_and_odd_names_are_quoted() -> None:
    sql = lookup_sql(PATH, TYPES, ["id", 'odd"name'], [1, 1])
    assert '"id" = CAST(? AS BIGINT) AND "odd""name" = CAST(? AS VARCHAR)' in sql


def test_columns_are_found_however_their_letters_are_written() -> None:
    assert lookup_columns("refined.orders", TYPES, ["ID", 'Odd"Name']) == ["id", 'odd"name']


def test_an_unknown_column_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(ColumnNotFound, match="it has id"):
        lookup_columns("refined.orders", TYPES, ["di"])


@pytest.mark.parametrize(
    ("value", "type", "rounded"),
    [
        ("1.5", "BIGINT", True),
        ("15e-1", "TINYINT", True),
        (" 0.001 ", "INTEGER", True),
        ("1.0", "BIGINT", False),
        ("12e3", "SMALLINT", False),
        ("0.10", "DECIMAL(9,1)", False),
        ("0.11", "DECIMAL(9,1)", True),
        (f"{10**30}.5", "DECIMAL(38,0)", True),
        ("1.5", "DOUBLE", False),
        ("1.5", "VARCHAR", False),
        ("some.one", "BIGINT", False),
        ("NaN", "BIGINT", False),
    ],
)
def test_numbers_that_a_column_would_round_are_recognized(
    value: str, type: str, rounded: bool
) -> None:
    assert is_rounded(value, type) is rounded


@given(st.text("0123456789+-._eE \t\u00a0٣", max_size=8))
def test_rounded_values_are_recognized(value: str) -> None:
    assert may_be_rounded(value) or not is_rounded(value, "BIGINT")


@pytest.mark.parametrize(
    "value", ["6e0b7c2a-91d4-4e57-9a53-0c1f2e3d4b5a", "1.2.3", "ada@example.org", "east", "7"]
)
def test_texts_that_are_no_number_cost_no_further_look(value: str) -> None:
    assert not may_be_rounded(value)


def test_a_lookup_by_half_a_number_does_not_find_the_next_whole_one(served: ServedLake) -> None:
    served.orders(1, 2)
    served.refresh()
    with pytest.raises(UnfitValue, match=r"invalid value '1\.5' for column id"):
        served.look_up("orders", ID="1.5")
    assert as_tuples(served.look_up("orders", id="2.0")) == [(2, "item-2")]
