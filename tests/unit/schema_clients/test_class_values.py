"""Objects of classes, written by the schemas of these classes and read into objects again."""

import dataclasses
import datetime
import enum
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest

from headrace.errors import HeadraceError
from headrace.schema_clients.plain_values import UnfitObject
from headrace.serdes import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from headrace.serdes.classes import Flavour, Wire
from headrace.serdes.classes.conversion import source_of_avro
from headrace.serdes.wire_format import ID_SIZE
from tests.builders.registries import RegistryInMemory

AVRO = AvroSerializer, AvroDeserializer
JSON = JsonSchemaSerializer, JsonSchemaDeserializer
PROTOBUF = ProtobufSerializer, ProtobufDeserializer
FORMATS = pytest.mark.parametrize("format", [AVRO, JSON, PROTOBUF], ids=["avro", "json", "proto"])


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 7


@dataclasses.dataclass
class Inner:
    colour: Colour
    next: "Inner | None" = None


ROWS: list[tuple[str, Any, Any]] = [
    ("count", int, 5),
    ("small", Annotated[int, Wire(kind="int32")], -5),
    ("share", float, 1.5),
    ("text", str, "é"),
    ("raw", bytes, b"\xff\x00"),
    ("yes", bool, True),
    ("price", Annotated[Decimal, Wire(precision=10, scale=2)], Decimal("12.30")),
    ("at", datetime.datetime, datetime.datetime(2026, 1, 2, 3, 4, 5, 678, datetime.UTC)),
    ("day", datetime.date, datetime.date(2024, 2, 29)),
    ("hour", datetime.time, datetime.time(1, 2, 3, 4)),
    ("id", UUID, UUID(int=7)),
    ("colour", Colour, Colour.BLUE),
    ("level", Level, Level.HIGH),
    ("low", Level, Level.LOW),
    ("letter", Literal["x", "y"], "y"),
    ("colours", list[Colour], [Colour.RED, Colour.BLUE]),
    ("by_name", dict[str, Colour], {"sky": Colour.BLUE}),
    ("members", set[int], {1}),
    ("gone", int | None, None),
    ("zero", int | None, 0),
    ("maybe", Colour | None, Colour.RED),
    ("inner", Inner, Inner(Colour.RED, Inner(Colour.BLUE))),
]
TYPES = {name: type_ for name, type_, _ in ROWS}
VALUES = {name: value for name, _, value in ROWS}

Made = Callable[[str, dict[str, Any]], type]


def dataclass_of(name: str, types: dict[str, Any]) -> type:
    return dataclasses.make_dataclass(name, types.items())


def struct_of(name: str, types: dict[str, Any]) -> type:
    return msgspec.defstruct(name, types.items())


def model_of(name: str, types: dict[str, Any]) -> type:
    fields: dict[str, Any] = {key: (type_, ...) for key, type_ in types.items()}
    made: type = pydantic.create_model(name, **fields)
    return made


def there_and_back(format: Any, value: Any) -> Any:
    registry = RegistryInMemory()
    serializer, deserializer = format
    payload = serializer(registry, type(value)).of_values("things", value)
    return deserializer(registry, type(value)).of_values("things", payload)


@FORMATS
@pytest.mark.parametrize("made", [dataclass_of, struct_of, model_of])
def test_a_value_of_every_type_comes_back_as_it_was(format: Any, made: Made) -> None:
    thing = made("Thing", TYPES)(**VALUES)
    assert there_and_back(format, thing) == thing


@pytest.mark.parametrize("made", [dataclass_of, struct_of, model_of])
@pytest.mark.parametrize("format", [JSON, PROTOBUF], ids=["json", "proto"])
def test_a_duration_comes_back_as_it_was(format: Any, made: Made) -> None:
    pauses = [datetime.timedelta(seconds=each) for each in (3.5, -0.25, 86_400 * 400)]
    thing = made("Wait", {"pauses": list[datetime.timedelta]})(pauses=pauses)
    assert there_and_back(format, thing) == thing


