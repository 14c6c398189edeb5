"""Settings of products under property names, as in Confluent's configuration files."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from headrace.errors import InvalidConfig
from headrace.settings.definitions import nearest

T = TypeVar("T", bound=msgspec.Struct)


def property_name(field: str) -> str:
    """Return the property of a field: `client_timeout_ms` is `client.timeout.ms`."""
    return field.replace("_", ".")


def property_names(settings: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(settings)}


def unknown_property(name: str, settings: type[msgspec.Struct]) -> InvalidConfig:
    return InvalidConfig(
        f"unknown property {name!r}{nearest(name, sorted(property_names(settings)))}"
    )


def typed(settings: type[T], properties: Mapping[str, Any]) -> T:
    """Convert properties to settings; reject unknown names and invalid values."""
    for name in properties:
        if name not in property_names(settings):
            raise unknown_property(name, settings)
    try:
        return msgspec.convert(dict(properties), settings, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"invalid property: {error}") from error
