"""Converts classes to schemas of any type, and schemas to Python source.

The modules of the schema types are imported on use, so that a program with classes only does not
load the libraries of all types.
"""

from collections.abc import Sequence
from typing import Any

from headrace.serdes.classes import source
from headrace.serdes.classes.inspection import shape_of
from headrace.serdes.classes.model import Shape
from headrace.serdes.classes.naming import Flavour
from headrace.serdes.schemas import Dependency, SchemaType


def schema_of(cls: type, type: SchemaType) -> str:
    """Return the schema of a dataclass, a Pydantic model or a msgspec Struct."""
    shape = shape_of(cls)
    match type:
        case SchemaType.AVRO:
            from headrace.serdes.classes import avro

            return avro.write(shape)
        case SchemaType.JSON:
            from headrace.serdes.classes import json_schema

            return json_schema.write(shape)
        case SchemaType.PROTOBUF:
            from headrace.serdes.classes import protobuf

            return protobuf.write(shape)


def source_of_avro(text: str, flavour: Flavour = Flavour.DATACLASS) -> str:
    """Return Python source of the classes of an Avro schema with its references inlined."""
    from headrace.serdes.classes import avro

    return source.write(_reachable(avro.read(text)), flavour)


def source_of_json_schema(
    text: str,
    flavour: Flavour = Flavour.DATACLASS,
    dependencies: Sequence[Dependency] = (),
) -> str:
    """Return Python source of the classes of a JSON Schema and its references."""
    from headrace.serdes.classes import json_schema

    return source.write(_reachable(json_schema.read(text, dependencies)), flavour)


def source_of_descriptor(
    file: Any,
    flavour: Flavour = Flavour.DATACLASS,
    *,
    message: str | None = None,
    dependencies: Sequence[Any] = (),
) -> str:
    """Return Python source of the classes of a message, from its file's `FileDescriptorProto`."""
    from headrace.serdes.classes import protobuf

    return source.write(_reachable(protobuf.read(file, message, dependencies)), flavour)


def _reachable(shape: Shape) -> Shape:
    """Drop definitions that the root does not use, such as merged parts of an `allOf`."""
    names = set(source.in_order(shape))
    kept = {name: each for name, each in shape.definitions.items() if name in names}
    return Shape(shape.root, kept)
