"""The settings of a broker, under Kafka's own property names.

Each field defines type, default, limits, meaning and update mode of its property. Names, types,
limits and update modes are Kafka's. DescribeConfigs and `docs/reference/settings.md` show the
meanings. `broker_loading.py` reads `server.properties` and applies dynamic configs.

Precedence, highest first: a topic's own config, the dynamic config of this broker, the dynamic
default of the cluster, the properties file, Kafka's default.
"""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import msgspec

from headrace.settings.definitions import (
    DOUBLE_MAX,
    INT_MAX,
    LONG_MAX,
    ConfigDefinition,
    ConfigType,
    UpdateMode,
    Validator,
    Value,
    at_least,
    between,
    each_of,
    not_empty,
    one_of,
)
from headrace.settings.listeners import (
    PROTOCOLS,
    Listener,
    SecurityProtocol,
    parse_listeners,
    parse_protocol_map,
)
from headrace.settings.quorum_addresses import (
    ControllerAddress,
    parse_bootstrap_servers,
    parse_voters,
)

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
CLASS = ConfigType.CLASS
SHORT, LONG, DOUBLE, LIST = ConfigType.SHORT, ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST
PASSWORD = ConfigType.PASSWORD

PLAINTEXT = SecurityProtocol.PLAINTEXT.name
_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_POLICIES = ("disabled", "downgrade", "upgrade", "bidirectional")


class Rules(NamedTuple):
    """Limits of the values of a property, and the moments at which it may change."""

    type: ConfigType
    update_mode: UpdateMode
    validator: Validator | None
    is_internal: bool


def fixed(
    kind: ConfigType, validator: Validator | None = None, *, is_internal: bool = False
) -> Rules:
    """Rules of a property that changes only with a restart."""
    return Rules(kind, UpdateMode.READ_ONLY, validator, is_internal)


def live(kind: ConfigType, validator: Validator | None = None) -> Rules:
    """Rules of a property that may change at run time, for one broker or for all."""
    return Rules(kind, UpdateMode.CLUSTER_WIDE, validator, is_internal=False)


def per_broker(kind: ConfigType, validator: Validator | None = None) -> Rules:
    """Rules of a property that may change at run time, but differs from broker to broker."""
    return Rules(kind, UpdateMode.PER_BROKER, validator, is_internal=False)


def per_listener(kind: ConfigType, validator: Validator | None = None) -> Rules:
    """Rules of a property that may change at run time, for one listener at a time."""
    return Rules(kind, UpdateMode.PER_LISTENER, validator, is_internal=False)


def _log_levels(value: Value) -> str | None:
    """Check a general level, and levels of parts such as `storage=DEBUG`."""
    levels = value if isinstance(value, tuple) else ()
    if levels and all(level.rpartition("=")[2].upper() in _LOG_LEVELS for level in levels):
        return None
    return f"must be one of {', '.join(_LOG_LEVELS)}, or part=level for a part of the broker"


def _connections_by_host(value: Value) -> str | None:
    """Check pairs such as `10.0.0.7:100`; an IPv6 address is in brackets."""
    pairs = (
        [pair.strip() for pair in value.split(",") if pair.strip()]
        if isinstance(value, str)
        else []
    )
    for pair in pairs:
        host, _, count = pair.rpartition(":")
        if not host or not count.isdecimal():
            return "must be a list of address:count pairs such as 10.0.0.7:100"
    return None


def _authorizer(value: Value) -> str | None:
    if value in ("", STANDARD_AUTHORIZER):
        return None
    return f"must be {STANDARD_AUTHORIZER} or empty"


def _principals(value: Value) -> str | None:
    """Check principals such as `User:ada;User:CN=bob,O=example`."""
    names = [one.strip() for one in value.split(";")] if isinstance(value, str) else []
    for name in filter(None, names):
        kind, colon, rest = name.partition(":")
        if not (kind and colon and rest):
            return f"must be principals such as User:ada, separated by semicolons (invalid: {name})"
    return None


def _migration_policy(value: Value) -> str | None:
    """Check a policy; Kafka accepts lower and upper case."""
    if isinstance(value, str) and value.lower() in _POLICIES:
        return None
    return f"must be one of {', '.join(_POLICIES)}"


def _no_callback(value: Value) -> str | None:
    """Reject every class: it would be a class of Java."""
    if value is None:
        return None
    return "must be empty, because quotas are those of the cluster"


