"""The configs of a topic: meaning, valid values and effective values.

A topic stores only its overrides. Everything else flows from the broker's settings through the
config's synonyms, so changing a broker default changes every topic without an override.
"""

from collections.abc import Mapping
from typing import Any

from headrace.errors import InvalidConfig
from headrace.settings.broker import BROKER_CONFIGS, UNITS, BrokerSettings, field_name
from headrace.settings.definitions import (
    ConfigDefinition,
    ConfigType,
    Value,
    at_least,
    nearest,
    one_of,
)
from headrace.settings.subject_strategies import SubjectNameStrategy

# The topic configs that govern a log, each with the broker config that gives its default. Type,
# limits and meaning are those of the broker config, except where a row has its own.
_LOG_DEFAULTS = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
}

# Stored and described, because tools set them, but no log reads them: the controller reads the
# first one, and the others have no effect on one node.
_OTHER_DEFAULTS = {
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
}

_LIMITS = {"flush.ms": at_least(0), "retention.ms": at_least(-1)}

_MEANINGS = {
    "cleanup.policy": (
        "Cleanup of old records: delete drops whole segments, compact keeps the newest record of "
        "each key; both, or none if empty."
    ),
    "delete.retention.ms": (
        "Time for which tombstones stay after a cleaner run has seen them, so that slow consumers "
        "read them."
    ),
    "flush.messages": "Number of records after which the log is flushed to disk.",
    "flush.ms": "Maximum time before a record is flushed to disk.",
    "local.retention.bytes": "Size that a tiered topic keeps on local disk; -2 is retention.bytes.",
    "local.retention.ms": (
        "Time for which a tiered topic keeps records on local disk; -2 is retention.ms."
    ),
    "max.message.bytes": "Maximum size of a record batch, as compressed.",
    "min.cleanable.dirty.ratio": (
        "Share of the log that must be new since the last run before it is compacted again."
    ),
    "retention.ms": "Age at which records may be deleted; -1 keeps all records.",
    "segment.jitter.ms": (
        "Maximum random time by which segments close earlier, so that not all close at once."
    ),
    "segment.ms": "Age at which a segment file is closed even if it is not full.",
}


def _throttled_replicas(value: Value) -> str | None:
    """Accept `*`, or pairs of a partition and a broker."""
    pairs = value if isinstance(value, tuple) and value != ("*",) else ()
    for pair in pairs:
        partition, _, broker = pair.partition(":")
        if not (partition.isdecimal() and broker.isdecimal()):
            return "must be * or a list of partition:broker pairs"
    return None


# Configs without a broker config behind them.
_OWN = (
    ConfigDefinition(
        name="follower.replication.throttled.replicas",
        type=ConfigType.LIST,
        default=(),
        validator=_throttled_replicas,
        documentation="Replicas whose replication is throttled on the follower.",
    ),
    ConfigDefinition(
        name="leader.replication.throttled.replicas",
        type=ConfigType.LIST,
        default=(),
        validator=_throttled_replicas,
        documentation="Replicas whose replication is throttled on the leader.",
    ),
    ConfigDefinition(
        name="remote.log.copy.disable",
        type=ConfigType.BOOLEAN,
        default=False,
        documentation="Stops copying segments of a tiered topic to the remote tier.",
    ),
    ConfigDefinition(
        name="remote.log.delete.on.disable",
        type=ConfigType.BOOLEAN,
        default=False,
        documentation="Deletes the segments in the remote tier when tiering is disabled.",
    ),
    ConfigDefinition(
        name="remote.storage.enable",
        type=ConfigType.BOOLEAN,
        default=False,
        documentation="Moves old segments to a remote tier.",
    ),
    ConfigDefinition(
        name="errors.deadletterqueue.group.enable",
        type=ConfigType.BOOLEAN,
        default=False,
        documentation="Allows share groups to use the topic as their dead letter topic.",
    ),
    ConfigDefinition(
        name="internal.segment.bytes",
        type=ConfigType.INT,
        default=None,
        documentation="A segment size below the usual limit, for tests that need many segments.",
        is_internal=True,
    ),
)

# Headrace's own: payload validation by the topic of a schema registry (`_schemas`).
VALIDATION_CONFIGS = {part: f"headrace.{part}.schema.validation" for part in ("key", "value")}
STRATEGY_CONFIGS = {part: f"headrace.{part}.subject.name.strategy" for part in ("key", "value")}
_STRATEGY_NAMES = tuple(
    package + strategy
    for package in ("", "io.confluent.kafka.serializers.subject.")
    for strategy in SubjectNameStrategy
)


def _payload_definitions(part: str) -> tuple[ConfigDefinition, ...]:
    return (
        ConfigDefinition(
            name=VALIDATION_CONFIGS[part],
            type=ConfigType.BOOLEAN,
            default=False,
            documentation=f"Rejects a {part} without a schema that is registered for the topic; "
            "null is valid.",
        ),
        ConfigDefinition(
            name=STRATEGY_CONFIGS[part],
            type=ConfigType.STRING,
            default=SubjectNameStrategy.TOPIC.value,
            validator=one_of(*_STRATEGY_NAMES),
            documentation=f"Strategy for the subject of the schema of a {part}: the topic's "
            "subject, any, or one that begins with the topic.",
        ),
    )


def _setting(broker_config: str) -> str:
    """Return the attribute of `BrokerSettings` that holds a default.

    A limit in several units is a property of the settings: `log.roll.ms` is `roll_ms`.
    """
    has_units = any(broker_config == units[0] for units in UNITS)
    return field_name(broker_config.removeprefix("log.") if has_units else broker_config)


def _definition(name: str, broker_config: str) -> ConfigDefinition:
    """Define a topic config with the default of its broker config, as Kafka does."""
    behind = BROKER_CONFIGS[broker_config]
    return ConfigDefinition(
        name=name,
        type=behind.type,
        default=getattr(BrokerSettings(), _setting(broker_config)),
        documentation=_MEANINGS.get(name, behind.documentation),
        validator=_LIMITS.get(name, behind.validator),
        synonyms=next((units for units in UNITS if broker_config in units), (broker_config,)),
    )


_DEFAULTS = {**_LOG_DEFAULTS, **_OTHER_DEFAULTS}
_SETTINGS = {name: _setting(broker_config) for name, broker_config in _DEFAULTS.items()}
_LOG_FIELDS = tuple((field_name(name), _SETTINGS[name]) for name in _LOG_DEFAULTS)

TOPIC_CONFIGS: Mapping[str, ConfigDefinition] = {
    one.name: one
    for one in sorted(
        (
            *(_definition(*row) for row in _DEFAULTS.items()),
            *_OWN,
            *_payload_definitions("key"),
            *_payload_definitions("value"),
        ),
        key=lambda definition: definition.name,
    )
}
"""By name, in the order in which they are described."""


def validate(configs: Mapping[str, str | None], broker: BrokerSettings | None = None) -> None:
    """Raise `InvalidConfig`, with the next step, unless a topic may have these overrides.

    `configs` are all overrides of the topic, because some rules join two of them.
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
    """The effective value of a config, typed."""
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

    `broker` already includes its dynamic configs (`broker.with_dynamic`). The result is a dict
    because settings are below storage and must not import `LogConfig`.
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
