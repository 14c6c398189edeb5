"""Avro, JSON Schema and Protobuf: schemas, their payloads, and serializers by public name."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.schema_clients.avro import AvroDeserializer as AvroDeserializer
    from headrace.schema_clients.avro import AvroSerializer as AvroSerializer
    from headrace.schema_clients.json_schema import JsonSchemaDeserializer as JsonSchemaDeserializer
    from headrace.schema_clients.json_schema import JsonSchemaSerializer as JsonSchemaSerializer
    from headrace.schema_clients.protobuf import ProtobufDeserializer as ProtobufDeserializer
    from headrace.schema_clients.protobuf import ProtobufSerializer as ProtobufSerializer
    from headrace.schema_clients.registry_client import NewSchema as NewSchema
    from headrace.schema_clients.registry_client import Reference as Reference
    from headrace.schema_clients.registry_client import RegistryClient as RegistryClient
    from headrace.schema_clients.rules.execution import RuleFailed as RuleFailed
    from headrace.serdes.subject_strategies import record_subject as record_subject
    from headrace.serdes.subject_strategies import topic_record_subject as topic_record_subject
    from headrace.serdes.subject_strategies import topic_subject as topic_subject

# The public names and their modules, imported at first use: a broker imports this package too,
# without the libraries of the formats.
_HOMES = {
    "AvroDeserializer": "schema_clients.avro",
    "AvroSerializer": "schema_clients.avro",
    "JsonSchemaDeserializer": "schema_clients.json_schema",
    "JsonSchemaSerializer": "schema_clients.json_schema",
    "NewSchema": "schema_clients.registry_client",
    "ProtobufDeserializer": "schema_clients.protobuf",
    "ProtobufSerializer": "schema_clients.protobuf",
    "Reference": "schema_clients.registry_client",
    "RegistryClient": "schema_clients.registry_client",
    "RuleFailed": "schema_clients.rules.execution",
    "record_subject": "serdes.subject_strategies",
    "topic_record_subject": "serdes.subject_strategies",
    "topic_subject": "serdes.subject_strategies",
}


if not TYPE_CHECKING:  # Otherwise a type checker would accept misspelt names.

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'headrace.serdes' has no attribute {name!r}")
        found = getattr(import_module(f"headrace.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
