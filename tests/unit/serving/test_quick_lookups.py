"""Lookups by key return the rows that queries return, in every version of a table."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.serving.answers import FewRows, write_json
from headrace.serving.errors import TableNotFound, UnfitValue
from tests.builders.lake_services import ServedLake, append, as_tuples, orders, replace

_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int16()),
        ("real", pa.float64()),
        ("short_real", pa.float32()),
        ("exact", pa.decimal128(12, 2)),
        ("is_so", pa.bool_()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
    ]
)
_VALUES = {
    "id": 7,
    "small": -3,
    "real": 0.1,
    "short_real": 0.1,
    "exact": Decimal("1.50"),
    "is_so": True,
    "text": 'say "ö"\n',
    "bytes": b"\x00\xff",
    "day": date(2026, 3, 1),
    "at": datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC),
    "local": datetime(2026, 3, 1, 12),
}


@pytest.fixture
def of_all_types(served: ServedLake) -> ServedLake:
    table = served.table("refined.all", _SCHEMA)
    empty = dict.fromkeys(_SCHEMA.names) | {"id": 8}
    append(table, pa.Table.from_pylist([_VALUES, empty], schema=_SCHEMA))
    served.refresh()
    served.ask("SELECT count(*) FROM refined.all")
    return served


def test_values_of_every_type_are_those_that_a_query_finds(of_all_types: ServedLake) -> None:
    for key in (7, 8, 9):
        quick = of_all_types.look_up("refined.all", id=str(key))
        usual = of_all_types.ask(f"SELECT * FROM refined.all WHERE id = {key}")
        assert isinstance(quick.rows, FewRows)
        assert write_json(quick) == write_json(usual)
        assert quick.table.equals(usual.table)


def test_times_beyond_python_s_years_are_looked_up_as_a_query_finds_them(
    served: ServedLake,
) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    table = served.table("refined.far", schema)
    append(table, pa.table({"id": [7], "at": [1_772_366_400_000 * 1_000_000]}, schema=schema))
    served.refresh()
    usual = served.ask("SELECT * FROM refined.far WHERE id = 7")
    found = served.look_up("refined.far", id="7")
    assert write_json(found) == write_json(usual)
    assert b"+58134-01-21T00:00:00Z" in write_json(found)
    assert found.table.equals(usual.table)


def test_rows_beyond_the_limit_are_cut(served: ServedLake) -> None:
    table = served.orders(1, 1, 1)
    served.refresh()
    served.ask("SELECT 1 FROM orders")
    answer = served.look_up("orders", rows_max=2, id="1")
    assert (answer.rows.num_rows, answer.cut) == (2, "rows")
    assert answer.versions == {"refined.orders": table.version}


def test_every_version_is_seen_after_any_kind_of_commit(served: ServedLake) -> None:
    table = served.orders(1)
    served.refresh()
    served.look_up("orders", id="1")
    append(table, orders(2))
    served.refresh()
    assert as_tuples(served.look_up("orders", id="2")) == [(2, "item-2")]
    replace(table, orders(3))
    served.refresh()
    assert as_tuples(served.look_up("orders", id="2")) == []
    answer = served.look_up("orders", id="3")
    assert isinstance(answer.rows, FewRows)
    assert (as_tuples(answer), answer.versions) == ([(3, "item-3")], {"refined.orders": 3})


def test_a_value_of_another_type_is_reported_with_the_columns_type(
    served: ServedLake,
) -> None:
    served.orders(1)
    served.refresh()
    for _ in ("the usual path, as nothing is loaded yet", "the quick path"):
        with pytest.raises(UnfitValue) as failure:
            served.look_up("orders", item="item-1", id="abc")
        assert str(failure.value) == "invalid value 'abc' for column id of refined.orders, a BIGINT"
        served.look_up("orders", id="1")


def test_concurrent_lookups_have_each_its_own_rows(served: ServedLake) -> None:
    served.orders(1, 2, 2, 3)
    served.refresh()
    for _ in ("the usual path, as nothing is loaded yet", "the quick path"):
        served.look_up("orders", id="1")
    values = ["1", "2", "02", "4", "3", "abc", "2"]
    with ThreadPoolExecutor(len(values)) as threads:
        asked = [threads.submit(served.look_up, "orders", id=value) for value in values]
    found = [str(one.exception() or as_tuples(one.result())) for one in asked]
    two = str([(2, "item-2"), (2, "item-2")])
    unfit = "invalid value 'abc' for column id of refined.orders, a BIGINT"
    assert found == [str([(1, "item-1")]), two, two, "[]", str([(3, "item-3")]), unfit, two]


def test_a_table_in_a_zone_that_is_not_served_is_reported(served: ServedLake) -> None:
    served.orders(1)
    served.orders(1, name="marts.orders")
    served.refresh()
    for name in ("staging.orders", "marts.orders"):
        with pytest.raises(TableNotFound, match="among its --zones"):
            served.look_up(name, id="1")
        with pytest.raises(TableNotFound, match="among its --zones"):
            served.ask(f"SELECT * FROM {name}")
    with pytest.raises(TableNotFound, match=r"did you mean refined\.orders"):
        served.look_up("refined.order", id="1")
