"""Kafka's broker configs that have no effect in Headrace, each with the reason.

These configs are accepted, stored and described as in Kafka, so that tools and tests that set one
work; the description states that the config has no effect. `kafka_properties.txt` has the facts.
The module is imported only when such a config, a misspelled one, or all configs are read.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

from headrace.settings.definitions import (
    ConfigDefinition,
    ConfigType,
    UpdateMode,
    Validator,
    at_least,
    between,
    each_of,
    nearest,
    not_empty,
    one_of,
)

# Dynamic configs, which no file can hold.
_REPLICATION_THROTTLES = {
    "leader.replication.throttled.rate": (
        "Maximum bytes per second that this broker sends to the replicas in "
        "leader.replication.throttled.replicas of the topics."
    ),
    "follower.replication.throttled.rate": (
        "Maximum bytes per second that this broker takes for the replicas in "
        "follower.replication.throttled.replicas of the topics."
    ),
    "replica.alter.log.dirs.io.max.bytes.per.second": (
        "Known to Apache Kafka; has no effect in Headrace: replicas do not move between log "
        "directories yet."
    ),
}

# Removed with ZooKeeper in Kafka 4; old files still contain them.
_REMOVED_NAMES = """
advertised.host.name advertised.port broker.id.generation.enable control.plane.listener.name
controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms group.coordinator.new.enable
host.name inter.broker.protocol.version leader.imbalance.per.broker.percentage
log.message.downconversion.enable log.message.format.version
log.message.timestamp.difference.max.ms offsets.commit.required.acks
password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
password.encoder.keyfactory.algorithm password.encoder.old.secret password.encoder.secret port
reserved.broker.max.id
"""

# The longest prefix that fits decides.
_REASONS = (
    ("listener.name.", "no listener has a value of its own for it"),
    ("sasl.", "mechanisms are part of the broker, which takes no classes for them"),
    (
        "sasl.kerberos.",
        "nodes accept tickets by their keytab, and log in at others without Kerberos",
    ),
    ("sasl.login.", "nodes log in by the secrets of their settings"),
    ("sasl.oauthbearer.", "nodes log in at each other by tokens of their JAAS settings"),
    ("ssl.", "it is for the TLS of a JVM, and OpenSSL has no such part"),
    ("security.", "it is for the security providers of a JVM"),
    ("principal.", "principals are named by the rules of settings, not by a class"),
    ("group.coordinator.", "coordinators share the one event loop and write at once"),
    ("group.coordinator.rebalance.", "all kinds of groups that the features allow are served"),
    ("group.share.persister.", "share states are kept in their own topic"),
    ("offsets.commit.timeout.", "a commit is answered when it is written"),
    ("offsets.load.", "the buffer for loading has a fixed size"),
    ("offsets.topic.compression.", "coordinator records are small and stay plain"),
    ("share.coordinator.", "coordinators share the one event loop and write at once"),
    ("share.fetch.", "requests that wait cost nothing until they are woken"),
    ("transaction.state.log.load.", "the buffer for loading has a fixed size"),
    ("remote.", "tiered storage is not supported yet"),
    ("rsm.config.", "tiered storage is not supported yet"),
    ("rlmm.config.", "tiered storage is not supported yet"),
    ("follower.fetch.", "tiered storage is not supported yet"),
    ("alter.log.dirs.", "replicas do not move between log directories yet"),
    ("num.network.threads", "one event loop serves all connections"),
    ("num.io.threads", "one event loop serves all connections"),
    ("background.threads", "the number of background threads is fixed"),
    ("log.cleaner.io.buffer.size", "the cleaner's buffers have a fixed size"),
    ("log.flush.start.offset.", "start offsets are written down with the recovery points"),
    ("queued.max.", "requests are not queued between threads"),
    ("metric.reporters", "metrics are served as Prometheus text on headrace.metrics.port"),
    ("metrics.", "metrics are served as Prometheus text on headrace.metrics.port"),
    ("kafka.metrics.", "metrics are served as Prometheus text on headrace.metrics.port"),
    ("config.providers.", "providers are read from the properties file only"),
    ("zookeeper.", "Kafka 4 removed it, with ZooKeeper"),
)

_PLUGIN_PREFIXES = (
    "listener.name.", "rsm.config.", "rlmm.config.", "config.providers.", "zookeeper.",
    "metrics.jmx.",
)  # fmt: skip

_SECRET_ENDINGS = (
    ".password", ".secret", ".passphrase", ".secret.key", ".keystore.key", ".jaas.config",
    ".certificate.chain", ".certificates",
)  # fmt: skip


def names() -> list[str]:
    """Every name here, for finding the nearest to a misspelt one."""
    return [*definitions()]


@cache
def definitions() -> Mapping[str, ConfigDefinition]:
    """Kafka's definition of each config of a properties file."""
    text = files("headrace.settings").joinpath("kafka_properties.txt").read_text()
    rows = [_definition(line) for line in text.splitlines() if not line.startswith("#")]
    return {row.name: row for row in rows}


