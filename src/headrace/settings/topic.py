"""The configs of a topic: what they mean, which values they take, and what they come to.

A topic stores only its overrides. Everything else flows from the broker's settings through the
config's synonyms, so changing a broker default changes every topic without an override.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.errors import InvalidConfig
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_configs import COMPRESSION_TYPES, field_name
from headrace.settings.definitions import (
    ConfigDefinition,
    ConfigType,
    Validator,
    Value,
    at_least,
    between,
    each_of,
    nearest,
    one_of,
)
from headrace.settings.subject_strategies import SubjectNameStrategy

_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_LONG, _DOUBLE, _LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST


class _Row(NamedTuple):
    """A topic config; `setting` is the attribute of `BrokerSettings` that holds its default."""

    name: str
    type: ConfigType
    synonyms: str
    setting: str
    validator: Validator | None
    documentation: str


def _throttled_replicas(value: Value) -> str | None:
    """`*`, or pairs of a partition and a broker."""
    pairs = value if isinstance(value, tuple) and value != ("*",) else ()
    for pair in pairs:
        partition, _, broker = pair.partition(":")
        if not (partition.isdecimal() and broker.isdecimal()):
            return "must be * or a list of partition:broker pairs"
    return None


_LOG_ROWS = (
    _Row("cleanup.policy", _LIST, "log.cleanup.policy", "log_cleanup_policy",
         each_of("compact", "delete"),
         "What becomes of old records: delete drops whole segments, compact keeps the newest "
         "record of each key; both, or none when empty."),
    _Row("compression.type", _STRING, "compression.type", "compression_type",
         one_of(*COMPRESSION_TYPES),
         "The codec that batches are stored in; producer keeps what came."),
    _Row("compression.gzip.level", _INT, "compression.gzip.level", "compression_gzip_level",
         between(1, 9, -1), "The level used when batches are compressed again with gzip."),
    _Row("compression.lz4.level", _INT, "compression.lz4.level", "compression_lz4_level",
         between(1, 17), "The level used when batches are compressed again with lz4."),
    _Row("compression.zstd.level", _INT, "compression.zstd.level", "compression_zstd_level",
         between(-131072, 22), "The level used when batches are compressed again with zstd."),
    _Row("delete.retention.ms", _LONG, "log.cleaner.delete.retention.ms",
         "log_cleaner_delete_retention_ms", at_least(0),
         "How long a tombstone stays in a compacted topic after a cleaner run has seen it."),
    _Row("file.delete.delay.ms", _LONG, "log.segment.delete.delay.ms",
         "log_segment_delete_delay_ms", at_least(0),
         "Deleted files stay this long under another name, for readers that are still in them."),
    _Row("flush.messages", _LONG, "log.flush.interval.messages", "log_flush_interval_messages",
         at_least(1), "The log is forced to disk after so many records."),
    _Row("flush.ms", _LONG, "log.flush.interval.ms log.flush.scheduler.interval.ms",
         "flush_interval_ms", at_least(0),
         "The log is forced to disk when a record was only in memory for this long."),
    _Row("index.interval.bytes", _INT, "log.index.interval.bytes", "log_index_interval_bytes",
         at_least(0), "The index gets an entry about every so many bytes of log."),
    _Row("max.compaction.lag.ms", _LONG, "log.cleaner.max.compaction.lag.ms",
         "log_cleaner_max_compaction_lag_ms", at_least(1),
         "A log with a record that waited longer than this is compacted whatever its ratio."),
    _Row("max.message.bytes", _INT, "message.max.bytes", "message_max_bytes", at_least(0),
         "The largest record batch, as compressed, that the topic takes."),
    _Row("message.timestamp.after.max.ms", _LONG, "log.message.timestamp.after.max.ms",
         "log_message_timestamp_after_max_ms", at_least(0),
         "A record whose timestamp is further in the future than this is refused."),
    _Row("message.timestamp.before.max.ms", _LONG, "log.message.timestamp.before.max.ms",
         "log_message_timestamp_before_max_ms", at_least(0),
         "A record whose timestamp is further in the past than this is refused."),
    _Row("message.timestamp.type", _STRING, "log.message.timestamp.type",
         "log_message_timestamp_type", one_of("CreateTime", "LogAppendTime"),
         "Whether records carry the producer's time or the time of the append."),
    _Row("min.cleanable.dirty.ratio", _DOUBLE, "log.cleaner.min.cleanable.ratio",
         "log_cleaner_min_cleanable_ratio", between(0, 1),
         "The part of the log that must be new since the last run before it is compacted again."),
    _Row("min.compaction.lag.ms", _LONG, "log.cleaner.min.compaction.lag.ms",
         "log_cleaner_min_compaction_lag_ms", at_least(0),
         "Records younger than this are never compacted away."),
    _Row("preallocate", _BOOLEAN, "log.preallocate", "log_preallocate", None,
         "Whether room for a whole segment is reserved when it is begun, not as it grows."),
    _Row("retention.bytes", _LONG, "log.retention.bytes", "log_retention_bytes", None,
         "The oldest segments go while a partition is larger than this; -1 sets no limit."),
    _Row("retention.ms", _LONG, "log.retention.ms log.retention.minutes log.retention.hours",
         "retention_ms", at_least(-1),
         "Records older than this may go; -1 keeps them for ever."),
    _Row("segment.bytes", _INT, "log.segment.bytes", "log_segment_bytes", at_least(1 << 20),
         "A segment file is closed and a new one begun at this size."),
    _Row("segment.index.bytes", _INT, "log.index.size.max.bytes", "log_index_size_max_bytes",
         at_least(4), "The largest index file; a full index closes its segment."),
    _Row("segment.jitter.ms", _LONG, "log.roll.jitter.ms log.roll.jitter.hours", "roll_jitter_ms",
         at_least(0),
         "Segments close up to this much earlier, at random, so that they do not close at once."),
    _Row("segment.ms", _LONG, "log.roll.ms log.roll.hours", "roll_ms", at_least(1),
         "A segment file is closed at this age even if it is not full."),
)  # fmt: skip

# Stored and described, because tools set them, but no log acts on them: the controller reads the
# first two, and the others have no work to do on one node.
_OTHER_ROWS = (
    _Row("min.insync.replicas", _INT, "min.insync.replicas", "min_insync_replicas", at_least(1),
         "How many replicas must have a record before acks=all is answered."),
    _Row("unclean.leader.election.enable", _BOOLEAN, "unclean.leader.election.enable",
         "unclean_leader_election_enable", None,
         "Whether a replica that lacks acknowledged records may lead when no other is left."),
    _Row("local.retention.bytes", _LONG, "log.local.retention.bytes", "log_local_retention_bytes",
         at_least(-2), "How much a tiered topic keeps on local disk; -2 follows retention.bytes."),
    _Row("local.retention.ms", _LONG, "log.local.retention.ms", "log_local_retention_ms",
         at_least(-2), "How long a tiered topic keeps records on local disk; -2 follows "
         "retention.ms."),
    _Row("follower.replication.throttled.replicas", _LIST, "", "", _throttled_replicas,
         "The replicas whose catching up is throttled on the side of the follower."),
    _Row("leader.replication.throttled.replicas", _LIST, "", "", _throttled_replicas,
         "The replicas whose catching up is throttled on the side of the leader."),
    _Row("remote.log.copy.disable", _BOOLEAN, "", "", None,
         "Whether a tiered topic stops copying segments to the remote tier."),
    _Row("remote.log.delete.on.disable", _BOOLEAN, "", "", None,
         "Whether turning tiering off also deletes what is in the remote tier."),
    _Row("remote.storage.enable", _BOOLEAN, "", "", None,
         "Whether old segments move to a remote tier."),
    _Row("errors.deadletterqueue.group.enable", _BOOLEAN, "", "", None,
         "Whether groups may have the topic written to as their dead letter topic."),
    _Row("internal.segment.bytes", _INT, "", "", None,
         "A segment size below the usual limit, for tests that need many segments."),
)  # fmt: skip

# Ours: what the broker asks of payloads, by the topic of a schema registry (`_schemas`).
VALIDATION_CONFIGS = {part: f"headrace.{part}.schema.validation" for part in ("key", "value")}
STRATEGY_CONFIGS = {part: f"headrace.{part}.subject.name.strategy" for part in ("key", "value")}
_CONFLUENT_PACKAGE = "io.confluent.kafka.serializers.subject."


def _schema_rows() -> tuple[_Row, ...]:
    names = (
        *(one.value for one in SubjectNameStrategy),
        *(_CONFLUENT_PACKAGE + one for one in SubjectNameStrategy),
    )
    return tuple(
        row
        for part in ("key", "value")
        for row in (
            _Row(VALIDATION_CONFIGS[part], _BOOLEAN, "", "", None,
                 f"Whether a {part} must name a schema that is registered for the topic; null "
                 "passes."),
            _Row(STRATEGY_CONFIGS[part], _STRING, "", "", one_of(*names),
                 f"Under which subject the schema of a {part} must be registered: that of the "
                 "topic, any, or one that begins with the topic."),
        )
    )  # fmt: skip


_PLAIN_DEFAULTS: Mapping[ConfigType, Value] = {
    _LIST: (),
    _BOOLEAN: False,
    _INT: None,
    _STRING: SubjectNameStrategy.TOPIC.value,
}


def _default(row: _Row) -> Value:
    """Kafka's default of a topic config is that of the broker config behind it."""
    if not row.setting:
        return _PLAIN_DEFAULTS[row.type]
    value: Value = getattr(BrokerSettings(), row.setting)
    return value


