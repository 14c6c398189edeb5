"""Conditions of a lookup as SQL."""

import pytest

from headrace.serving.errors import ColumnNotFound
from headrace.serving.lookups import lookup

TYPES = {"id": "BIGINT", 'odd"name': "VARCHAR"}


def test_values_are_parameters_cast_to_the_columns_type() -> None:
    assert lookup("refined.orders", TYPES, {"id": ["7"]}) == (
        'SELECT * FROM "refined"."orders" WHERE "id" = CAST(? AS BIGINT)',
        ["7"],
    )


def test_several_values_of_a_column_ask_for_any_of_them() -> None:
    sql, parameters = lookup("refined.orders", TYPES, {"ID": ["7", "8"]})
    assert sql.endswith('WHERE "id" IN (CAST(? AS BIGINT), CAST(? AS BIGINT))')
    assert parameters == ["7", "8"]


def test_several_columns_must_all_fit_and_odd_names_are_quoted() -> None:
    sql, parameters = lookup("refined.orders", TYPES, {"id": ["7"], 'odd"name': ["x'; --"]})
    assert '"id" = CAST(? AS BIGINT) AND "odd""name" = CAST(? AS VARCHAR)' in sql
    assert parameters == ["7", "x'; --"]


def test_an_unknown_column_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(ColumnNotFound, match="it has id"):
        lookup("refined.orders", TYPES, {"di": ["7"]})
