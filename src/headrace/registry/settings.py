"""The settings of a registry, under the names of Confluent's where it has them."""

import socket
from typing import Any

import msgspec

from headrace.errors import HeadraceError
from headrace.registry.compatibility.levels import Level
from headrace.settings.definitions import nearest


class InvalidSetting(HeadraceError):
    """A setting that there is not, or a value that it cannot have."""


def property_name(field: str) -> str:
    """`kafkastore_timeout_ms` is written `kafkastore.timeout.ms`."""
    return field.replace("_", ".")


class RegistrySettings(msgspec.Struct, frozen=True, kw_only=True, rename=property_name):
    """Built once from the command line and handed down."""

    kafkastore_topic: str = "_schemas"
    kafkastore_topic_replication_factor: int = 3
    """As many replicas as the topic gets where there are so many brokers."""
    kafkastore_timeout_ms: int = 5_000
    """How long a write may take, and a wait for what was written."""
    kafkastore_init_timeout_ms: int = 60_000
    schema_registry_group_id: str = "schema-registry"
    """Instances with one group and one topic are one registry."""
    kafkagroup_session_timeout_ms: int = 10_000
    kafkagroup_heartbeat_interval_ms: int = 3_000
    kafkagroup_rebalance_timeout_ms: int = 300_000
    leader_eligibility: bool = True
    """Whether this instance may be the one that writes."""
    leader_connect_timeout_ms: int = 5_000
    leader_read_timeout_ms: int = 60_000
    headrace_leader_wait_ms: int = 15_000
    """How long a write waits for a leader, while there is none: a new one is found meanwhile."""
    host_name: str = ""
    host_port: int = 0
    """Where the other instances reach this one; where it listens unless told otherwise."""
    inter_instance_protocol: str = "http"
    schema_compatibility_level: Level = Level.BACKWARD
    mode_mutability: bool = True
    """Whether clients may change modes."""
    schema_cache_size: int = 1_000
    """How many parsed schemas are kept."""
    schema_search_default_limit: int = 1_000
    schema_search_max_limit: int = 1_000
    headrace_lenient_defaults: bool = False
    """Whether new Avro schemas may have defaults that are not of their field's type."""
    headrace_avro_full_names: bool = False
    """Whether an Avro type must keep its namespace, too, to stay the type that it was."""
    max_request_body_size: int = msgspec.field(
        default=1 << 20, name="size.limit.filter.max.request.body.size"
    )
    connections_max: int = 1_000


def settings_of(properties: dict[str, str]) -> RegistrySettings:
    """The settings that properties stand for; a name that there is not is refused."""
    fields = {field.encode_name for field in msgspec.structs.fields(RegistrySettings)}
    for name in properties:
        if name not in fields:
            raise InvalidSetting(f"there is no setting {name!r}{nearest(name, fields)}")
    given: dict[str, Any] = dict(properties)
    level = given.get("schema.compatibility.level")
    if level is not None:
        given["schema.compatibility.level"] = _level(level)
    try:
        return msgspec.convert(given, RegistrySettings, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidSetting(f"a setting cannot be so: {error}") from error


def _level(text: str) -> Level:
    try:
        return Level(text.strip().upper())
    except ValueError:
        levels = ", ".join(Level)
        raise InvalidSetting(
            f"schema.compatibility.level cannot be {text[:40]!r}; it is one of {levels}"
        ) from None


def advertised_host(listen_host: str) -> str:
    """The name under which others find a server that listens there."""
    return socket.gethostname() if listen_host in ("0.0.0.0", "::", "") else listen_host
