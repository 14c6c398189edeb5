"""The settings of a REST proxy, under the property names of Confluent's.

A `kafka-rest.properties` file works as it is: what it says of clients stands under `client.`,
`producer.`, `consumer.` and `admin.`, and is handed to librdkafka or to our own client.
"""

import logging
from collections.abc import Mapping

import msgspec

from headrace.errors import InvalidConfig
from headrace.settings.definitions import nearest

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
"""Properties of Confluent's proxy for parts that this one does not have."""
_BY_OPTIONS = ("authentication.", "ssl.", "websocket.")
"""What would close the proxy's door is never passed over in silence."""


def _property_name(field: str) -> str:
    return field.replace("_", ".")


class RestSettings(msgspec.Struct, frozen=True, kw_only=True, rename=_property_name):
    """Built once and handed down; `clients` holds the properties of the clients by prefix."""

    bootstrap_servers: str = "127.0.0.1:9092"
    schema_registry_url: str | None = None
    schema_registry_basic_auth_user_info: str | None = None
    """`user:password` for the registry."""
    id: str = ""
    """Part of the names of consumer instances, so that those of several proxies differ."""
    host_name: str = ""
    """The name under which clients reach this very proxy; else what they called it."""
    client_timeout_ms: int = 30_000
    """How long a broker may take for an answer before the caller is told that it did not."""
    consumer_request_timeout_ms: int = 1_000
    consumer_request_max_bytes: int = 64 * MEBIBYTE
    consumer_instance_timeout_ms: int = 300_000
    consumer_instances_max: int = 100
    fetch_min_bytes: int = 1
    """How many bytes a read waits for; with -1 it waits for its whole time."""
    request_max_bytes: int = 16 * MEBIBYTE
    produce_batch_maximum_entries: int = 1_000
    produce_records_max: int = 100_000
    """How many records one request of version 2 may hold: a byte of a body may cost many."""
    produce_buffer_bytes: int = 64 * MEBIBYTE
    """How much may wait for acknowledgement before requests have to wait."""
    streaming_connection_max_duration_ms: int = 86_400_000
    """How long one request may go on sending records, or one stream pushing them."""
    connections_max: int = 1_000
    transaction_producers_max: int = 4
    """How many transactions of one identity may be under way."""
    webhook_targets: str = ""
    """Where webhooks may go: hosts, addresses and networks, each with :port or not."""
    webhook_secrets_file: str | None = None
    """Secrets by name, as properties; subscriptions name them and never hold them."""
    subscriptions_topic: str = "_rest_subscriptions"
    subscriptions_max: int = 50
    push_clients_max: int = 800
    """How many may listen to streams; fewer than connections, so that others get through."""
    push_readers_max: int = 100
    """How many consumers streams may have, beside those of `consumer.instances.max`."""
    push_heartbeat_ms: int = 15_000
    push_stall_ms: int = 30_000
    """How long a client may read nothing, or acknowledge nothing, before it is dropped."""
    push_unacknowledged_max: int = 1_000
    push_tail_bytes: int = 4 * MEBIBYTE
    """How much of the newest records the clients of a topic share."""
    access_control_allow_origin: str = ""
    """Origins whose pages may ask, joined by commas."""
    client_identity: str = "proxy"
    """In whose name brokers are asked: `proxy`, `basic` or `file`."""
    client_identity_file: str | None = None
    client_identities_max: int = 50
    clients: Mapping[str, Mapping[str, str]] = {}

    def properties_of(self, kind: str) -> dict[str, str]:
        """What a producer, a consumer or an admin client is given."""
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


_NAMES = {field.encode_name for field in msgspec.structs.fields(RestSettings)} - {"clients"}


def settings_of(properties: Mapping[str, str]) -> RestSettings:
    """The settings that a file and a command line come to; an unknown name is an error."""
    own: dict[str, object] = {}
    clients: dict[str, dict[str, str]] = {}
    for name, value in properties.items():
        if name in _NAMES:
            own[name] = value
        elif name in _WITHOUT_EFFECT:
            _log.warning("%s has no effect here", name)
        elif name.startswith(_BY_OPTIONS):
            raise InvalidConfig(
                f"{name} is not read from properties here: the options --user-file, --token-file,"
                " --tls-certificate and --tls-client-ca say who gets in"
            )
        elif name.startswith(_PREFIXES):
            kind, _, rest = name.partition(".")
            clients.setdefault(kind, {})[rest] = value
        else:
            raise InvalidConfig(f"there is no property {name!r}{nearest(name, sorted(_NAMES))}")
    try:
        return msgspec.convert({**own, "clients": clients}, RestSettings, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"a setting of the REST proxy is wrong: {error}") from error