@cache
def dynamic_definitions() -> Mapping[str, ConfigDefinition]:
    """Configs that Kafka takes only while it runs."""
    return {
        name: ConfigDefinition(
            name=name,
            type=ConfigType.LONG,
            default=None,
            documentation=documentation,
            validator=at_least(0),
            update_mode=UpdateMode.CLUSTER_WIDE,
        )
        for name, documentation in _REPLICATION_THROTTLES.items()
    }


def reason_unsupported(name: str) -> str | None:
    """The reason why a property of Kafka has no effect; None if Kafka has no such property."""
    if name in _REMOVED_NAMES.split():
        return "Kafka 4 removed it"
    if name not in names() and not name.startswith(_PLUGIN_PREFIXES):
        return None
    return _reason(name)


def reason_without_effect(name: str) -> str:
    """Why a config that was set while the broker runs changes nothing, whatever its name is."""
    if name in _REPLICATION_THROTTLES:
        return "replicas do not move between log directories yet"
    reason = reason_unsupported(name)
    if reason is not None:
        return reason
    from headrace.settings.broker import BROKER_CONFIGS

    return f"no part of the broker reads it{nearest(name, [*BROKER_CONFIGS, *names()])}"


def is_sensitive(name: str) -> bool:
    """Return whether a value must be hidden; values of plug-ins are always hidden."""
    known = definitions().get(name)
    is_plugins = known is None and name not in _REMOVED_NAMES.split()
    return is_plugins or name.endswith(_SECRET_ENDINGS)


def _reason(name: str) -> str:
    fitting = [row for row in _REASONS if name.startswith(row[0])]
    if not fitting:
        return "Headrace does not support it yet"
    return max(fitting, key=lambda row: len(row[0]))[1]


def _definition(line: str) -> ConfigDefinition:
    kind, mode, limits, name, *default = line.split(maxsplit=4)
    config_type = ConfigType[kind.upper()]
    definition = ConfigDefinition(
        name=name,
        type=config_type,
        default=None,
        documentation=f"Known to Apache Kafka; has no effect in Headrace: {_reason(name)}.",
        validator=_validator(limits, config_type),
        update_mode=_MODES[mode],
        is_internal=mode == "internal",
    )
    if not default:
        return definition
    value = definition.read(default[0].removeprefix("=").strip())
    return msgspec.structs.replace(definition, default=value)


_MODES = {
    "internal": UpdateMode.READ_ONLY,
    "read-only": UpdateMode.READ_ONLY,
    "per-listener": UpdateMode.PER_LISTENER,
    "per-broker": UpdateMode.PER_BROKER,
    "cluster-wide": UpdateMode.CLUSTER_WIDE,
}


def _validator(limits: str, config_type: ConfigType) -> Validator | None:
    if limits == "-":
        return None
    if limits == "+":
        return not_empty
    low, dots, high = limits.partition("..")
    if not dots:
        choices = limits.split("|")
        return each_of(*choices) if config_type is ConfigType.LIST else one_of(*choices)
    number = float if config_type is ConfigType.DOUBLE else int
    return between(number(low), number(high)) if high else at_least(number(low))
