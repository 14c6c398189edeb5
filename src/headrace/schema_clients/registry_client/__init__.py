"""A client of any schema registry that speaks Confluent's REST interface."""

from headrace.schema_clients.registry_client.client import RegistryClient
from headrace.schema_clients.registry_client.failures import (
    InvalidRegistryAddress,
    RegistryFailure,
    RegistryRefusal,
    RegistryUnavailable,
)
from headrace.schema_clients.registry_client.schemas import (
    NewSchema,
    Reference,
    RegisteredSchema,
    SubjectVersion,
)

__all__ = [
    "InvalidRegistryAddress",
    "NewSchema",
    "Reference",
    "RegisteredSchema",
    "RegistryClient",
    "RegistryFailure",
    "RegistryRefusal",
    "RegistryUnavailable",
    "SubjectVersion",
]
