"""A schema as users give it: a text, a Python class, or one with references and rules."""

from headrace.serdes.registry_client import NewSchema
from headrace.serdes.schemas import SchemaType

GivenSchema = str | type | NewSchema


def new_schema(given: GivenSchema | None, type_: SchemaType) -> NewSchema | None:
    """What would be registered."""
    if given is None or isinstance(given, NewSchema):
        return given
    text = given if isinstance(given, str) else schema_of(given, type_)
    return NewSchema(text, type_.value)


def class_of(given: GivenSchema | None) -> type | None:
    """A class that is given as a reader's schema is also what values become."""
    return given if isinstance(given, type) else None


def schema_of(class_: type, type_: SchemaType) -> str:
    """The schema of a Python class: dataclass, msgspec Struct, Pydantic model."""
    from headrace.serdes.classes import avro, json_schema, protobuf
    from headrace.serdes.classes.inspection import shape_of

    write = {
        SchemaType.AVRO: avro.write,
        SchemaType.JSON: json_schema.write,
        SchemaType.PROTOBUF: protobuf.write,
    }
    return write[type_](shape_of(class_))