def _simple(value: Value) -> str | None:
    """Check the assignor of share groups: only one exists."""
    return None if value == ("simple",) else "must be simple, the only assignor of share groups"


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The properties with an effect here; a field is Kafka's property with underscores for dots."""

    # fmt: off
    # The node and its listeners.
    node_id: Annotated[int, fixed(INT, at_least(0)),
        "The number of this node, unique in its cluster and never changed."] = 1
    broker_id: Annotated[int, fixed(INT),
        "The older name of node.id; if both are given, they must be equal."] = -1
    process_roles: Annotated[tuple[str, ...], fixed(LIST, each_of("broker", "controller")),
        "The roles of this process: broker, controller or both."
    ] = ("broker", "controller")
    broker_rack: Annotated[str | None, fixed(STRING),
        "The rack or zone of this broker, for clients that prefer near replicas."] = None
    controller_listener_names: Annotated[tuple[str, ...], fixed(LIST, not_empty),
        "The listeners between controllers; clients never see them."] = ("CONTROLLER",)
    listeners: Annotated[tuple[str, ...], per_broker(LIST, not_empty),
        "The addresses of the broker, as NAME://host:port; an empty host is every interface and "
        "port 0 is any free port."] = ("PLAINTEXT://:9092",)
    advertised_listeners: Annotated[tuple[str, ...] | None, fixed(LIST),
        "The addresses that clients connect to, if they differ from listeners."
    ] = None
    listener_security_protocol_map: Annotated[str, per_broker(STRING),
        "The security protocol of each listener name."
    ] = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
    inter_broker_listener_name: Annotated[str | None, fixed(STRING),
        "The listener through which brokers reach each other; the listener with the name of "
        "security.inter.broker.protocol if it is not set."] = None
    security_inter_broker_protocol: Annotated[str, fixed(STRING, one_of(*PROTOCOLS)),
        "The security protocol between brokers, if inter.broker.listener.name is not set."
    ] = "PLAINTEXT"

    # TLS; listener.name.NAME. before a name makes it a property of one listener.
    ssl_client_auth: Annotated[str, per_broker(STRING, one_of("required", "requested", "none")),
        "Client certificates of listeners with the protocol SSL: none, requested or required. A "
        "SASL_SSL listener uses only the property with its own prefix."] = "none"
    ssl_keystore_type: Annotated[str, per_listener(STRING),
        "The format of the keystore: PEM, PKCS12 or JKS. PKCS12 needs the extra security."
    ] = "JKS"
    ssl_keystore_location: Annotated[str | None, per_listener(STRING),
        "The file with the private key and the certificate chain of this node."] = None
    ssl_keystore_password: Annotated[str | None, per_listener(PASSWORD),
        "The password of the keystore; PEM files have none."] = None
    ssl_keystore_key: Annotated[str | None, per_listener(PASSWORD),
        "The private key in PEM form, instead of a keystore file."] = None
    ssl_keystore_certificate_chain: Annotated[str | None, per_listener(PASSWORD),
        "The certificate chain in PEM form, for ssl.keystore.key."] = None
    ssl_key_password: Annotated[str | None, per_listener(PASSWORD),
        "The password of the private key, if it is encrypted."] = None
    ssl_truststore_type: Annotated[str, per_listener(STRING),
        "The format of the truststore: PEM, PKCS12 or JKS."] = "JKS"
    ssl_truststore_location: Annotated[str | None, per_listener(STRING),
        "The file with the authorities whose certificates are trusted; those of the system if "
        "there is no truststore."] = None
    ssl_truststore_password: Annotated[str | None, per_listener(PASSWORD),
        "The password of the truststore; PEM files have none."] = None
    ssl_truststore_certificates: Annotated[str | None, per_listener(PASSWORD),
        "The trusted authorities in PEM form, instead of a truststore file."] = None
    ssl_protocol: Annotated[str, per_broker(STRING, one_of("TLS", "TLSv1.2", "TLSv1.3")),
        "The newest TLS version; TLSv1.2 disables TLSv1.3 also if it is in ssl.enabled.protocols."
    ] = "TLSv1.3"
    ssl_enabled_protocols: Annotated[
        tuple[str, ...], per_broker(LIST, each_of("TLSv1.2", "TLSv1.3")),
        "The TLS versions; older ones are not supported."] = ("TLSv1.2", "TLSv1.3")
    ssl_cipher_suites: Annotated[tuple[str, ...], per_broker(LIST),
        "The cipher suites of TLSv1.2, by the names of the IANA or of OpenSSL; the secure ones of "
        "OpenSSL if empty."] = ()
    ssl_endpoint_identification_algorithm: Annotated[str, per_broker(STRING),
        "The check of host names in the certificates of other nodes: https, or none if empty."
    ] = "https"
    ssl_principal_mapping_rules: Annotated[str, fixed(STRING),
        "Rules from the subject of a client certificate to the name of its principal, such as "
        "RULE:^CN=([^,]+),.*$/$1/L,DEFAULT; the first that matches applies."] = "DEFAULT"
    ssl_allow_dn_changes: Annotated[bool, fixed(BOOLEAN),
        "Allows a new certificate at run time to have another subject."] = False
    ssl_allow_san_changes: Annotated[bool, fixed(BOOLEAN),
        "Allows a new certificate at run time to lack names of the present one."] = False
    headrace_ssl_crl_location: Annotated[str | None, fixed(STRING),
        "A PEM file with the certificate revocation lists of the trusted authorities. Revoked "
        "certificates are rejected, and all of an authority without a valid list."] = None
    headrace_ssl_reload_interval_ms: Annotated[int, fixed(LONG, at_least(1)),
        "Interval at which key, certificate and revocation files are checked for changes."
    ] = 10_000

    # Logins by SASL; listener.name.NAME. or listener.name.NAME.MECHANISM. may come before a name.
    sasl_enabled_mechanisms: Annotated[tuple[str, ...], per_broker(LIST),
        "The mechanisms of SASL listeners: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER and "
        "GSSAPI."] = ("GSSAPI",)
    sasl_jaas_config: Annotated[str | None, per_broker(PASSWORD),
        "Users and secrets of one mechanism of one listener, always with the prefix "
        "listener.name.NAME.MECHANISM. (user_ada=\"secret\" is a user of PLAIN, username and "
        "password are this node's own)."] = None
    sasl_mechanism_inter_broker_protocol: Annotated[str, per_broker(STRING),
        "The mechanism by which this node logs in at other brokers."] = "GSSAPI"
    sasl_mechanism_controller_protocol: Annotated[str, fixed(STRING),
        "The mechanism by which this node logs in at controllers."] = "GSSAPI"
    sasl_server_max_receive_size: Annotated[int, fixed(INT),
        "Largest request before the login of a client, in bytes."] = 512 << 10
    connection_failed_authentication_delay_ms: Annotated[int, fixed(INT, at_least(0)),
        "Time before a failed login is answered, so that guessing takes long."] = 100
    connections_max_reauth_ms: Annotated[int, fixed(LONG),
        "Longest time between logins on one connection; 0 or less sets no limit."] = 0
    sasl_oauthbearer_jwks_endpoint_url: Annotated[str | None, fixed(STRING),
        "The address (https, http or file) of the keys that sign tokens."] = None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: Annotated[int, fixed(LONG, at_least(1)),
        "Interval at which the keys are fetched again."] = _HOUR_MS
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: Annotated[int, fixed(LONG, at_least(1)),
        "First wait after a failed fetch of the keys; it doubles with each failure."] = 100
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: Annotated[int, fixed(LONG, at_least(1)),
        "Longest wait after a failed fetch of the keys."] = 10_000
    sasl_oauthbearer_expected_issuer: Annotated[str | None, fixed(STRING),
        "The issuer that tokens must name; any if it is not set."] = None
    sasl_oauthbearer_expected_audience: Annotated[tuple[str, ...], fixed(LIST),
        "The audiences of which a token must name one; without any, tokens must have none."] = ()
    sasl_oauthbearer_scope_claim_name: Annotated[str, fixed(STRING, not_empty),
        "The claim of a token with its scopes."] = "scope"
    sasl_oauthbearer_sub_claim_name: Annotated[str, fixed(STRING, not_empty),
        "The claim of a token with the name of its principal."] = "sub"
    sasl_oauthbearer_clock_skew_seconds: Annotated[int, fixed(INT, at_least(0)),
        "Allowed difference between the clocks of this node and the issuer of tokens."] = 30
    sasl_kerberos_principal_to_local_rules: Annotated[tuple[str, ...], per_broker(LIST),
        "Rules from names of Kerberos to names of principals; the first that applies counts."
    ] = ("DEFAULT",)
    headrace_sasl_oauthbearer_groups_claim_name: Annotated[str, fixed(STRING, not_empty),
        "The claim of a token with the groups of its principal, to which roles may be bound."
    ] = "groups"
    headrace_sasl_plain_users_file: Annotated[str | None, fixed(STRING),
        "A file with the users of PLAIN, one name=password per line, read again when it changes."
    ] = None

    # The quorum of controllers.
    controller_quorum_bootstrap_servers: Annotated[tuple[str, ...], fixed(LIST),
        "The addresses of controllers as host:port, by which this node finds the quorum."] = ()
    controller_quorum_voters: Annotated[tuple[str, ...], fixed(LIST),
        "The controllers of a static quorum as id@host:port; empty if the voters are in the "
        "metadata log, where they can change."] = ()
    controller_quorum_auto_join_enable: Annotated[bool, fixed(BOOLEAN),
        "Adds this controller to the voters when it starts, if the voters can change."] = False
    controller_quorum_election_timeout_ms: Annotated[int, fixed(INT, at_least(0)),
        "Time without an answer of the majority after which an election is repeated."] = 1000
    controller_quorum_election_backoff_max_ms: Annotated[int, fixed(INT, at_least(0)),
        "Maximum random time between two elections, so that candidates do not block each other."
    ] = 1000
    controller_quorum_fetch_timeout_ms: Annotated[int, fixed(INT, at_least(0)),
        "Time without a fetch from the leader after which a voter starts an election, and without "
        "fetches of a majority after which the leader resigns."] = 2000
    controller_quorum_request_timeout_ms: Annotated[int, fixed(INT, at_least(0)),
        "Time after which a request between controllers fails."] = 2000
    controller_quorum_retry_backoff_ms: Annotated[int, fixed(INT, at_least(0)),
        "Time before a failed request between controllers is repeated."] = 20
    controller_quorum_append_linger_ms: Annotated[int, fixed(INT, at_least(0)),
        "Time for which the leader collects metadata records before it flushes them to disk."] = 25
    controller_quorum_fetch_max_bytes: Annotated[int, fixed(INT, at_least(1)),
        "Maximum size of a fetch response from the metadata log."] = 1 << 20
    controller_quorum_fetch_snapshot_max_bytes: Annotated[int, fixed(INT, at_least(1)),
        "Maximum size of one part of a metadata snapshot in a response."] = 1 << 20

    # Quotas.
    quota_window_num: Annotated[int, fixed(INT, at_least(1)),
        "Number of windows over which the rates of clients and connections are measured."] = 11
    quota_window_size_seconds: Annotated[int, fixed(INT, at_least(1)),
        "Length of a window in seconds. Request times and connection rates are throttled for one "
        "window at most."] = 1
    controller_quota_window_num: Annotated[int, fixed(INT, at_least(1)),
        "Number of windows of controller mutations; all windows together are one burst."] = 11
    controller_quota_window_size_seconds: Annotated[int, fixed(INT, at_least(1)),
        "Length of a window of controller mutations in seconds."] = 1
    replication_quota_window_num: Annotated[int, fixed(INT, at_least(1)),
        "Number of windows over which throttled replication is measured."] = 11
    replication_quota_window_size_seconds: Annotated[int, fixed(INT, at_least(1)),
        "Length of a window of throttled replication in seconds."] = 1
    client_quota_callback_class: Annotated[str | None, fixed(CLASS, _no_callback),
        "A Java class that decides on quotas in Kafka; every value is refused."] = None

    # Config providers.
    config_providers: Annotated[tuple[str, ...], live(LIST),
        "The names of config providers, for values such as ${NAME:path:key} in the properties "
        "file; config.providers.NAME.class is the class of each. The file is read at the start, "
        "so a change at run time has no effect."] = ()

    # Delegation tokens.
    delegation_token_secret_key: Annotated[str | None, fixed(PASSWORD),
        "The key of the secrets of delegation tokens, the same on all nodes; without it there are "
        "no tokens."] = None
    delegation_token_max_lifetime_ms: Annotated[int, fixed(LONG, at_least(1)),
        "Longest lifetime of a delegation token, with all renewals."] = 7 * 24 * _HOUR_MS
    delegation_token_expiry_time_ms: Annotated[int, fixed(LONG, at_least(1)),
        "Time after which a delegation token ends unless it is renewed."] = 24 * _HOUR_MS
    delegation_token_expiry_check_interval_ms: Annotated[int, fixed(LONG, at_least(1)),
        "Interval at which the active controller removes delegation tokens that have ended."
    ] = _HOUR_MS

    # Brokers and the active controller.
    broker_heartbeat_interval_ms: Annotated[int, fixed(INT),
        "Interval at which a broker sends heartbeats to the active controller."] = 2000
    broker_session_timeout_ms: Annotated[int, fixed(INT),
        "Time without a heartbeat after which the active controller fences a broker."] = 9000
    initial_broker_registration_timeout_ms: Annotated[int, fixed(INT),
        "Maximum time for the first registration with the active controller; a broker that "
        "cannot register ends."] = _MINUTE_MS
    metadata_max_idle_interval_ms: Annotated[int, fixed(INT, at_least(0)),
        "Interval at which the active controller writes a record that changes nothing, so that "
        "the metadata log advances; 0 writes none."] = 500
    controlled_shutdown_enable: Annotated[bool, fixed(BOOLEAN),
        "Moves the leaders of a broker to other brokers before it stops."] = True
    auto_leader_rebalance_enable: Annotated[bool, fixed(BOOLEAN),
        "Returns leaders to the first replica of their partitions at intervals."] = True
    leader_imbalance_check_interval_seconds: Annotated[int, fixed(LONG, at_least(1)),
        "Interval in seconds at which leaders are returned."] = 300
    unclean_leader_election_interval_ms: Annotated[
        int, fixed(LONG, at_least(1), is_internal=True),
        "Interval of the search for partitions without a leader that may elect one uncleanly."
    ] = 5 * _MINUTE_MS

    # Replication.
    num_replica_fetchers: Annotated[int, live(INT, at_least(1)),
        "Number of connections through which a broker follows each other broker."] = 1
    replica_lag_time_max_ms: Annotated[int, fixed(LONG),
        "Time without reaching the end of the leader's log after which a replica leaves the "
        "in-sync replicas."] = 30_000
    replica_fetch_wait_max_ms: Annotated[int, fixed(INT),
        "Maximum time for which a follower's fetch waits for records; at most "
        "replica.lag.time.max.ms."] = 500
    replica_fetch_min_bytes: Annotated[int, fixed(INT),
        "Number of bytes for which a follower's fetch waits."] = 1
    replica_fetch_max_bytes: Annotated[int, fixed(INT, at_least(0)),
        "Maximum size of a partition's records in a follower's fetch, except for a larger first "
        "batch."] = 1 << 20
    replica_fetch_response_max_bytes: Annotated[int, fixed(INT, at_least(0)),
        "Maximum size of all records in a follower's fetch, except for a larger first batch."
    ] = 10 << 20
    replica_fetch_backoff_ms: Annotated[int, fixed(INT, at_least(0)),
        "Time before a follower fetches a partition again that had an error."] = 1000
    replica_selector_class: Annotated[str | None, fixed(STRING),
        "The class that selects the replica for a consumer's fetch: "
        "org.apache.kafka.common.replica.RackAwareReplicaSelector, or the leader if not set."
    ] = None
    replica_socket_timeout_ms: Annotated[int, fixed(INT),
        "Time after which a follower's request fails; at least replica.fetch.wait.max.ms."
    ] = 30_000
    replica_socket_receive_buffer_bytes: Annotated[int, fixed(INT),
        "Size of the receive buffer of a follower's connection; -1 is the kernel's default."
    ] = 64 << 10
    replica_high_watermark_checkpoint_interval_ms: Annotated[int, fixed(LONG),
        "Interval at which the high watermarks are written to disk."] = 5000

    # Access control.
    authorizer_class_name: Annotated[str, fixed(STRING, _authorizer),
        "The authorizer: org.apache.kafka.metadata.authorizer.StandardAuthorizer decides by the "
        "access control rules in the metadata; if empty, every client may do everything."] = ""
    super_users: Annotated[str, fixed(STRING, _principals),
        "The principals that may do everything, separated by semicolons, such as "
        "User:admin;User:CN=broker. The principals of brokers and controllers belong here."] = ""
    allow_everyone_if_no_acl_found: Annotated[bool, fixed(BOOLEAN),
        "Allows everything on resources without any access control rule."] = False
    early_start_listeners: Annotated[tuple[str, ...] | None, fixed(LIST),
        "Listeners that accept connections before the authorizer has the rules. Controller "
        "listeners always do, and clients' listeners always wait."] = None

    # The audit log.
    headrace_audit_file: Annotated[str, fixed(STRING),
        "The file of the audit log: decisions of the authorizer and logins, as JSON lines. If "
        "empty, none is written."] = ""
    headrace_audit_file_max_bytes: Annotated[int, fixed(LONG, at_least(1 << 16)),
        "The size at which the file of the audit log is renamed to FILE.1, which replaces the one "
        "before."] = 100 << 20
    headrace_audit_topic: Annotated[str, fixed(STRING),
        "The topic of the audit log, to which brokers write; they create it with "
        "retention.bytes=1 GiB if it is missing. If empty, none is written."] = ""
    headrace_audit_events: Annotated[
        tuple[str, ...], fixed(LIST, each_of("denied", "allowed", "logins")),
        "The events of the audit log: denied and allowed requests, and logins."
    ] = ("denied", "logins")
    headrace_audit_events_per_second: Annotated[int, fixed(INT, at_least(1)),
        "Maximum events per second of one principal and kind, over ten seconds; further ones are "
        "counted in the next event."] = 10

    # Connections and requests.
    connections_max_idle_ms: Annotated[int, fixed(LONG),
        "Time without a request after which a connection is closed."] = 600_000
    max_connections: Annotated[int, live(INT, at_least(0)),
        "Maximum number of connections to the broker; further connections wait until another one "
        "ends."] = INT_MAX
    max_connections_per_ip: Annotated[int, live(INT, at_least(0)),
        "Maximum number of connections from one address; further connections are closed."] = INT_MAX
    max_connections_per_ip_overrides: Annotated[str, live(STRING, _connections_by_host),
        "Limits for single addresses, as address:count pairs; they override max.connections.per.ip."
    ] = ""
    max_connection_creation_rate: Annotated[int, live(INT, at_least(0)),
        "Maximum number of connections accepted per second; further connections wait."] = INT_MAX
    socket_listen_backlog_size: Annotated[int, fixed(INT, at_least(1)),
        "Maximum number of connections that wait to be accepted; 1024 unless it is given."] = 50
    socket_receive_buffer_bytes: Annotated[int, fixed(INT),
        "Size of the socket receive buffer; -1 is the kernel's default."] = 102_400
    socket_send_buffer_bytes: Annotated[int, fixed(INT),
        "Size of the socket send buffer; -1 is the kernel's default."] = 102_400
    socket_request_max_bytes: Annotated[int, fixed(INT, at_least(1)),
        "Maximum size of a request; a connection that announces a larger one is closed."
    ] = 100 << 20
    fetch_max_bytes: Annotated[int, fixed(INT, at_least(1024)),
        "Maximum size of a fetch response, except for a larger first batch."] = 55 << 20
    max_incremental_fetch_session_cache_slots: Annotated[int, fixed(INT, at_least(0)),
        "Maximum number of incremental fetch sessions."] = 1000
    max_request_partition_size_limit: Annotated[int, fixed(INT, at_least(1)),
        "Maximum number of partitions on a page of DescribeTopicPartitions."] = 2000
    telemetry_max_bytes: Annotated[int, fixed(INT, at_least(1)),
        "Maximum compressed size of a client's metrics push."] = 1 << 20

    # Topics.
    auto_create_topics_enable: Annotated[bool, fixed(BOOLEAN),
        "Creates a missing topic when a client requests its metadata."] = True
    delete_topic_enable: Annotated[bool, fixed(BOOLEAN),
        "Allows clients to delete topics."] = True
    num_partitions: Annotated[int, fixed(INT, at_least(1)),
        "Default number of partitions of a new topic."] = 1
    default_replication_factor: Annotated[int, fixed(INT),
        "Default number of replicas of a new topic."] = 1
    min_insync_replicas: Annotated[int, live(INT, at_least(1)),
        "Number of replicas that must have a record before acks=all is acknowledged."] = 1
    unclean_leader_election_enable: Annotated[bool, live(BOOLEAN),
        "Allows a replica that lacks acknowledged records to lead when no other replica is left."
    ] = False
    message_max_bytes: Annotated[int, live(INT, at_least(0)),
        "Default maximum size of a record batch, as compressed."] = (1 << 20) + 12
    compression_type: Annotated[str, live(STRING, one_of(*_COMPRESSION_TYPES)),
        "The codec of stored batches; producer keeps the codec of the producer."] = "producer"
    compression_gzip_level: Annotated[int, live(INT, between(1, 9, -1)),
        "The gzip level for batches that the broker compresses again."] = -1
    compression_lz4_level: Annotated[int, live(INT, between(1, 17)),
        "The lz4 level for batches that the broker compresses again."] = 9
    compression_zstd_level: Annotated[int, live(INT, between(-131072, 22)),
        "The zstd level for batches that the broker compresses again."] = 3
    producer_id_expiration_ms: Annotated[int, live(INT, at_least(1)),
        "Time without a write after which an idempotent producer expires."] = 24 * _HOUR_MS
    producer_id_expiration_check_interval_ms: Annotated[
        int, fixed(INT, at_least(1), is_internal=True),
        "Interval of the check for expired idempotent producers."] = 10 * _MINUTE_MS

    # Logs.
    log_dir: Annotated[tuple[str, ...], fixed(LIST, not_empty),
        "The log directories, used when log.dirs is not given."] = ("/tmp/kafka-logs",)
    log_dirs: Annotated[tuple[str, ...] | None, fixed(LIST, not_empty),
        "The log directories, preferably one per disk; partitions are spread over them."] = None
    num_recovery_threads_per_data_dir: Annotated[int, live(INT, at_least(1)),
        "Number of logs of each directory that are checked at the same time after a crash."] = 2
    log_segment_bytes: Annotated[int, live(INT, at_least(1 << 20)),
        "Size at which a segment file is closed and the next one begins."] = 1 << 30
    log_roll_ms: Annotated[int | None, live(LONG, at_least(1)),
        "Age at which a segment file is closed; log.roll.hours applies if it is not set."] = None
    log_roll_hours: Annotated[int, fixed(INT, at_least(1)),
        "Age in hours at which a segment file is closed."] = 168
    log_roll_jitter_ms: Annotated[int | None, live(LONG, at_least(0)),
        "Maximum random time by which segments close earlier, so that not all of them close at "
        "once."] = None
    log_roll_jitter_hours: Annotated[int, fixed(INT, at_least(0)),
        "Maximum random time in hours by which segments close earlier; used if log.roll.jitter.ms "
        "is not set."] = 0
    log_index_size_max_bytes: Annotated[int, live(INT, at_least(4)),
        "Maximum size of an index file; a full index closes its segment."] = 10 << 20
    log_index_interval_bytes: Annotated[int, live(INT, at_least(0)),
        "Number of bytes of the log between two entries of the index."] = 4096
    log_segment_delete_delay_ms: Annotated[int, live(LONG, at_least(0)),
        "Time for which deleted files stay under another name, for clients that still read them."
    ] = _MINUTE_MS
    log_preallocate: Annotated[bool, live(BOOLEAN),
        "Reserves the disk space of a whole segment when the segment begins."] = False
    log_cleanup_policy: Annotated[tuple[str, ...], live(LIST, each_of("compact", "delete")),
        "Cleanup of old segments: delete, compact, both, or none if empty."] = ("delete",)
    log_retention_ms: Annotated[int | None, live(LONG),
        "Age at which records may be deleted; -1 keeps all records; log.retention.minutes applies "
        "if it is not set."] = None
    log_retention_minutes: Annotated[int | None, fixed(INT),
        "Age in minutes at which records may be deleted; log.retention.hours applies if it is not "
        "set."] = None
    log_retention_hours: Annotated[int, fixed(INT),
        "Age in hours at which records may be deleted."] = 168
    log_retention_bytes: Annotated[int, live(LONG),
        "Size of a partition above which its oldest segments are deleted; -1 sets no limit."] = -1
    log_retention_check_interval_ms: Annotated[int, fixed(LONG, at_least(1)),
        "Interval of the check for old segments."] = 5 * _MINUTE_MS
    log_initial_task_delay_ms: Annotated[int, fixed(LONG, at_least(0), is_internal=True),
        "Time between the start and the first check for old segments."] = 30_000
    log_local_retention_ms: Annotated[int, live(LONG, at_least(-2)),
        "Time for which tiered topics keep records on local disk; -2 is the retention time."] = -2
    log_local_retention_bytes: Annotated[int, live(LONG, at_least(-2)),
        "Size that tiered topics keep on local disk; -2 is the retention size."] = -2
    log_message_timestamp_type: Annotated[str, live(STRING, one_of("CreateTime", "LogAppendTime")),
        "The timestamp of records: the producer's (CreateTime) or the broker's (LogAppendTime)."
    ] = "CreateTime"
    log_message_timestamp_before_max_ms: Annotated[int, live(LONG, at_least(0)),
        "Maximum age of a record's timestamp; older records are rejected."] = LONG_MAX
    log_message_timestamp_after_max_ms: Annotated[int, live(LONG, at_least(0)),
        "Maximum time by which a record's timestamp is in the future; later records are rejected."
    ] = _HOUR_MS
    log_flush_interval_messages: Annotated[int, live(LONG, at_least(1)),
        "Number of records after which a log is flushed to disk."] = LONG_MAX
    log_flush_interval_ms: Annotated[int | None, live(LONG),
        "Maximum time before a record is flushed to disk; log.flush.scheduler.interval.ms applies "
        "if it is not set."] = None
    log_flush_scheduler_interval_ms: Annotated[int, fixed(LONG),
        "Interval of the check for logs that must be flushed."] = LONG_MAX
    log_flush_offset_checkpoint_interval_ms: Annotated[int, fixed(INT, at_least(0)),
        "Interval at which the recovery points are written; logs are flushed up to there."
    ] = _MINUTE_MS

    # Compaction.
    log_cleaner_enable: Annotated[bool, fixed(BOOLEAN),
        "Enables compaction; without it compacted topics only grow."] = True
    log_cleaner_threads: Annotated[int, live(INT, at_least(0)),
        "Number of logs that are compacted at the same time, at most eight."] = 1
    log_cleaner_backoff_ms: Annotated[int, live(LONG, at_least(0)),
        "Time that the cleaner waits when no log must be compacted."] = 15_000
    log_cleaner_io_max_bytes_per_second: Annotated[float, live(DOUBLE),
        "Maximum rate at which the cleaner reads and writes, in total."] = DOUBLE_MAX
    log_cleaner_dedupe_buffer_size: Annotated[int, live(LONG),
        "Memory for the map from keys to their newest offsets."] = 128 << 20
    log_cleaner_io_buffer_load_factor: Annotated[float, live(DOUBLE),
        "Share of the key map that a run fills before it stops reading."] = 0.9
    log_cleaner_min_cleanable_ratio: Annotated[float, live(DOUBLE, between(0, 1)),
        "Share of the log that must be new since the last run before it is compacted again."] = 0.5
    log_cleaner_min_compaction_lag_ms: Annotated[int, live(LONG, at_least(0)),
        "Minimum age of a record before it may be compacted."] = 0
    log_cleaner_max_compaction_lag_ms: Annotated[int, live(LONG, at_least(1)),
        "Maximum age of an uncompacted record; an older one has its log compacted at any ratio."
    ] = LONG_MAX
    log_cleaner_delete_retention_ms: Annotated[int, live(LONG, at_least(0)),
        "Time for which tombstones stay after a run has seen them, so that slow consumers read "
        "them."] = 24 * _HOUR_MS

    # Classic groups and offsets.
    group_initial_rebalance_delay_ms: Annotated[int, fixed(INT),
        "Time that a new group waits for more members before its first rebalance."] = 3000
    group_min_session_timeout_ms: Annotated[int, fixed(INT),
        "Minimum session timeout of a member of a classic group."] = 6000
    group_max_session_timeout_ms: Annotated[int, fixed(INT),
        "Maximum session timeout of a member of a classic group."] = 1_800_000
    group_max_size: Annotated[int, fixed(INT, at_least(1)),
        "Maximum number of members of a classic group."] = INT_MAX
    offset_metadata_max_bytes: Annotated[int, fixed(INT),
        "Maximum size of the metadata of a committed offset."] = 4096
    offsets_retention_minutes: Annotated[int, fixed(INT, at_least(1)),
        "Time after which the committed offsets of a group without members expire."] = 7 * 24 * 60
    offsets_retention_check_interval_ms: Annotated[int, fixed(LONG, at_least(1)),
        "Interval of the check for expired offsets and groups."] = 600_000
    offsets_topic_num_partitions: Annotated[int, fixed(INT, at_least(1)),
        "Number of partitions of __consumer_offsets; fixed once the topic exists."] = 50
    offsets_topic_replication_factor: Annotated[int, fixed(SHORT, at_least(1)),
        "Number of replicas of __consumer_offsets; at most the number of brokers."] = 3
    offsets_topic_segment_bytes: Annotated[int, fixed(INT, at_least(1)),
        "Segment size of __consumer_offsets; small, so that it is compacted and loaded fast."
    ] = 100 << 20

    # Consumer groups.
    group_consumer_assignors: Annotated[tuple[str, ...], fixed(LIST),
        "The assignors of consumer groups; the first is the default."] = ("uniform", "range")
    group_consumer_session_timeout_ms: Annotated[int, fixed(INT, at_least(1)),
        "Time without a heartbeat after which a member of a consumer group is removed."] = 45_000
    group_consumer_min_session_timeout_ms: Annotated[int, fixed(INT, at_least(1)),
        "Minimum session timeout that a consumer group may set."] = 45_000
    group_consumer_max_session_timeout_ms: Annotated[int, fixed(INT, at_least(1)),
        "Maximum session timeout that a consumer group may set."] = 60_000
    group_consumer_heartbeat_interval_ms: Annotated[int, fixed(INT, at_least(1)),
        "Interval at which members of consumer groups send heartbeats."] = 5000
    group_consumer_min_heartbeat_interval_ms: Annotated[int, fixed(INT, at_least(1)),
        "Minimum heartbeat interval that a consumer group may set."] = 5000
    group_consumer_max_heartbeat_interval_ms: Annotated[int, fixed(INT, at_least(1)),
        "Maximum heartbeat interval that a consumer group may set."] = 15_000
    group_consumer_assignment_interval_ms: Annotated[int, live(INT, at_least(0)),
        "Minimum time between two assignments of a consumer group."] = 1000
    group_consumer_min_assignment_interval_ms: Annotated[int, fixed(INT, at_least(0)),
        "Minimum assignment interval that a consumer group may set."] = 0
    group_consumer_max_assignment_interval_ms: Annotated[int, fixed(INT, at_least(0)),
        "Maximum assignment interval that a consumer group may set."] = 15_000
    group_consumer_max_size: Annotated[int, fixed(INT, at_least(1)),
        "Maximum number of members of a consumer group."] = INT_MAX
    group_consumer_migration_policy: Annotated[str, fixed(STRING, _migration_policy),
        "Allowed conversions of a group with members: downgrade to classic, upgrade to consumer, "
        "both or none."] = "bidirectional"
    group_consumer_regex_refresh_interval_ms: Annotated[
        int, fixed(INT, at_least(10_000), is_internal=True),
        "Interval at which the patterns of subscriptions are matched against all topics again."
    ] = 600_000

    # Streams groups.
    group_streams_session_timeout_ms: Annotated[int, fixed(INT, at_least(1)),
        "Time without a heartbeat after which a member of a streams group is removed."] = 45_000
    group_streams_min_session_timeout_ms: Annotated[int, fixed(INT, at_least(1)),
        "Minimum session timeout that a streams group may set."] = 45_000
    group_streams_max_session_timeout_ms: Annotated[int, fixed(INT, at_least(1)),
        "Maximum session timeout that a streams group may set."] = 60_000
    group_streams_heartbeat_interval_ms: Annotated[int, fixed(INT, at_least(1)),
        "Interval at which members of streams groups send heartbeats."] = 5000
    group_streams_min_heartbeat_interval_ms: Annotated[int, fixed(INT, at_least(1)),
        "Minimum heartbeat interval that a streams group may set."] = 5000
    group_streams_max_heartbeat_interval_ms: Annotated[int, fixed(INT, at_least(1)),
        "Maximum heartbeat interval that a streams group may set."] = 15_000
    group_streams_assignment_interval_ms: Annotated[int, live(INT, at_least(0)),
        "Minimum time between two assignments of a streams group."] = 1000
    group_streams_min_assignment_interval_ms: Annotated[int, fixed(INT, at_least(0)),
        "Minimum assignment interval that a streams group may set."] = 0
    group_streams_max_assignment_interval_ms: Annotated[int, fixed(INT, at_least(0)),
        "Maximum assignment interval that a streams group may set."] = 15_000
    group_streams_initial_rebalance_delay_ms: Annotated[int, fixed(INT, at_least(0)),
        "Time that a new streams group waits for more members before its first assignment."] = 3000
    group_streams_max_size: Annotated[int, fixed(INT, at_least(1)),
        "Maximum number of members of a streams group."] = INT_MAX
    group_streams_num_standby_replicas: Annotated[int, fixed(INT, at_least(0)),
        "Number of standby copies of the state of each task."] = 0
    group_streams_max_standby_replicas: Annotated[int, fixed(INT, at_least(0)),
        "Maximum number of standby copies that a streams group may set."] = 2

    # Share groups.
    group_share_session_timeout_ms: Annotated[int, fixed(INT, at_least(1)),
        "Time without a heartbeat after which a member of a share group is removed."] = 45_000
    group_share_min_session_timeout_ms: Annotated[int, fixed(INT, at_least(1)),
        "Minimum session timeout that a share group may set."] = 45_000
    group_share_max_session_timeout_ms: Annotated[int, fixed(INT, at_least(1)),
        "Maximum session timeout that a share group may set."] = 60_000
    group_share_heartbeat_interval_ms: Annotated[int, fixed(INT, at_least(1)),
        "Interval at which members of share groups send heartbeats."] = 5000
    group_share_min_heartbeat_interval_ms: Annotated[int, fixed(INT, at_least(1)),
        "Minimum heartbeat interval that a share group may set."] = 5000
    group_share_max_heartbeat_interval_ms: Annotated[int, fixed(INT, at_least(1)),
        "Maximum heartbeat interval that a share group may set."] = 15_000
    group_share_assignment_interval_ms: Annotated[int, live(INT, at_least(0)),
        "Minimum time between two assignments of a share group."] = 1000
    group_share_min_assignment_interval_ms: Annotated[int, fixed(INT, at_least(0)),
        "Minimum assignment interval that a share group may set."] = 0
    group_share_max_assignment_interval_ms: Annotated[int, fixed(INT, at_least(0)),
        "Maximum assignment interval that a share group may set."] = 15_000
    group_share_delivery_count_limit: Annotated[int, fixed(INT, between(2, 10)),
        "Maximum number of deliveries of a record, after which it is rejected."] = 5
    group_share_min_delivery_count_limit: Annotated[int, fixed(INT, between(2, 5)),
        "Minimum delivery count limit that a share group may set."] = 2
    group_share_max_delivery_count_limit: Annotated[int, fixed(INT, between(5, 25)),
        "Maximum delivery count limit that a share group may set."] = 10
    group_share_record_lock_duration_ms: Annotated[int, fixed(INT, between(1000, 3_600_000)),
        "Time after which an acquired record is available to other members again."] = 30_000
    group_share_min_record_lock_duration_ms: Annotated[int, fixed(INT, between(1000, 30_000)),
        "Minimum duration of a record lock that a share group may set."] = 15_000
    group_share_max_record_lock_duration_ms: Annotated[int, fixed(INT, between(30_000, 3_600_000)),
        "Maximum duration of a record lock that a share group may set."] = 60_000
    group_share_partition_max_record_locks: Annotated[int, fixed(INT, between(100, 10_000)),
        "Maximum number of records in flight per partition of a share group."] = 2000
    group_share_min_partition_max_record_locks: Annotated[int, fixed(INT, between(100, 2000)),
        "Minimum limit of records in flight that a share group may set."] = 100
    group_share_max_partition_max_record_locks: Annotated[int, fixed(INT, between(2000, 10_000)),
        "Maximum limit of records in flight that a share group may set."] = 4000
    group_share_max_size: Annotated[int, fixed(INT, between(1, 1000)),
        "Maximum number of members of a share group."] = 200
    group_share_max_share_sessions: Annotated[int, fixed(INT, at_least(1)),
        "Maximum number of share sessions of a broker."] = 2000
    errors_deadletterqueue_topic_name_prefix: Annotated[str, fixed(STRING),
        "Prefix of the names of dead letter topics."] = "dlq."
    errors_deadletterqueue_auto_create_topics_enable: Annotated[bool, fixed(BOOLEAN),
        "Creates a missing dead letter topic for its first record."] = False
    group_share_assignors: Annotated[tuple[str, ...], fixed(LIST, _simple),
        "The assignor of share groups; only simple exists."] = ("simple",)
    group_share_initialize_retry_interval_ms: Annotated[
        int, fixed(INT, at_least(1), is_internal=True),
        "Time before the initialization of share partitions is retried."] = 30_000
    share_coordinator_state_topic_num_partitions: Annotated[int, fixed(INT, at_least(1)),
        "Number of partitions of __share_group_state; fixed once the topic exists."] = 50
    share_coordinator_state_topic_replication_factor: Annotated[int, fixed(SHORT, at_least(1)),
        "Number of replicas of __share_group_state; at most the number of brokers."] = 3
    share_coordinator_state_topic_min_isr: Annotated[int, fixed(SHORT, at_least(1)),
        "Minimum number of in-sync replicas of __share_group_state; at most its replicas."] = 2
    share_coordinator_state_topic_segment_bytes: Annotated[int, fixed(INT, at_least(1)),
        "Segment size of __share_group_state."] = 100 << 20
    share_coordinator_state_topic_prune_interval_ms: Annotated[
        int, fixed(INT, at_least(1), is_internal=True),
        "Interval at which redundant records are deleted from __share_group_state."
    ] = 5 * _MINUTE_MS
    share_coordinator_snapshot_update_records_per_snapshot: Annotated[
        int, fixed(INT, between(0, 500)),
        "Number of updates of a share partition between two snapshots of its state."] = 500
    share_coordinator_cold_partition_snapshot_interval_ms: Annotated[
        int, fixed(INT, at_least(1), is_internal=True),
        "Time after which the state of an idle share partition is written as a snapshot."
    ] = 5 * _MINUTE_MS

    # Transactions.
    transaction_max_timeout_ms: Annotated[int, fixed(INT, at_least(1)),
        "Maximum transaction timeout that a producer may request."] = 900_000
    transaction_state_log_num_partitions: Annotated[int, fixed(INT, at_least(1)),
        "Number of partitions of __transaction_state; fixed once the topic exists."] = 50
    transaction_state_log_replication_factor: Annotated[int, fixed(SHORT, at_least(1)),
        "Number of replicas of __transaction_state; at most the number of brokers."] = 3
    transaction_state_log_min_isr: Annotated[int, fixed(INT, at_least(1)),
        "Minimum number of in-sync replicas of __transaction_state; at most its replicas."] = 2
    transaction_state_log_segment_bytes: Annotated[int, fixed(INT, at_least(1)),
        "Segment size of __transaction_state."] = 100 << 20
    transaction_abort_timed_out_transaction_cleanup_interval_ms: Annotated[
        int, fixed(INT, at_least(1)),
        "Interval of the check for transactions that exceeded their timeout."] = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: Annotated[
        int, fixed(INT, at_least(1)),
        "Interval of the check for expired transactional ids."] = 3_600_000
    transaction_partition_verification_enable: Annotated[bool, live(BOOLEAN),
        "Verifies transactions with their coordinator before partitions append records."] = True
    transactional_id_expiration_ms: Annotated[int, fixed(INT, at_least(1)),
        "Time without a request after which a transactional id expires."] = 604_800_000

    # The metadata log.
    metadata_log_dir: Annotated[str | None, fixed(STRING),
        "The directory of the metadata log; the first log directory if it is not set."] = None
    metadata_log_segment_bytes: Annotated[int, fixed(INT, at_least(8 << 20)),
        "Size at which a segment of the metadata log is closed."] = 1 << 30
    metadata_log_segment_ms: Annotated[int, fixed(LONG),
        "Age at which a segment of the metadata log is closed."] = 168 * _HOUR_MS
    metadata_max_retention_bytes: Annotated[int, fixed(LONG),
        "Total size above which old segments and snapshots of the metadata log are deleted."
    ] = 100 << 20
    metadata_max_retention_ms: Annotated[int, fixed(LONG),
        "Age at which segments and snapshots of the metadata log may be deleted."] = 168 * _HOUR_MS
    metadata_log_max_record_bytes_between_snapshots: Annotated[int, fixed(LONG, at_least(1)),
        "Number of bytes of new metadata records after which a snapshot is written."] = 20 << 20
    metadata_log_max_snapshot_interval_ms: Annotated[int, fixed(LONG, at_least(0)),
        "Time after which a snapshot of new metadata records is written; 0 disables it."] = _HOUR_MS

    # Headrace's own.
    headrace_format_new_directories: Annotated[bool, fixed(BOOLEAN),
        "Formats a new, empty log directory although another one is missing; for the one start "
        "that replaces a lost disk."] = False
    headrace_metrics_port: Annotated[int, fixed(INT, between(0, 65535, -1)),
        "The port of the metrics and health pages; -1 opens no port, 0 any free port."] = -1
    headrace_metrics_host: Annotated[str, fixed(STRING, not_empty),
        "The interface of the metrics and health pages."] = "127.0.0.1"
    headrace_registry_listeners: Annotated[str, fixed(STRING),
        "The address of this node's schema registry, such as 127.0.0.1:8081; if empty, none starts."
    ] = ""
    headrace_rest_listeners: Annotated[str, fixed(STRING),
        "The address of this node's REST proxy, such as 127.0.0.1:8082; if empty, none starts."
    ] = ""
    headrace_schemas_topic: Annotated[str, fixed(STRING, not_empty),
        "The schema registry's topic (kafkastore.topic); its schemas validate topics with "
        "headrace.value.schema.validation or headrace.key.schema.validation."] = "_schemas"
    headrace_telemetry_enable: Annotated[bool, fixed(BOOLEAN),
        "Advertises client metrics (KIP-714) also while no client metrics subscription exists."
    ] = False
    headrace_log_format: Annotated[str, fixed(STRING, one_of("text", "json")),
        "The format of the process's own log: text, or one JSON object per line."] = "text"
    headrace_log_level: Annotated[tuple[str, ...], fixed(LIST, _log_levels),
        "The log level, such as INFO, or INFO,storage=DEBUG for one part of the broker."
    ] = ("INFO",)
    # fmt: on

    listener_overrides: Mapping[str, str] = {}  # Properties with the prefix listener.name.NAME.
    given: Mapping[str, str] = {}  # The honoured properties as they were written; no default.
    ignored: Mapping[
        str, str | None
    ] = {}  # Properties that only Kafka honours; secrets are not kept.

    def __repr__(self) -> str:
        """Show no values: some are passwords and keys."""
        return f"BrokerSettings(node_id={self.node_id})"

    @property
    def directories(self) -> tuple[str, ...]:
        """The log directories: `log.dirs` if set, otherwise `log.dir`."""
        return self.log_dirs if self.log_dirs is not None else self.log_dir

    @property
    def metadata_directory(self) -> str:
        """The log directory that holds the metadata log."""
        return self.metadata_log_dir if self.metadata_log_dir is not None else self.directories[0]

    @property
    def is_broker(self) -> bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles

    @property
    def is_single_node(self) -> bool:
        """A cluster of its own: no other node can reach its controller."""
        return self.is_broker and self.is_controller and not self.controller_listeners

    @property
    def may_begin_cluster(self) -> bool:
        """The settings name no other controller: with new directories, this node is the first.

        Any other node must be formatted for its cluster, so that it does not make up another one.
        """
        if not (self.is_broker and self.is_controller):
            return False
        own = {listener.port for listener in self.controller_listeners}
        hosts = {"localhost", "127.0.0.1", "::1"}
        for listener in (*self.controller_listeners, *self.advertised.values()):
            hosts.add(listener.host)
        others = [
            server
            for server in self.quorum_bootstrap_servers
            if own and (server.host not in hosts or server.port not in own)
        ]
        return not others and not set(self.quorum_voters) - {self.node_id}

    @property
    def quorum_voters(self) -> dict[int, ControllerAddress]:
        """The controllers of a static quorum by node id; empty if the metadata log names them."""
        return parse_voters(self.controller_quorum_voters)

    @property
    def quorum_bootstrap_servers(self) -> tuple[ControllerAddress, ...]:
        """The addresses by which this node finds the quorum: those of the voters if static."""
        servers = parse_bootstrap_servers(self.controller_quorum_bootstrap_servers)
        return servers or tuple(self.quorum_voters.values())

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        """The listeners for clients."""
        return tuple(
            listener
            for listener in parse_listeners(self.listeners)
            if listener.name not in self.controller_listener_names
        )

    @property
    def controller_listeners(self) -> tuple[Listener, ...]:
        """The listeners for controllers; a single node and a broker have none."""
        return tuple(
            listener
            for listener in parse_listeners(self.listeners)
            if listener.name in self.controller_listener_names
        )

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener between brokers; only a single node may have no such one."""
        names = [listener.name for listener in self.broker_listeners]
        wanted = self.wanted_inter_broker_listener
        return wanted if wanted in names else names[0]

    @property
    def wanted_inter_broker_listener(self) -> str:
        """The listener between brokers by the properties; this node may not have it."""
        return (self.inter_broker_listener_name or self.security_inter_broker_protocol).upper()

    @property
    def advertised(self) -> dict[str, Listener]:
        """The advertised addresses by listener name; the host may still be empty.

        Controllers' listeners that are not in `advertised.listeners` are advertised as they are.
        """
        given = self.advertised_listeners
        texts = given if given is not None else self.listeners
        listeners = parse_listeners(texts, "advertised.listeners", distinct_ports=False)
        controllers = {listener.name: listener for listener in self.controller_listeners}
        return controllers | {listener.name: listener for listener in listeners}

    @property
    def protocols(self) -> dict[str, str]:
        """Listener name to security protocol.

        As in Kafka, controllers' listeners need no entry while no listener uses TLS or SASL.
        """
        given = parse_protocol_map(self.listener_security_protocol_map)
        names = {listener.name for listener in parse_listeners(self.listeners)}
        if any(given.get(name, PLAINTEXT) != PLAINTEXT for name in names):
            return given
        return dict.fromkeys(self.controller_listener_names, PLAINTEXT) | given

    @property
    def connections_per_ip(self) -> dict[str, int]:
        """The addresses that may hold another number of connections than all others."""
        pairs = self.max_connections_per_ip_overrides.split(",")
        split = (pair.strip().rpartition(":") for pair in pairs if pair.strip())
        return {host.strip("[]"): int(count) for host, _, count in split}

    @property
    def retention_ms(self) -> int:
        """The retention by the finest unit set; any negative value keeps all records."""
        minutes = self.log_retention_minutes
        if self.log_retention_ms is not None:
            retention_ms = self.log_retention_ms
        elif minutes is not None:
            retention_ms = minutes * _MINUTE_MS
        else:
            retention_ms = self.log_retention_hours * _HOUR_MS
        return max(retention_ms, -1)

    @property
    def roll_ms(self) -> int:
        coarse = self.log_roll_hours * _HOUR_MS
        return self.log_roll_ms if self.log_roll_ms is not None else coarse

    @property
    def roll_jitter_ms(self) -> int:
        coarse = self.log_roll_jitter_hours * _HOUR_MS
        return self.log_roll_jitter_ms if self.log_roll_jitter_ms is not None else coarse

    @property
    def flush_interval_ms(self) -> int:
        coarse = self.log_flush_scheduler_interval_ms
        return self.log_flush_interval_ms if self.log_flush_interval_ms is not None else coarse


def field_name(config_name: str) -> str:
    """Return the field that holds a property: `log.segment.bytes` is `log_segment_bytes`."""
    return config_name.replace(".", "_")


def _definitions() -> dict[str, ConfigDefinition]:
    defaults: dict[str, Value] = dict(
        zip(BrokerSettings.__struct_fields__, BrokerSettings.__struct_defaults__, strict=True)
    )
    definitions = {}
    for field, annotation in BrokerSettings.__annotations__.items():
        if field in ("listener_overrides", "given", "ignored"):
            continue
        rules, documentation = annotation.__metadata__
        name = field.replace("_", ".")
        definitions[name] = ConfigDefinition(
            name=name, default=defaults[field], documentation=documentation, **rules._asdict()
        )
    return definitions


BROKER_CONFIGS = _definitions()

DYNAMIC_BROKER_CONFIGS = frozenset(
    name for name, definition in BROKER_CONFIGS.items() if not definition.is_read_only
)

# Properties that set the same limit in several units, finest first; the first that is given counts.
UNITS = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
)
