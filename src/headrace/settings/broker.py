"""The settings of a broker, under Kafka's own property names.

`load` turns the text of `server.properties` into one frozen object. A name that Kafka does not know
is an error with the nearest name, one that Kafka knows and Headrace does not is a warning, so a
file written for Kafka works unchanged and a typo never goes unnoticed.

Precedence, highest first: a topic's own config, the dynamic config of this broker, the dynamic
default of the cluster, the properties file, Kafka's default. `with_dynamic` lays the two
dynamic layers over the static settings; `topic.effective` lays a topic's configs over those.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headrace.errors import InvalidConfig
from headrace.settings.broker_configs import definitions_of, field_name
from headrace.settings.definitions import DOUBLE_MAX, INT_MAX, LONG_MAX, nearest
from headrace.settings.listeners import (
    Listener,
    check_protocols,
    parse_listeners,
    parse_protocol_map,
)

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_CLEANER_BUFFER_MIN = 1 << 20


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that Headrace honours; a field is Kafka's property with underscores for dots."""

    node_id: int = 1
    broker_id: int = -1
    process_roles: tuple[str, ...] = ("broker", "controller")
    broker_rack: str | None = None
    controller_quorum_bootstrap_servers: tuple[str, ...] = ()
    controller_quorum_voters: tuple[str, ...] = ()
    controller_listener_names: tuple[str, ...] = ("CONTROLLER",)
    listeners: tuple[str, ...] = ("PLAINTEXT://:9092",)
    advertised_listeners: tuple[str, ...] | None = None
    listener_security_protocol_map: str = (
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
    )
    inter_broker_listener_name: str | None = None

    connections_max_idle_ms: int = 600_000
    max_connections: int = INT_MAX
    max_connections_per_ip: int = INT_MAX
    max_connections_per_ip_overrides: str = ""
    max_connection_creation_rate: int = INT_MAX
    socket_listen_backlog_size: int = 50
    socket_receive_buffer_bytes: int = 102_400
    socket_send_buffer_bytes: int = 102_400
    socket_request_max_bytes: int = 100 << 20
    fetch_max_bytes: int = 55 << 20
    max_incremental_fetch_session_cache_slots: int = 1000
    max_request_partition_size_limit: int = 2000
    telemetry_max_bytes: int = 1 << 20

    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    message_max_bytes: int = (1 << 20) + 12
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    producer_id_expiration_ms: int = 24 * _HOUR_MS
    producer_id_expiration_check_interval_ms: int = 10 * _MINUTE_MS

    log_dir: tuple[str, ...] = ("/tmp/kafka-logs",)  # Kafka's default; `up` sets its own.
    log_dirs: tuple[str, ...] | None = None
    log_segment_bytes: int = 1 << 30
    log_roll_ms: int | None = None
    log_roll_hours: int = 168
    log_roll_jitter_ms: int | None = None
    log_roll_jitter_hours: int = 0
    log_index_size_max_bytes: int = 10 << 20
    log_index_interval_bytes: int = 4096
    log_segment_delete_delay_ms: int = _MINUTE_MS
    log_preallocate: bool = False
    log_cleanup_policy: tuple[str, ...] = ("delete",)
    log_retention_ms: int | None = None
    log_retention_minutes: int | None = None
    log_retention_hours: int = 168
    log_retention_bytes: int = -1
    log_retention_check_interval_ms: int = 5 * _MINUTE_MS
    log_initial_task_delay_ms: int = 30_000
    log_local_retention_ms: int = -2
    log_local_retention_bytes: int = -2
    log_message_timestamp_type: str = "CreateTime"
    log_message_timestamp_before_max_ms: int = LONG_MAX
    log_message_timestamp_after_max_ms: int = _HOUR_MS
    log_flush_interval_messages: int = LONG_MAX
    log_flush_interval_ms: int | None = None
    log_flush_scheduler_interval_ms: int = LONG_MAX
    log_flush_offset_checkpoint_interval_ms: int = _MINUTE_MS
    replica_high_watermark_checkpoint_interval_ms: int = 5000

    num_recovery_threads_per_data_dir: int = 2

    log_cleaner_enable: bool = True
    log_cleaner_threads: int = 1
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_io_max_bytes_per_second: float = DOUBLE_MAX
    log_cleaner_dedupe_buffer_size: int = 128 << 20
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_min_cleanable_ratio: float = 0.5
    log_cleaner_min_compaction_lag_ms: int = 0
    log_cleaner_max_compaction_lag_ms: int = LONG_MAX
    log_cleaner_delete_retention_ms: int = 24 * _HOUR_MS

    group_initial_rebalance_delay_ms: int = 3000
    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = INT_MAX
    offset_metadata_max_bytes: int = 4096
    offsets_retention_minutes: int = 7 * 24 * 60
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_num_partitions: int = 50
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 100 << 20

    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5000
    group_consumer_min_heartbeat_interval_ms: int = 5000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_assignment_interval_ms: int = 1000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_max_size: int = INT_MAX
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000

    group_streams_session_timeout_ms: int = 45_000
    group_streams_min_session_timeout_ms: int = 45_000
    group_streams_max_session_timeout_ms: int = 60_000
    group_streams_heartbeat_interval_ms: int = 5000
    group_streams_min_heartbeat_interval_ms: int = 5000
    group_streams_max_heartbeat_interval_ms: int = 15_000
    group_streams_assignment_interval_ms: int = 1000
    group_streams_min_assignment_interval_ms: int = 0
    group_streams_max_assignment_interval_ms: int = 15_000
    group_streams_initial_rebalance_delay_ms: int = 3000
    group_streams_max_size: int = INT_MAX
    group_streams_num_standby_replicas: int = 0
    group_streams_max_standby_replicas: int = 2

    group_share_session_timeout_ms: int = 45_000
    group_share_min_session_timeout_ms: int = 45_000
    group_share_max_session_timeout_ms: int = 60_000
    group_share_heartbeat_interval_ms: int = 5000
    group_share_min_heartbeat_interval_ms: int = 5000
    group_share_max_heartbeat_interval_ms: int = 15_000
    group_share_assignment_interval_ms: int = 1000
    group_share_min_assignment_interval_ms: int = 0
    group_share_max_assignment_interval_ms: int = 15_000
    group_share_delivery_count_limit: int = 5
    group_share_min_delivery_count_limit: int = 2
    group_share_max_delivery_count_limit: int = 10
    group_share_record_lock_duration_ms: int = 30_000
    group_share_min_record_lock_duration_ms: int = 15_000
    group_share_max_record_lock_duration_ms: int = 60_000
    group_share_partition_max_record_locks: int = 2000
    group_share_min_partition_max_record_locks: int = 100
    group_share_max_partition_max_record_locks: int = 4000
    group_share_max_size: int = 200
    group_share_max_share_sessions: int = 2000
    errors_deadletterqueue_topic_name_prefix: str = "dlq."
    errors_deadletterqueue_auto_create_topics_enable: bool = False
    group_share_assignors: tuple[str, ...] = ("simple",)
    group_share_initialize_retry_interval_ms: int = 30_000
    share_coordinator_state_topic_num_partitions: int = 50
    share_coordinator_state_topic_replication_factor: int = 3
    share_coordinator_state_topic_min_isr: int = 2
    share_coordinator_state_topic_segment_bytes: int = 100 << 20
    share_coordinator_state_topic_prune_interval_ms: int = 5 * _MINUTE_MS
    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    share_coordinator_cold_partition_snapshot_interval_ms: int = 5 * _MINUTE_MS

    transaction_max_timeout_ms: int = 900_000
    transaction_state_log_num_partitions: int = 50
    transaction_state_log_replication_factor: int = 3
    transaction_state_log_min_isr: int = 2
    transaction_state_log_segment_bytes: int = 100 << 20
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_partition_verification_enable: bool = True
    transactional_id_expiration_ms: int = 604_800_000

    metadata_log_dir: str | None = None
    metadata_log_segment_bytes: int = 1 << 30
    metadata_log_segment_ms: int = 168 * _HOUR_MS
    metadata_max_retention_bytes: int = 100 << 20
    metadata_max_retention_ms: int = 168 * _HOUR_MS
    metadata_log_max_record_bytes_between_snapshots: int = 20 << 20
    metadata_log_max_snapshot_interval_ms: int = _HOUR_MS

    headrace_format_new_directories: bool = False
    headrace_metrics_port: int = -1
    headrace_metrics_host: str = "127.0.0.1"
    headrace_registry_listeners: str = ""
    headrace_rest_listeners: str = ""
    headrace_schemas_topic: str = "_schemas"
    headrace_log_format: str = "text"
    headrace_log_level: tuple[str, ...] = ("INFO",)

    given: Mapping[str, str] = {}  # The honoured properties as they were written; no default.
    ignored: Mapping[str, str | None] = {}  # Those that only Kafka honours; secrets are not kept.

    @property
    def directories(self) -> tuple[str, ...]:
        """Where the logs are: `log.dirs`, or else `log.dir`."""
        return self.log_dirs if self.log_dirs is not None else self.log_dir

    @property
    def metadata_directory(self) -> str:
        """The log directory that holds the metadata log."""
        return self.metadata_log_dir if self.metadata_log_dir is not None else self.directories[0]

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        """Where clients connect."""
        return tuple(
            listener
            for listener in parse_listeners(self.listeners)
            if listener.name not in self.controller_listener_names
        )

    @property
    def controller_listeners(self) -> tuple[Listener, ...]:
        """Where controllers connect; none need be open for a quorum of one."""
        return tuple(
            listener
            for listener in parse_listeners(self.listeners)
            if listener.name in self.controller_listener_names
        )

    @property
    def advertised(self) -> dict[str, Listener]:
        """By name, the addresses that clients are told; the host may still be empty."""
        given = self.advertised_listeners
        texts = given if given is not None else self.listeners
        listeners = parse_listeners(texts, "advertised.listeners", distinct_ports=False)
        return {listener.name: listener for listener in listeners}

    @property
    def protocols(self) -> dict[str, str]:
        """Listener name to security protocol; controllers' listeners need no entry of their own."""
        controllers = dict.fromkeys(self.controller_listener_names, "PLAINTEXT")
        return controllers | parse_protocol_map(self.listener_security_protocol_map)

    @property
    def connections_per_ip(self) -> dict[str, int]:
        """The addresses that may hold another number of connections than all others."""
        pairs = self.max_connections_per_ip_overrides.split(",")
        split = (pair.strip().rpartition(":") for pair in pairs if pair.strip())
        return {host.strip("[]"): int(count) for host, _, count in split}

    @property
    def retention_ms(self) -> int:
        """The finest unit that is given counts; any negative value keeps records for ever."""
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


