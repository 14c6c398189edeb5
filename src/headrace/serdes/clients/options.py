"""What serializers and deserializers of all types may be told, by name."""

from collections.abc import Mapping
from typing import TypedDict

from headrace.serdes.rules.execution import Action
from headrace.serdes.rules.executors import Function
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
