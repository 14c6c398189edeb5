"""Which schemas tables can have, and which changes they go through."""

from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.errors import IncompatibleSchema
from headrace.lake.schemas import conform, evolution, holding_both, normalised, type_text

OLD = pa.schema([("id", pa.int32()), ("name", pa.string()), ("at", pa.struct([("x", pa.int32())]))])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (pa.large_string(), pa.string()),
        (pa.uint8(), pa.int16()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.timestamp("ns", tz="Europe/Paris"), pa.timestamp("us", tz="UTC")),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.large_list(pa.large_string()), pa.list_(pa.field("element", pa.string()))),
        (pa.struct([("a", pa.uint8())]), pa.struct([("a", pa.int16())])),
        (pa.map_(pa.large_string(), pa.uint8()), pa.map_(pa.string(), pa.int16())),
    ],
)
def test_types_that_delta_lacks_become_types_that_hold_all_values(
    given: pa.DataType, kept: pa.DataType
) -> None:
    assert normalised(pa.schema([("c", given)])).field("c").type == kept


@pytest.mark.parametrize("of", [pa.time64("us"), pa.null(), pa.duration("s")])
def test_unsupported_types_are_rejected_by_name(of: pa.DataType) -> None:
    with pytest.raises(IncompatibleSchema, match=r"column s\.c has the type"):
        normalised(pa.schema([("s", pa.struct([("c", of)]))]))


def test_names_that_differ_in_capitals_only_are_refused() -> None:
    with pytest.raises(IncompatibleSchema, match="case-insensitive"):
        normalised(pa.schema([("id", pa.int64()), ("Id", pa.int64())]))


def test_a_new_column_comes_last_and_is_nullable() -> None:
    """ARC-4: schemas evolve by rule."""
    new = pa.schema([pa.field("price", pa.float64(), nullable=False), *OLD])
    change = evolution(OLD, new)
    assert change.added == ("price",)
    assert change.schema.names == ["id", "name", "at", "price"]
    assert change.schema.field("price").nullable


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int8(), pa.int64()),
        (pa.int32(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(8, 2), pa.decimal128(12, 3)),
        (pa.int32(), pa.decimal128(12, 2)),
    ],
)
def test_a_type_may_become_wider(old: pa.DataType, new: pa.DataType) -> None:
    change = evolution(pa.schema([("c", old)]), pa.schema([("c", new)]))
    assert change.widened == ("c",)
    assert change.schema.field("c").type == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.float64()),
        (pa.float64(), pa.float32()),
        (pa.decimal128(12, 2), pa.decimal128(12, 3)),
        (pa.int64(), pa.decimal128(12, 2)),
        (pa.string(), pa.int64()),
        (pa.timestamp("us", tz="UTC"), pa.date32()),
        (pa.struct([("x", pa.int64())]), pa.int64()),
    ],
)
def test_a_type_does_not_become_narrower_or_another(old: pa.DataType, new: pa.DataType) -> None:
    """ARC-4: the refusal names the column, both types and what to do."""
    with pytest.raises(IncompatibleSchema) as refused:
        evolution(pa.schema([("amount", old)]), pa.schema([("amount", new)]))
    message = str(refused.value)
    assert "column amount" in message
    assert type_text(old) in message
    assert type_text(new) in message
    assert "rebuild the table" in message


def test_columns_inside_structs_and_lists_evolve_too() -> None:
    old = pa.schema([("s", pa.struct([("x", pa.int32())])), ("l", pa.list_(pa.int32()))])
    new = pa.schema(
        [("s", pa.struct([("x", pa.int64()), ("y", pa.string())])), ("l", pa.list_(pa.int64()))]
    )
    change = evolution(normalised(old), new)
    assert change.added == ("s.y",)
    assert change.widened == ("s.x", "l.element")


def test_a_column_that_may_be_null_does_not_become_required() -> None:
    with pytest.raises(IncompatibleSchema, match="column id may be null"):
        evolution(OLD, pa.schema([pa.field("id", pa.int32(), nullable=False)]))


def test_a_required_column_must_stay() -> None:
    required = pa.schema([pa.field("id", pa.int32(), nullable=False)])
    assert not evolution(required, pa.schema([("id", pa.int32())])).is_change
    with pytest.raises(IncompatibleSchema, match="column id is required"):
        evolution(required, pa.schema([("name", pa.string())]))


def test_a_column_that_is_missing_in_the_new_schema_stays() -> None:
    change = evolution(OLD, pa.schema([("id", pa.int32())]))
    assert not change.is_change
    assert change.schema == OLD


