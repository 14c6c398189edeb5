"""Schemas are parsed late and once, and strictly only if they are new."""

import sys
from collections.abc import Sequence

import pytest

from headrace.registry.schema_types import Kind, MissingLibrary, SchemaTypes, installed_kind
from headrace.serdes.schemas import Dependency, InvalidSchema, ParsedSchema, SchemaType


class Text:
    """A schema that consists of its text only."""

    type = SchemaType.AVRO

    def __init__(self, text: str) -> None:
        self.text = text

    def canonical(self) -> str:
        return self.text

    def normalized(self) -> str:
        return self.text.lower()

    def meaning(self, *, normalized: bool = False) -> str:
        return self.canonical()

    def field_names(self) -> frozenset[str]:
        return frozenset()

    def formatted(self, format: str) -> str:
        return self.text


class Reader:
    """Parses texts, and lists them."""

    def __init__(self) -> None:
        self.read: list[tuple[str, bool]] = []

    def parse(
        self, text: str, dependencies: Sequence[Dependency] = (), *, lenient: bool = False
    ) -> ParsedSchema:
        if text == "wrong" and not lenient:
            raise InvalidSchema("it is wrong")
        self.read.append((text, lenient))
        return Text(text)


@pytest.fixture
def reader() -> Reader:
    return Reader()


def types_of(reader: Reader, *, is_lenient: bool = False) -> SchemaTypes:
    kind = Kind(reader.parse, lambda one, other: [], has_lenient_reading=True)
    return SchemaTypes(lambda name: kind, is_lenient=is_lenient, parsed_max=2)


def test_a_schema_is_read_once(reader: Reader) -> None:
    types = types_of(reader)
    found = [types.parse("AVRO", "a", (), is_new=False) for _ in range(2)]
    assert found[0] is found[1]


def test_the_schemas_that_were_asked_for_last_are_kept(reader: Reader) -> None:
    types = types_of(reader)
    for text in ("a", "b", "a", "c", "a", "b"):
        types.parse("AVRO", text, (), is_new=False)
    assert [text for text, _ in reader.read] == ["a", "b", "c", "b"]


def test_other_dependencies_make_another_schema(reader: Reader) -> None:
    types = types_of(reader)
    for version in ("1", "2"):
        types.parse("AVRO", "a", [Dependency("d", version)], is_new=False)
    assert len(reader.read) == 2


def test_a_new_schema_is_read_strictly(reader: Reader) -> None:
    with pytest.raises(InvalidSchema):
        types_of(reader).parse("AVRO", "wrong", (), is_new=True)


def test_a_stored_schema_is_good_enough(reader: Reader) -> None:
    types_of(reader).parse("AVRO", "wrong", (), is_new=False)
    assert reader.read == [("wrong", True)]


def test_leniency_can_be_had_for_new_schemas(reader: Reader) -> None:
    """SCH-3."""
    types_of(reader, is_lenient=True).parse("AVRO", "wrong", (), is_new=True)
    assert reader.read == [("wrong", True)]


@pytest.mark.parametrize("name", SchemaTypes.names)
def test_every_type_has_its_functions(name: str) -> None:
    """SCH-13."""
    kind = installed_kind(name)
    assert callable(kind.parse)
    assert callable(kind.incompatibilities)


def test_a_library_that_is_missing_is_named_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    for module in ("serdes.json_schema.parsing", "registry.compatibility.json_schema.comparison"):
        monkeypatch.delitem(sys.modules, f"headrace.{module}", raising=False)
    installed_kind.cache_clear()
    with pytest.raises(MissingLibrary, match=r"jsonschema_rs is not installed.*\[registry\]"):
        SchemaTypes().parse("JSON", "{}", (), is_new=True)
