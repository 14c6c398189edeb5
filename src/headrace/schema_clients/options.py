"""Schemas and options that serializers and deserializers of all types accept."""

from collections.abc import Mapping
from typing import TypedDict

from headrace.schema_clients.registry_client import NewSchema
from headrace.schema_clients.rules.execution import Action
from headrace.schema_clients.rules.executors import Function
from headrace.serdes.schemas import SchemaType
from headrace.serdes.subject_strategies import SubjectName


class SerializerOptions(TypedDict, total=False):
    """See `SchemaSerializer`."""

    subject_name: SubjectName
    registers: bool
    latest_with: Mapping[str, str] | None
    normalizes: bool
    id_in_header: bool
    functions: Mapping[str, Function] | None
    actions: Mapping[str, Action] | None


class DeserializerOptions(TypedDict, total=False):
    """See `SchemaDeserializer`."""

    makes: type | None
    reads_latest: bool
    latest_with: Mapping[str, str] | None
    subject_name: SubjectName
    functions: Mapping[str, Function] | None
    actions: Mapping[str, Action] | None


GivenSchema = str | type | NewSchema


def new_schema(given: GivenSchema | None, type_: SchemaType) -> NewSchema | None:
    """Return the schema to register."""
    if given is None or isinstance(given, NewSchema):
        return given
    if isinstance(given, str):
        return NewSchema(given, type_.value)
    # A class may need libraries that texts do not.
    from headrace.serdes.classes.conversion import schema_of

    return NewSchema(schema_of(given, type_), type_.value)


def class_of(given: GivenSchema | None) -> type | None:
    """Return the class that values become if the reader's schema was given as one."""
    return given if isinstance(given, type) else None
