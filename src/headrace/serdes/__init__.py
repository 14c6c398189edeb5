"""Schemas and what they encode: Avro, JSON Schema, Protobuf, and the serializers of clients."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.serdes.clients.avro import AvroDeserializer as AvroDeserializer
    from headrace.serdes.clients.avro import AvroSerializer as AvroSerializer
    from headrace.serdes.clients.json_schema import (
        JsonSchemaDeserializer as JsonSchemaDeserializer,
    )
    from headrace.serdes.clients.json_schema import JsonSchemaSerializer as JsonSchemaSerializer
    from headrace.serdes.clients.protobuf import ProtobufDeserializer as ProtobufDeserializer
    from headrace.serdes.clients.protobuf import ProtobufSerializer as ProtobufSerializer
    from headrace.serdes.registry_client import NewSchema as NewSchema
    from headrace.serdes.registry_client import Reference as Reference
    from headrace.serdes.registry_client import RegistryClient as RegistryClient
    from headrace.serdes.subject_strategies import record_subject as record_subject
    from headrace.serdes.subject_strategies import topic_record_subject as topic_record_subject
    from headrace.serdes.subject_strategies import topic_subject as topic_subject

# The public names and where they live, imported when first used: a broker imports this package
# too, and has none of the libraries that the formats need.
_HOMES = {
    "AvroDeserializer": "clients.avro",
    "AvroSerializer": "clients.avro",
    "JsonSchemaDeserializer": "clients.json_schema",
    "JsonSchemaSerializer": "clients.json_schema",
    "NewSchema": "registry_client",
    "ProtobufDeserializer": "clients.protobuf",
    "ProtobufSerializer": "clients.protobuf",
    "Reference": "registry_client",
    "RegistryClient": "registry_client",
    "record_subject": "subject_strategies",
    "topic_record_subject": "subject_strategies",
    "topic_subject": "subject_strategies",
}


if not TYPE_CHECKING:  # A type checker shall not take a misspelt name for a name.

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'headrace.serdes' has no attribute {name!r}")
        found = getattr(import_module(f"headrace.serdes.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