BROKER_CONFIGS = definitions_of(BrokerSettings)

DYNAMIC_BROKER_CONFIGS = frozenset(
    name for name, definition in BROKER_CONFIGS.items() if not definition.is_read_only
)


def load(
    properties: Mapping[str, str], places: Mapping[str, str] | None = None
) -> tuple[BrokerSettings, list[str]]:
    """Settings and warnings from a properties file; every mistake in it is named at once.

    `places` tells where properties were read, as in `server.properties line 7`.
    """
    at = places or {}
    given = {name: text for name, text in properties.items() if name in BROKER_CONFIGS}
    others = {name: text for name, text in properties.items() if name not in BROKER_CONFIGS}
    values: dict[str, Any] = {}
    warnings: list[str] = []
    mistakes: list[str] = []
    for name in properties:
        try:
            if name in given:
                values[field_name(name)] = BROKER_CONFIGS[name].parse(given[name])
            else:
                warnings.append(_placed(_explain(name, others[name]), [name], at))
        except InvalidConfig as mistake:
            mistakes.append(_placed(str(mistake), [name], at))
    if mistakes:
        raise InvalidConfig("\n".join(mistakes))
    values.setdefault("node_id", values.get("broker_id", 1))
    settings = BrokerSettings(**values, given=given, ignored=_without_secrets(others))
    try:
        check(settings)
    except InvalidConfig as mistake:
        # These rules join properties, and name those that they are about.
        named = [name for name in at if re.search(rf"\b{re.escape(name)}\b", str(mistake))]
        raise InvalidConfig(_placed(str(mistake), named, at)) from mistake
    return settings, warnings