def test_rows_take_the_order_and_types_of_the_table() -> None:
    rows = pa.table({"name": pa.array(["a"], pa.large_string()), "id": pa.array([1], pa.int64())})
    found = conform(rows, OLD)
    assert found.schema == OLD
    assert found.to_pylist() == [{"id": 1, "name": "a", "at": None}]


def test_rows_that_do_not_fit_are_refused_by_column() -> None:
    with pytest.raises(IncompatibleSchema, match="column id is int and the rows have string"):
        conform(pa.table({"id": ["many"]}), OLD)
    with pytest.raises(IncompatibleSchema, match="column id is int and the rows have long"):
        conform(pa.table({"id": [1 << 40]}), OLD)
    with pytest.raises(IncompatibleSchema, match="no column colour"):
        conform(pa.table({"colour": ["red"]}), OLD)


def test_nulls_in_a_required_column_are_refused() -> None:
    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    with pytest.raises(IncompatibleSchema, match="1 of 2 rows"):
        conform(pa.table({"id": [1, None]}), required)
    with pytest.raises(IncompatibleSchema, match="the rows lack it"):
        conform(pa.table({}), required)


def test_nulls_in_a_required_column_are_rejected_in_rows_with_its_schema() -> None:
    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    with pytest.raises(IncompatibleSchema, match="column id is required and null in 1 of 2 rows"):
        conform(pa.table([pa.array([1, None])], schema=required), required)


@pytest.mark.parametrize(
    ("of", "fine", "bad", "path"),
    [
        (pa.struct([pa.field("a", pa.int64(), False)]), {"a": 1}, {"a": None}, "x.a"),
        (pa.list_(pa.field("element", pa.int64(), False)), [1, 2], [1, None], "x.element"),
        (
            pa.map_(pa.string(), pa.field("value", pa.int64(), False)),
            [("a", 1)],
            [("a", None)],
            "x.value",
        ),
        (
            pa.list_(pa.field("element", pa.struct([pa.field("a", pa.int64(), False)]))),
            [{"a": 1}, None],
            [{"a": 1}, {"a": None}],
            "x.element.a",
        ),
    ],
)
def test_nulls_in_required_fields_are_rejected_but_null_parents_are_not(
    of: pa.DataType, fine: Any, bad: Any, path: str
) -> None:
    schema = pa.schema([pa.field("x", of)])
    rows = pa.table([pa.array([bad, fine, None, fine], of)], schema=schema)
    assert conform(rows.slice(1), schema).num_rows == rows.num_rows - 1
    with pytest.raises(IncompatibleSchema, match=f"column {path} is required"):
        conform(rows, schema)


def struct(of: pa.DataType, *, nullable: bool = True) -> pa.DataType:
    return pa.struct([pa.field("x", of, nullable)])


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (pa.int32(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.int64(), pa.decimal128(21, 2)),
        (pa.decimal128(10, 2), pa.decimal128(12, 4)),
        (pa.null(), pa.string()),
        (struct(pa.int32()), struct(pa.int64())),
        (struct(pa.int32(), nullable=False), struct(pa.int32())),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())),
    ],
)
def test_the_wider_of_two_types_is_common(narrow: pa.DataType, wide: pa.DataType) -> None:
    one, other = pa.schema([("c", narrow)]), pa.schema([("c", wide)])
    assert holding_both(one, other) == holding_both(other, one) == other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.decimal128(38, 2), pa.float64()),
        (pa.int64(), pa.float64()),
        (pa.int64(), pa.decimal128(20, 2)),
        (pa.decimal128(38, 2), pa.decimal128(38, 10)),
        (pa.string(), pa.binary()),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.timestamp("us", "UTC"), pa.date32()),
        (struct(pa.int64()), struct(pa.float64())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.binary(), pa.int32())),
    ],
)
def test_two_types_that_cannot_hold_each_other_are_rejected(
    one: pa.DataType, other: pa.DataType
) -> None:
    """ARC-5: a third type would change numbers silently, such as a double for a decimal."""
    for pair in ((one, other), (other, one)):
        with pytest.raises(IncompatibleSchema, match=r"column c.* neither holds all values"):
            holding_both(*(pa.schema([("c", of)]) for of in pair))


def test_columns_that_one_schema_lacks_are_nullable() -> None:
    required = pa.schema([pa.field("a", pa.string(), nullable=False), ("b", pa.int32())])
    found = holding_both(required, pa.schema([pa.field("c", pa.bool_(), nullable=False)]))
    assert found == pa.schema([("a", pa.string()), ("b", pa.int32()), ("c", pa.bool_())])
