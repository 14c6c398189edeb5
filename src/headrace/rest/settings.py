"""The settings of a REST proxy, under Confluent's property names.

A `kafka-rest.properties` file works unchanged. Its properties with the prefixes `client.`,
`producer.`, `consumer.` and `admin.` are passed to librdkafka or to Headrace's own client.
"""

import logging
from collections.abc import Mapping

import msgspec

from headrace.errors import InvalidConfig
from headrace.http.settings import property_name, property_names, typed, unknown_property

MEBIBYTE = 1 << 20

_log = logging.getLogger(__name__)

_PREFIXES = ("client.", "producer.", "consumer.", "admin.")
_WITHOUT_EFFECT = frozenset(
    {
        "api.v2.enable",
        "api.v3.enable",
        "client.init.timeout.ms",
        "consumer.iterator.backoff.ms",
        "consumer.iterator.timeout.ms",
        "consumer.threads",
        "debug",
        "listeners",
        "port",
        "producer.threads",
        "simpleconsumer.pool.size.max",
        "simpleconsumer.pool.timeout.ms",
        "zookeeper.connect",
    }
)
"""Properties of parts of Confluent's proxy that do not exist here."""
_BY_OPTIONS = ("authentication.", "ssl.", "websocket.")
"""Properties that restrict access; ignoring them would leave the proxy open."""


class RestSettings(msgspec.Struct, frozen=True, kw_only=True, rename=property_name):
    """Built once and handed down; `clients` has the properties of the clients by prefix."""

    bootstrap_servers: str = "127.0.0.1:9092"
    schema_registry_url: str | None = None
    schema_registry_basic_auth_user_info: str | None = None
    """`user:password` for the registry."""
    schema_registry_ssl_truststore_location: str | None = None
    """A PEM file with the authority of the registry's certificate."""
    id: str = ""
    """Part of the names of consumer instances, so that the names of several proxies differ."""
    host_name: str = ""
    """The name under which clients reach this proxy; by default the Host header."""
    client_timeout_ms: int = 30_000
    """The time for an answer of a broker."""
    consumer_request_timeout_ms: int = 1_000
    consumer_request_max_bytes: int = 64 * MEBIBYTE
    consumer_instance_timeout_ms: int = 300_000
    consumer_instances_max: int = 100
    fetch_min_bytes: int = 1
    """The bytes that a read waits for; with -1 it waits for its whole time."""
    request_max_bytes: int = 16 * MEBIBYTE
    produce_batch_maximum_entries: int = 1_000
    produce_records_max: int = 100_000
    """The maximum of records in a request of version 2; a few bytes of a body may be a record."""
    produce_buffer_bytes: int = 64 * MEBIBYTE
    """The unacknowledged bytes from which on requests wait."""
    streaming_connection_max_duration_ms: int = 86_400_000
    """The maximum duration of a request that streams records, in either direction."""
    connections_max: int = 1_000
    transaction_producers_max: int = 4
    """The maximum of concurrent transactions per identity."""
    webhook_targets: str = ""
    """Allowed targets of webhooks: hosts, addresses and networks, optionally with :port."""
    webhook_secrets_file: str | None = None
    """Secrets by name, as properties; subscriptions refer to them by name."""
    subscriptions_topic: str = "_rest_subscriptions"
    subscriptions_max: int = 50
    push_clients_max: int = 800
    """The maximum of stream clients; below `connections.max`, so that others get through."""
    push_readers_max: int = 100
    """The maximum of consumers for streams, in addition to `consumer.instances.max`."""
    push_heartbeat_ms: int = 15_000
    push_stall_ms: int = 30_000
    """The time without reading or acknowledging after which a client is disconnected."""
    push_unacknowledged_max: int = 1_000
    push_tail_bytes: int = 4 * MEBIBYTE
    """The bytes of newest records that the clients of a topic share."""
    access_control_allow_origin: str = ""
    """Origins whose pages may send requests, separated by commas."""
    client_identity: str = "proxy"
    """The identity towards brokers: `proxy`, `basic` or `file`."""
    client_identity_file: str | None = None
    client_identities_max: int = 50
    clients: Mapping[str, Mapping[str, str]] = {}

    def properties_of(self, kind: str) -> dict[str, str]:
        """Return the properties of a producer, a consumer or an admin client."""
        return {
            **self.clients.get("client", {}),
            **self.clients.get(kind, {}),
            "bootstrap.servers": self.bootstrap_servers,
        }

    @property
    def timeout_s(self) -> float:
        return self.client_timeout_ms / 1000

    @property
    def origins(self) -> tuple[str, ...]:
        parts = (part.strip() for part in self.access_control_allow_origin.split(","))
        return tuple(part for part in parts if part)


def settings_of(properties: Mapping[str, str]) -> RestSettings:
    """Convert properties to settings; reject unknown names and invalid values."""
    names = property_names(RestSettings) - {"clients"}
    own: dict[str, object] = {}
    clients: dict[str, dict[str, str]] = {}
    for name, value in properties.items():
        if name in names:
            own[name] = value
        elif name in _WITHOUT_EFFECT:
            _log.warning("property has no effect", extra={"property": name})
        elif name.startswith(_BY_OPTIONS):
            raise InvalidConfig(
                f"{name} is not read from properties here: use the options --user-file,"
                " --token-file, --tls-certificate and --tls-client-ca"
            )
        elif name.startswith(_PREFIXES):
            kind, _, rest = name.partition(".")
            clients.setdefault(kind, {})[rest] = value
        else:
            raise unknown_property(name, RestSettings)
    return typed(RestSettings, {**own, "clients": clients})