TOPIC_CONFIGS: Mapping[str, ConfigDefinition] = {
    row.name: ConfigDefinition(
        name=row.name,
        type=row.type,
        default=_default(row),
        documentation=row.documentation,
        validator=row.validator,
        synonyms=tuple(row.synonyms.split()),
        is_internal=row.name.startswith("internal."),
    )
    for row in sorted(_LOG_ROWS + _OTHER_ROWS + _schema_rows())
}

_SETTINGS = {row.name: row.setting for row in _LOG_ROWS + _OTHER_ROWS if row.setting}
_LOG_FIELDS = tuple((field_name(row.name), row.setting) for row in _LOG_ROWS)


def validate(configs: Mapping[str, str | None], broker: BrokerSettings | None = None) -> None:
    """Raise `InvalidConfig`, saying what to do, unless a topic may have these overrides.

    `configs` are all overrides that the topic would have, so that rules between two of them hold.
    """
    for name, text in configs.items():
        definition = TOPIC_CONFIGS.get(name)
        if definition is None:
            raise InvalidConfig(f"{name} is not a topic config{nearest(name, TOPIC_CONFIGS)}")
        if text is None:
            raise InvalidConfig(f"{name} has no value; delete the config to use its default")
        definition.parse(text)
    _check_together(configs, broker or BrokerSettings())


