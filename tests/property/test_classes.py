"""Classes and schemas of all types: a class, its schema, the class from that, the same schema."""

import subprocess
import sys
import types
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headrace.serdes.classes import Flavour, avro, inspection, json_schema, protobuf, source
from headrace.serdes.classes.model import (
    MISSING,
    Choice,
    DecimalOf,
    Enumeration,
    Field,
    ListOf,
    MapOf,
    Named,
    Record,
    Scalar,
    Shape,
    Type,
    UnionOf,
)

# Each example starts a program, so a failing one is reported as it is: to shrink it takes minutes.
FEW = settings(deadline=None, phases=[Phase.explicit, Phase.generate])

NAMES = st.sampled_from(
    ["id", "name", "type", "from", "class", "date", "str", "copy", "model_x", "Line", "x1", "_y"]
)
LETTERS = st.characters(max_codepoint=0x17F) | st.sampled_from("日本😍")
DOCS = st.none() | st.sampled_from(
    ["Short.", 'Quotes "so".', "Two\n\nparagraphs of it.", "back\\slash", "x" * 90, "it's"]
)
DEFAULTS: dict[Type, st.SearchStrategy[Any]] = {
    Scalar.BOOLEAN: st.booleans(),
    Scalar.STRING: st.text(LETTERS, max_size=5) | st.just("long " * 20),
    Scalar.BYTES: st.binary(max_size=5),
    Scalar.LONG: st.integers(-(2**63), 2**63 - 1),
    Scalar.INT: st.integers(-5, 5),
    Scalar.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    Scalar.DATE: st.dates(),
    Scalar.TIME: st.times(),
    Scalar.TIMESTAMP: st.datetimes(
        min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)
    ),
    Scalar.UUID: st.uuids(),
    DecimalOf(8, 2): st.decimals(-1000, 1000, places=2),
    Choice(("new", "done")): st.sampled_from(["new", "done"]),
    Named("acme.Color"): st.sampled_from(["red", "class"]),
}
COLOR = Enumeration(name="acme.Color", members=(("red", "red"), ("class", "class")), doc="Hue.")
PLAIN: st.SearchStrategy[Type] = st.sampled_from([*DEFAULTS, Named("acme.Line")])


def of(type_: Type) -> st.SearchStrategy[Any]:
    match type_:
        case ListOf(item) if item in DEFAULTS:
            return st.lists(DEFAULTS[item], max_size=3)
        case MapOf(value) if value in DEFAULTS:
            return st.dictionaries(st.text(LETTERS, max_size=3), DEFAULTS[value], max_size=2)
        case UnionOf(options):
            return st.none() | DEFAULTS.get(options[0], st.none())
        case Named("acme.Line"):
            return st.fixed_dictionaries({"sku": st.text(LETTERS, max_size=3)})
        case _:
            return DEFAULTS.get(type_, st.just(MISSING))


def nullable(type_: Type) -> Type:
    return UnionOf((type_, Scalar.NULL))


TYPES: st.SearchStrategy[Type] = st.one_of(
    PLAIN,
    PLAIN.map(ListOf),
    PLAIN.map(MapOf),
    PLAIN.map(nullable),
    st.just(nullable(Named("acme.Order"))),
)


@st.composite
def fields(draw: st.DrawFn, name: str) -> Field:
    type_ = draw(TYPES)
    default = draw(st.just(MISSING) | of(type_))
    return Field(name=name, type=type_, default=default, doc=draw(DOCS))


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    order = Record(
        name="acme.Order", fields=tuple(draw(fields(name)) for name in names), doc=draw(DOCS)
    )
    line = Record(name="acme.Line", fields=(Field(name="sku", type=Scalar.STRING),))
    every = {each.name: each for each in (order, line, COLOR)}
    return Shape(Named("acme.Order"), every)


def class_of(shape: Shape, flavour: Flavour) -> type:
    """The class that the source of a shape defines, in a module as source has it."""
    module = types.ModuleType("made_by_test")
    sys.modules[module.__name__] = module
    exec(compile(source.write(shape, flavour), "made", "exec"), module.__dict__)
    found = module.__dict__["Order"]
    assert isinstance(found, type)
    return found


def compiled(text: str) -> Any:
    protoc = Path(sys.executable).parent / "protoc"
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "a.proto").write_text(text)
        command = [
            str(protoc),
            f"-I{path}",
            "--include_source_info",
            f"--descriptor_set_out={path}/out",
        ]
        subprocess.run([*command, "a.proto"], check=True, capture_output=True)
        return FileDescriptorSet.FromString((path / "out").read_bytes()).file[0]


@pytest.mark.parametrize("flavour", Flavour)
@given(shapes())
def test_an_avro_schema_gives_the_class_that_gives_it(flavour: Flavour, shape: Shape) -> None:
    text = avro.write(inspection.shape_of(class_of(shape, flavour)))
    again = inspection.shape_of(class_of(avro.read(text), flavour))
    assert avro.write(again) == text


@pytest.mark.parametrize("flavour", Flavour)
@given(shapes())
def test_a_json_schema_gives_the_class_that_gives_it(flavour: Flavour, shape: Shape) -> None:
    text = json_schema.write(inspection.shape_of(class_of(shape, flavour)))
    again = inspection.shape_of(class_of(json_schema.read(text), flavour))
    assert json_schema.write(again) == text


@pytest.mark.parametrize("flavour", Flavour)
@given(
    shapes().filter(lambda shape: all(f.name != "_y" for f in shape.record("acme.Order").fields))
)
@settings(FEW, max_examples=8)
def test_a_protobuf_file_gives_the_class_that_gives_it(flavour: Flavour, shape: Shape) -> None:
    text = protobuf.write(inspection.shape_of(class_of(shape, flavour)))
    again = inspection.shape_of(class_of(protobuf.read(compiled(text)), flavour))
    assert protobuf.write(again) == text
