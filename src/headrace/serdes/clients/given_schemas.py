"""A schema as users give it: a text, a Python class, or one with references and rules."""

from typing import TypedDict

from headrace.serdes.registry_client import NewSchema
from headrace.serdes.schemas import SchemaType

GivenSchema = str | type | NewSchema


class _Made(TypedDict, total=False):
    makes: type


def new_schema(given: GivenSchema | None, type_: SchemaType) -> NewSchema | None:
    """What would be registered."""
    if given is None or isinstance(given, NewSchema):
        return given
    text = given if isinstance(given, str) else schema_of(given, type_)
    return NewSchema(text, type_.value)


def made_by(given: GivenSchema | None) -> _Made:
    """A class that is given as a reader's schema is also what values become."""
    if isinstance(given, type) and not hasattr(given, "DESCRIPTOR"):
        return {"makes": given}
    return {}


def schema_of(class_: type, type_: SchemaType) -> str:
    """The schema of a Python class: dataclass, msgspec Struct, Pydantic model."""
    from headrace.serdes.classes import schema_text

    return schema_text(class_, type_)
