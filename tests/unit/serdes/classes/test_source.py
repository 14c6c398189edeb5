"""Python source from the model: its text in each flavour, and valid names."""

import pytest

from headrace.serdes.classes import Flavour, source
from headrace.serdes.classes.model import (
    MISSING,
    DecimalOf,
    Enumeration,
    Field,
    ListOf,
    Named,
    Record,
    Scalar,
    Shape,
    UnionOf,
)

ORDER = Shape(
    Named("acme.Order"),
    {
        "acme.Order": Record(
            name="acme.Order",
            doc="An order.",
            fields=(
                Field(name="from", type=Scalar.STRING),
                Field(name="colors", type=ListOf(Named("Color")), default=["red"]),
                Field(name="price", type=DecimalOf(8, 2), doc="In euros."),
                Field(name="next", type=UnionOf((Scalar.NULL, Named("acme.Order"))), default=None),
            ),
        ),
        "Color": Enumeration(name="Color", members=(("red", "red"), ("none", "None"))),
    },
)

DATACLASS = '''\
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from headrace.serdes.classes import Wire, named
from typing import Annotated


class Color(StrEnum):
    red = "red"
    none = "None"


@named("acme.Order")
@dataclass(kw_only=True)
class Order:
    """An order."""
    from_: Annotated[str, Wire(name="from")]
    colors: list[Color] = field(default_factory=lambda: [Color.red])
    price: Annotated[Decimal, Wire(precision=8, scale=2, doc="In euros.")]
    next: "Order | None" = None
'''

MODEL = '''\
@named("acme.Order")
class Order(BaseModel):
    """An order."""
    model_config = ConfigDict(populate_by_name=True)
    from_: str = Field(alias="from")
    colors: list[Color] = Field(default_factory=lambda: [Color.red])
'''

STRUCT = '''\
@named("acme.Order")
class Order(Struct, kw_only=True):
    """An order."""
    from_: str = field(name="from")
    colors: list[Color] = field(default_factory=lambda: [Color.red])
'''


def record(*fields: Field, name: str = "R") -> Shape:
    return Shape(Named(name), {name: Record(name=name, fields=fields)})


def attribute(name: str, flavour: Flavour = Flavour.DATACLASS) -> str:
    text = source.write(record(Field(name=name, type=Scalar.LONG)), flavour)
    return text.splitlines()[-1].strip().partition(":")[0]


def default(value: object, type_: Scalar = Scalar.STRING) -> str:
    text = source.write(record(Field(name="x", type=type_, default=value)))
    return text.splitlines()[-1].partition(" = ")[2]


def test_a_dataclass_is_written() -> None:
    assert source.write(ORDER) == DATACLASS


@pytest.mark.parametrize(
    ("flavour", "text"), [(Flavour.PYDANTIC, MODEL), (Flavour.MSGSPEC, STRUCT)]
)
def test_other_flavours_have_their_own_words_for_names(flavour: Flavour, text: str) -> None:
    assert text in source.write(ORDER, flavour)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", "plain"),
        ("class", "class_"),
        ("first-name", "first_name"),
        ("_hidden", "hidden"),
        ("1st", "field_1st"),
        ("é", "field_"),
        ("str", "str_"),
        ("date", "date_"),
        ("R", "R_"),
        ("name", "name"),
    ],
)
def test_a_field_gets_a_name_that_python_takes(name: str, expected: str) -> None:
    assert attribute(name) == expected


@pytest.mark.parametrize("name", ["model_dump", "copy", "json"])
def test_a_field_does_not_hide_attributes_of_models(name: str) -> None:
    assert attribute(name, Flavour.PYDANTIC) == f"{name}_"


def test_names_that_become_the_same_get_numbers() -> None:
    fields = [Field(name=name, type=Scalar.LONG) for name in ("a-b", "a_b")]
    assert "    a_b_2: " in source.write(record(*fields))


def test_a_class_does_not_hide_imports_of_the_module() -> None:
    assert "class Decimal_:" in source.write(record(name="Decimal"))


def test_an_empty_record_is_a_class() -> None:
    assert source.write(record()).endswith("@dataclass\nclass R:\n    pass\n")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("it's", '"it\'s"'),
        ('say "so"', "'say \"so\"'"),
        ("line\nline", "'line\\nline'"),
        ("é", '"é"'),
        (b"\x00a\\", "b'\\x00a\\\\'"),
        (1e20, "1e+20"),
        (float("inf"), 'float("inf")'),
    ],
)
def test_a_default_is_a_python_literal(value: object, expected: str) -> None:
    assert default(value) == expected


def test_a_field_without_a_default_has_none() -> None:
    assert default(MISSING) == ""