def value_of(name: str, overrides: Mapping[str, str], broker: BrokerSettings) -> Value:
    """What one config comes to, as a typed value."""
    definition = TOPIC_CONFIGS[name]
    if name in overrides:
        try:
            return definition.read(overrides[name])
        except InvalidConfig:
            pass  # Stored by another version: the default serves better than no topic at all.
    value: Value = getattr(broker, _SETTINGS[name]) if name in _SETTINGS else definition.default
    return value


def effective(overrides: Mapping[str, str], broker: BrokerSettings) -> dict[str, Any]:
    """The fields of storage's `LogConfig`: `LogConfig(**effective(overrides, broker))`.

    `broker` has its dynamic configs laid over it already (`broker.with_dynamic`). A dict rather
    than the object, because settings lie below storage and know nothing of it.
    """
    fields: dict[str, Any] = {field: getattr(broker, setting) for field, setting in _LOG_FIELDS}
    for name in overrides:
        if name in _SETTINGS:
            field = field_name(name)
            if field in fields:
                fields[field] = value_of(name, overrides, broker)
    if "internal.segment.bytes" in overrides:
        fields["segment_bytes"] = value_of("internal.segment.bytes", overrides, broker)
    fields["cleanup_policy"] = frozenset(fields["cleanup_policy"])
    fields["producer_id_expiration_ms"] = broker.producer_id_expiration_ms
    return fields


def _check_together(configs: Mapping[str, str | None], broker: BrokerSettings) -> None:
    given = {name: text for name, text in configs.items() if text is not None}
    shortest = value_of("min.compaction.lag.ms", given, broker)
    longest = value_of("max.compaction.lag.ms", given, broker)
    assert isinstance(shortest, int)
    assert isinstance(longest, int)
    if shortest > longest:
        raise InvalidConfig(
            f"min.compaction.lag.ms ({shortest}) must not exceed max.compaction.lag.ms ({longest})"
        )
    if value_of("remote.storage.enable", given, broker):
        raise InvalidConfig("remote.storage.enable cannot be true: this broker has no remote tier")
