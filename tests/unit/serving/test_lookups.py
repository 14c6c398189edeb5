"""Conditions of a lookup as SQL."""

import pytest

from headrace.serving.errors import ColumnNotFound
from headrace.serving.lookups import asked_columns, lookup

TYPES = {"id": "BIGINT", 'odd"name': "VARCHAR"}
PATH = '"refined"."orders"'


def test_values_are_parameters_cast_to_the_columns_type() -> None:
    assert lookup(PATH, TYPES, ["id"], [1]) == (
        'SELECT * FROM "refined"."orders" WHERE "id" = CAST(? AS BIGINT)'
    )


def test_several_values_of_a_column_ask_for_any_of_them() -> None:
    sql = lookup(PATH, TYPES, ["id"], [2])
    assert sql.endswith('WHERE "id" IN (CAST(? AS BIGINT), CAST(? AS BIGINT))')


def test_several_columns_must_all_fit_and_odd_names_are_quoted() -> None:
    sql = lookup(PATH, TYPES, ["id", 'odd"name'], [1, 1])
    assert '"id" = CAST(? AS BIGINT) AND "odd""name" = CAST(? AS VARCHAR)' in sql


def test_columns_are_found_however_their_letters_are_written() -> None:
    assert asked_columns("refined.orders", TYPES, ["ID", 'Odd"Name']) == ["id", 'odd"name']


def test_an_unknown_column_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(ColumnNotFound, match="it has id"):
        asked_columns("refined.orders", TYPES, ["di"])