def _placed(text: str, names: Iterable[str], places: Mapping[str, str]) -> str:
    found = [places[name] for name in names if name in places]
    return f"{', '.join(found)}: {text}" if found else text


def check(settings: BrokerSettings) -> None:
    """The rules that join several properties."""
    _check_node(settings)
    _check_listeners(settings)
    check_logs(settings)
    check_groups(settings)


def with_dynamic(
    settings: BrokerSettings,
    cluster_default: Mapping[str, str],
    broker: Mapping[str, str],
) -> BrokerSettings:
    """The settings with what was changed at run time laid over them.

    Both layers were checked when they were stored. What this version cannot apply (a directory
    may come from another one) is left out rather than keeping the node from starting.
    """
    values: dict[str, Any] = {}
    for name, text in {**cluster_default, **broker}.items():
        if name in DYNAMIC_BROKER_CONFIGS:
            try:
                values[field_name(name)] = BROKER_CONFIGS[name].parse(text)
            except InvalidConfig:
                continue
    return msgspec.structs.replace(settings, **values)


def _explain(name: str, text: str) -> str:
    """What to say about a name that is not honoured; raises if Kafka does not know it either."""
    from headrace.settings import kafka_properties  # Large, and seldom needed.

    reason = kafka_properties.reason_unsupported(name)
    if reason is None:
        hint = nearest(name, [*BROKER_CONFIGS, *kafka_properties.names()])
        raise InvalidConfig(f"{name} is not a broker property{hint}")
    definition = kafka_properties.definitions().get(name)
    if definition is not None:
        definition.read(text)  # A mistake in the file is one, whoever reads that property.
    return f"{name} is ignored: {reason}"