@dataclasses.dataclass
class Renamed:
    kind: Annotated[Colour, Wire(name="colourName")]
    inner: Annotated["Renamed | None", Wire(name="innerOne")] = None


class Aliased(pydantic.BaseModel):
    first: int = pydantic.Field(alias="firstName")
    last: int = pydantic.Field(serialization_alias="lastName")


@dataclasses.dataclass
class Mixed:
    model: Aliased
    renamed: Renamed


RENAMED = Renamed(Colour.RED, Renamed(Colour.BLUE))


@FORMATS
@pytest.mark.parametrize(
    "thing",
    [
        RENAMED,
        Aliased(firstName=1, last=2),
        Mixed(Aliased(firstName=1, last=2), RENAMED),
    ],
    ids=["dataclass", "model", "both"],
)
def test_fields_go_by_their_names_in_data(format: Any, thing: Any) -> None:
    assert there_and_back(format, thing) == thing


def test_readers_without_a_class_get_names_and_words_of_the_schema() -> None:
    registry = RegistryInMemory()
    payload = AvroSerializer(registry, Renamed).of_values("things", RENAMED)
    assert AvroDeserializer(registry).of_values("things", payload) == {
        "colourName": "red",
        "innerOne": {"colourName": "blue", "innerOne": None},
    }
    payload = ProtobufSerializer(registry, Renamed).of_values("others", RENAMED)
    message = ProtobufDeserializer(registry).of_values("others", payload)
    assert message.colourName == 1
    assert message.innerOne.colourName == 2


def test_objects_fit_the_subjects_newest_schema_as_well() -> None:
    registry = RegistryInMemory()
    ProtobufSerializer(registry, Renamed).of_values("things", RENAMED)
    payload = ProtobufSerializer(registry).of_values("things", RENAMED)
    assert ProtobufDeserializer(registry, Renamed).of_values("things", payload) == RENAMED


@pytest.mark.parametrize("flavour", list(Flavour))
def test_classes_of_a_schema_keep_names_that_python_cannot_have(flavour: Flavour) -> None:
    text = (
        '{"type": "record", "name": "Odd", "fields": [{"name": "class", "type": "int"},'
        ' {"name": "from", "type": {"type": "enum", "name": "Way", "symbols": ["in", "out"]}}]}'
    )
    registry = RegistryInMemory()
    written = {"class": 3, "from": "out"}
    payload = AvroSerializer(registry, text).of_values("odd", written)
    names: dict[str, Any] = {"__name__": __name__}
    exec(source_of_avro(text, flavour), names)
    odd = AvroDeserializer(registry, names["Odd"]).of_values("odd", payload)
    assert isinstance(odd, names["Odd"])
    again = AvroSerializer(registry, names["Odd"]).of_values("odd", odd)
    assert (again or b"")[ID_SIZE:] == (payload or b"")[ID_SIZE:]


@dataclasses.dataclass
class Defaults:
    number: int | None = 5
    colour: Colour = Colour.BLUE


def test_null_is_not_taken_for_a_default_by_protobuf() -> None:
    assert there_and_back(PROTOBUF, Defaults(None)) == Defaults(None)


def test_an_enumeration_that_a_message_leaves_out_is_the_default() -> None:
    registry = RegistryInMemory()
    ProtobufSerializer(registry, Defaults).of_values("things", Defaults())
    payload = ProtobufSerializer(registry).of_values("things", {"number": 1})
    assert ProtobufDeserializer(registry, Defaults).of_values("things", payload) == Defaults(1)


@FORMATS
def test_the_encoder_rejects_an_invalid_value_of_a_class(format: Any) -> None:
    registry = RegistryInMemory()
    serializer, _ = format
    with pytest.raises(HeadraceError, match="colour"):
        serializer(registry, Inner).of_values("things", Inner("green"))  # type: ignore[arg-type]


@dataclasses.dataclass
class Either:
    one: Inner | Defaults


def test_a_class_that_its_library_cannot_make_is_an_error() -> None:
    with pytest.raises(UnfitObject, match="is not a valid Either: Type unions may not contain"):
        there_and_back(AVRO, Either(Inner(Colour.RED)))
