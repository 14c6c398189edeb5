"""The settings of a registry, under Confluent's names where it has them."""

import socket
from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.errors import InvalidConfig
from headrace.http.settings import property_name, typed
from headrace.registry.compatibility.levels import Level


class RegistrySettings(msgspec.Struct, frozen=True, kw_only=True, rename=property_name):
    """Built once from the command line and handed down."""

    kafkastore_topic: str = "_schemas"
    kafkastore_topic_replication_factor: int = 3
    """At most as many replicas as there are brokers."""
    kafkastore_timeout_ms: int = 5_000
    """The time for a write, and for reading it back."""
    kafkastore_init_timeout_ms: int = 60_000
    schema_registry_group_id: str = "schema-registry"
    """Instances with the same group and topic form one registry."""
    kafkagroup_session_timeout_ms: int = 10_000
    kafkagroup_heartbeat_interval_ms: int = 3_000
    kafkagroup_rebalance_timeout_ms: int = 300_000
    leader_eligibility: bool = True
    """True if this instance may become the leader, which writes."""
    leader_connect_timeout_ms: int = 5_000
    leader_read_timeout_ms: int = 60_000
    headrace_leader_wait_ms: int = 15_000
    """The time that a write waits for a leader to be elected."""
    host_name: str = ""
    host_port: int = 0
    """The address for other instances; by default the listen address."""
    inter_instance_protocol: str = "http"
    schema_compatibility_level: Level = Level.BACKWARD
    mode_mutability: bool = True
    """True if clients may change modes."""
    schema_cache_size: int = 1_000
    """The number of parsed schemas kept in memory."""
    schema_search_default_limit: int = 1_000
    schema_search_max_limit: int = 1_000
    headrace_lenient_defaults: bool = False
    """Accept new Avro schemas whose defaults do not match their field's type."""
    headrace_avro_full_names: bool = False
    """Compare Avro types by their full name, including the namespace."""
    max_request_body_size: int = msgspec.field(
        default=1 << 20, name="size.limit.filter.max.request.body.size"
    )
    connections_max: int = 1_000

    @property
    def write_s_max(self) -> float:
        return self.kafkastore_timeout_ms / 1000


def settings_of(properties: Mapping[str, str]) -> RegistrySettings:
    """Convert properties to settings; reject unknown names and invalid values."""
    given: dict[str, Any] = dict(properties)
    level = given.get("schema.compatibility.level")
    if level is not None:
        given["schema.compatibility.level"] = _level(level)
    return typed(RegistrySettings, given)


def _level(text: str) -> Level:
    try:
        return Level(text.strip().upper())
    except ValueError:
        raise InvalidConfig(
            f"invalid schema.compatibility.level {text[:40]!r}; choose one of {', '.join(Level)}"
        ) from None


def advertised_host(listen_host: str) -> str:
    """Return the name under which other machines reach a server that listens there."""
    return socket.gethostname() if listen_host in ("0.0.0.0", "::", "") else listen_host