def _without_secrets(properties: Mapping[str, str]) -> dict[str, str | None]:
    if not properties:
        return {}
    from headrace.settings.kafka_properties import is_sensitive

    return {name: None if is_sensitive(name) else text for name, text in properties.items()}


def _check_node(settings: BrokerSettings) -> None:
    if settings.broker_id not in (-1, settings.node_id):
        raise InvalidConfig(
            f"node.id is {settings.node_id} and broker.id is {settings.broker_id}; "
            "give node.id alone"
        )
    if set(settings.process_roles) != {"broker", "controller"}:
        raise InvalidConfig(
            "process.roles must be broker,controller: a node is its own quorum of one and cannot "
            "join another yet"
        )
    voters = settings.controller_quorum_voters
    alone = all(voter.startswith(f"{settings.node_id}@") for voter in voters)
    if not alone or len(voters) > 1 or len(settings.controller_quorum_bootstrap_servers) > 1:
        raise InvalidConfig(
            "controller.quorum.voters and controller.quorum.bootstrap.servers may name only this "
            "node: a quorum of several is not supported yet"
        )


def _check_listeners(settings: BrokerSettings) -> None:
    listeners = parse_listeners(settings.listeners)
    check_protocols(listeners, settings.protocols)
    names = {listener.name for listener in settings.broker_listeners}
    if not names:
        raise InvalidConfig("listeners must have one for clients, such as PLAINTEXT://:9092")
    for advertised in settings.advertised.values():
        if advertised.name not in names | set(settings.controller_listener_names):
            raise InvalidConfig(f"advertised.listeners: {advertised} has no twin in listeners")
        if advertised.host == "0.0.0.0" and advertised.name in names:
            raise InvalidConfig(
                f"advertised.listeners: clients cannot be sent to {advertised}; give a host name "
                "or address that they can reach"
            )
    between_brokers = settings.inter_broker_listener_name
    if between_brokers is not None and between_brokers.upper() not in names:
        raise InvalidConfig(f"inter.broker.listener.name: {between_brokers} is not in listeners")


def check_groups(settings: BrokerSettings) -> None:
    """What groups get unless they ask otherwise lies within what they may ask for."""
    for kind in ("consumer", "share", "streams"):
        for interval in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            name, low, high = (f"group.{kind}.{limit}{interval}" for limit in ("", "min.", "max."))
            value, least, most = (getattr(settings, field_name(one)) for one in (name, low, high))
            if not least <= value <= most:
                raise InvalidConfig(
                    f"{name} ({value}) must lie between {low} ({least}) and {high} ({most})"
                )
    members, sessions = settings.group_share_max_size, settings.group_share_max_share_sessions
    if sessions < members:
        raise InvalidConfig(
            f"group.share.max.share.sessions ({sessions}) must be at least group.share.max.size "
            f"({members}), so that every member of a group can have a session"
        )


def check_logs(settings: BrokerSettings) -> None:
    if settings.retention_ms == 0:
        raise InvalidConfig("log.retention.ms must be -1 (unlimited) or at least 1")
    shortest = settings.log_cleaner_min_compaction_lag_ms
    longest = settings.log_cleaner_max_compaction_lag_ms
    if shortest > longest:
        raise InvalidConfig(
            f"log.cleaner.min.compaction.lag.ms ({shortest}) must not exceed "
            f"log.cleaner.max.compaction.lag.ms ({longest})"
        )
    if settings.log_cleaner_threads < 1:
        raise InvalidConfig("log.cleaner.threads must be at least 1")
    least_bytes = _CLEANER_BUFFER_MIN * settings.log_cleaner_threads
    if settings.log_cleaner_dedupe_buffer_size <= least_bytes:
        raise InvalidConfig(
            f"log.cleaner.dedupe.buffer.size must be more than {least_bytes}, which is 1 MB for "
            f"each of log.cleaner.threads, not {settings.log_cleaner_dedupe_buffer_size}"
        )
