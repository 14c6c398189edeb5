"""The model of classes of each flavour, and types without a schema."""

from dataclasses import make_dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest

from headrace.serdes.classes import Inexpressible, Wire, named
from headrace.serdes.classes.inspection import shape_of
from headrace.serdes.classes.model import (
    MISSING,
    Choice,
    DecimalOf,
    Field,
    ListOf,
    Named,
    Record,
    Scalar,
    Type,
    UnionOf,
)
from tests.unit.serdes.classes.orders import Color, Line, Model, Node, Order, Struct, WithMetadata


@named("Color")
class Tint(Enum):
    GREEN = "green"


def fields(cls: type) -> list[Field]:
    shape = shape_of(cls)
    return list(shape.record(shape.root.name).fields)


def type_of(hint: Any) -> Type:
    return fields(make_dataclass("Holder", [("x", hint)]))[0].type


def test_a_name_with_a_namespace_is_that_of_the_record() -> None:
    assert shape_of(Order).root == Named("com.acme.Order")


def test_a_generated_docstring_is_ignored() -> None:
    assert shape_of(Line).record("Line").doc is None


def test_definitions_keep_the_order_of_first_use() -> None:
    assert list(shape_of(Order).definitions) == ["com.acme.Order", "Line", "Color", "Level"]


def test_metadata_of_a_dataclass_field_counts() -> None:
    (field,) = fields(WithMetadata)
    assert (field.name, field.doc) == ("no", "Its number.")


def test_a_model_has_its_aliases_and_descriptions() -> None:
    field = fields(Model)[0]
    assert (field.name, field.doc, field.default) == ("key", "The key.", MISSING)


def test_a_struct_has_the_names_that_it_writes() -> None:
    field = fields(Struct)[0]
    assert (field.name, field.doc) == ("firstName", "As in the passport.")


def test_a_factory_that_gives_something_new_is_no_default() -> None:
    assert [field.default for field in fields(Model)] == [MISSING, [], MISSING]


def test_a_record_may_refer_to_itself() -> None:
    assert fields(Node)[1].type == ListOf(Named("Node"))


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (int | None, UnionOf((Scalar.LONG, Scalar.NULL))),
        (Literal["a", None], UnionOf((Scalar.NULL, Choice(("a",))))),
        (Annotated[Decimal, Wire(precision=4, scale=1)], DecimalOf(4, 1)),
        (tuple[str, ...], ListOf(Scalar.STRING)),
        (frozenset[bytes], ListOf(Scalar.BYTES)),
        (list, ListOf(Scalar.ANY)),
        (Annotated[float, Wire(kind="float32")], Scalar.FLOAT),
    ],
)
def test_a_hint_is_a_type(hint: Any, expected: Type) -> None:
    assert type_of(hint) == expected


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        (complex, r"Holder\.x: complex has no schema"),
        (tuple[int, str], "a tuple of fixed length"),
        (dict[bytes, int], "keys of a dict"),
        (Annotated[str, Wire(kind="int32")], "the kind 'int32' does not fit"),
        (Annotated[int, Wire(kind="int128")], "the kind 'int128' does not fit"),
        ("Nowhere", "at module level"),
    ],
)
def test_a_type_without_a_schema_is_reported_with_its_place(hint: Any, reason: str) -> None:
    with pytest.raises(Inexpressible, match=reason):
        type_of(hint)


def test_two_classes_of_one_name_need_other_names() -> None:
    holder = make_dataclass("Holder", [("a", Color), ("b", Tint)])
    with pytest.raises(Inexpressible, match="two classes have the name Color"):
        shape_of(holder)


def test_two_fields_of_one_name_are_refused() -> None:
    named = Annotated[int, Wire(name="a")]
    with pytest.raises(Inexpressible, match="two fields have the name 'a'"):
        shape_of(make_dataclass("Holder", [("a", int), ("b", named)]))


def test_a_schema_is_made_from_a_record() -> None:
    with pytest.raises(Inexpressible, match="is an enumeration"):
        shape_of(Color)


def test_a_plain_class_is_refused() -> None:
    with pytest.raises(Inexpressible, match="not a dataclass, Pydantic model or msgspec Struct"):
        shape_of(object)


def test_an_empty_record_is_a_record() -> None:
    shape = shape_of(make_dataclass("Empty", []))
    assert shape.definitions["Empty"] == Record(name="Empty", fields=())
