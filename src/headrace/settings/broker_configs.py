"""The meaning of every broker config that Headrace honours; types and defaults are in `broker.py`.

Rows are plain tuples so that the table costs nothing to read and little to import. Names, types
and limits are Kafka's; the sentences are ours, and are what DescribeConfigs answers.

A row's update mode decides what may change without a restart, and is Kafka's: the defaults that
flow into topics, the cleaner's pace, the limits of connections. `dynamic.py` has the rules.
"""

from typing import Any

import msgspec

from headrace.settings import coordination_configs
from headrace.settings.definitions import (
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

_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_LONG, _DOUBLE, _LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST
_FIXED, _LIVE = UpdateMode.READ_ONLY, UpdateMode.CLUSTER_WIDE
_OF_ONE = UpdateMode.PER_BROKER

_Row = tuple[str, ConfigType, UpdateMode, Validator | None, str]

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def _log_levels(value: Value) -> str | None:
    """A level for everything, others for parts such as `storage=DEBUG`."""
    levels = value if isinstance(value, tuple) else ()
    if levels and all(level.rpartition("=")[2].upper() in _LOG_LEVELS for level in levels):
        return None
    return f"must be one of {', '.join(_LOG_LEVELS)}, or part=level for a part of the broker"


def _connections_by_host(value: Value) -> str | None:
    """Pairs such as `10.0.0.7:100`; an IPv6 address stands in brackets."""
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


_NODE: tuple[_Row, ...] = (
    ("node.id", _INT, _FIXED, at_least(0),
     "The number of this node, unique in its cluster and kept for life."),
    ("broker.id", _INT, _FIXED, None,
     "An older name of node.id; if both are given they must agree."),
    ("process.roles", _LIST, _FIXED, each_of("broker", "controller"),
     "What this process is: broker, controller or, as here, both."),
    ("broker.rack", _STRING, _FIXED, None,
     "The rack or zone of this broker, told to clients that prefer near replicas."),
    ("controller.quorum.bootstrap.servers", _LIST, _FIXED, None,
     "Where controllers are found; a quorum of one names only itself."),
    ("controller.quorum.voters", _LIST, _FIXED, None,
     "The controllers as id@host:port; a quorum of one names only itself."),
    ("controller.listener.names", _LIST, _FIXED, not_empty,
     "The listeners that only controllers talk through; clients never see them."),
    ("listeners", _LIST, _OF_ONE, not_empty,
     "Where the broker listens, as NAME://host:port; an empty host is every interface and port 0 "
     "is any free port."),
    ("advertised.listeners", _LIST, _FIXED, None,
     "The addresses that clients are told to connect to, where they differ from listeners."),
    ("listener.security.protocol.map", _STRING, _OF_ONE, None,
     "The security protocol of each listener name."),
    ("inter.broker.listener.name", _STRING, _FIXED, None,
     "The listener through which brokers reach each other."),
)  # fmt: skip

_NETWORK: tuple[_Row, ...] = (
    ("connections.max.idle.ms", _LONG, _FIXED, None,
     "A connection that was silent for this long is closed."),
    ("max.connections", _INT, _LIVE, at_least(0),
     "How many connections the broker holds at once; further ones wait for one of them to end."),
    ("max.connections.per.ip", _INT, _LIVE, at_least(0),
     "How many connections one address may hold; further ones are closed."),
    ("max.connections.per.ip.overrides", _STRING, _LIVE, _connections_by_host,
     "Other limits for some addresses, as address:count pairs; they go before "
     "max.connections.per.ip."),
    ("max.connection.creation.rate", _INT, _LIVE, at_least(0),
     "How many connections are accepted in a second; further ones wait."),
    ("socket.listen.backlog.size", _INT, _FIXED, at_least(1),
     "How many connections may wait to be accepted; unless it is given, 1024."),
    ("socket.receive.buffer.bytes", _INT, _FIXED, None,
     "The socket receive buffer; -1 leaves the choice to the kernel."),
    ("socket.send.buffer.bytes", _INT, _FIXED, None,
     "The socket send buffer; -1 leaves the choice to the kernel."),
    ("socket.request.max.bytes", _INT, _FIXED, at_least(1),
     "The largest request; a connection that announces a larger one is closed."),
    ("fetch.max.bytes", _INT, _FIXED, at_least(1024),
     "The most bytes that one fetch brings, save for a first batch that is larger."),
    ("max.incremental.fetch.session.cache.slots", _INT, _FIXED, at_least(0),
     "How many incremental fetch sessions are remembered."),
    ("max.request.partition.size.limit", _INT, _FIXED, at_least(1),
     "How many partitions one page of DescribeTopicPartitions holds at most."),
    ("telemetry.max.bytes", _INT, _FIXED, at_least(1),
     "The largest metrics push that a client may send, as compressed."),
)  # fmt: skip

_TOPICS: tuple[_Row, ...] = (
    ("auto.create.topics.enable", _BOOLEAN, _FIXED, None,
     "Whether asking for a topic that is not there creates it."),
    ("delete.topic.enable", _BOOLEAN, _FIXED, None,
     "Whether topics may be deleted through the protocol."),
    ("num.partitions", _INT, _FIXED, at_least(1),
     "Partitions of a topic that is created without saying how many."),
    ("default.replication.factor", _INT, _FIXED, None,
     "Replicas of a topic that is created without saying how many."),
    ("min.insync.replicas", _INT, _LIVE, at_least(1),
     "How many replicas must have a record before acks=all is answered."),
    ("unclean.leader.election.enable", _BOOLEAN, _LIVE, None,
     "Whether a replica that lacks acknowledged records may lead when no other is left."),
    ("message.max.bytes", _INT, _LIVE, at_least(0),
     "The largest record batch, as compressed, that topics take by default."),
    ("compression.type", _STRING, _LIVE, one_of(*COMPRESSION_TYPES),
     "The codec that batches are stored in; producer keeps what came."),
    ("compression.gzip.level", _INT, _LIVE, between(1, 9, -1),
     "The level used when batches are compressed again with gzip."),
    ("compression.lz4.level", _INT, _LIVE, between(1, 17),
     "The level used when batches are compressed again with lz4."),
    ("compression.zstd.level", _INT, _LIVE, between(-131072, 22),
     "The level used when batches are compressed again with zstd."),
    ("producer.id.expiration.ms", _INT, _LIVE, at_least(1),
     "An idempotent producer that was silent for this long is forgotten."),
    ("producer.id.expiration.check.interval.ms", _INT, _FIXED, at_least(1),
     "How often silent producers are looked for."),
)  # fmt: skip

_LOG: tuple[_Row, ...] = (
    ("log.dir", _LIST, _FIXED, not_empty,
     "The directories of the logs, used when log.dirs is not given."),
    ("log.dirs", _LIST, _FIXED, not_empty,
     "The directories of the logs, best one per disk; partitions are spread over them."),
    ("num.recovery.threads.per.data.dir", _INT, _LIVE, at_least(1),
     "How many logs of each directory are checked at the same time after a crash."),
    ("log.segment.bytes", _INT, _LIVE, at_least(1 << 20),
     "A segment file is closed and a new one begun at this size."),
    ("log.roll.ms", _LONG, _LIVE, at_least(1),
     "A segment file is closed at this age; without it log.roll.hours counts."),
    ("log.roll.hours", _INT, _FIXED, at_least(1),
     "A segment file is closed at this age, in hours."),
    ("log.roll.jitter.ms", _LONG, _LIVE, at_least(0),
     "Segments close up to this much earlier, at random, so that they do not close all at once."),
    ("log.roll.jitter.hours", _INT, _FIXED, at_least(0),
     "The jitter of closing segments, in hours, where log.roll.jitter.ms is not given."),
    ("log.index.size.max.bytes", _INT, _LIVE, at_least(4),
     "The largest index file; a full index closes its segment."),
    ("log.index.interval.bytes", _INT, _LIVE, at_least(0),
     "The index gets an entry about every so many bytes of log."),
    ("log.segment.delete.delay.ms", _LONG, _LIVE, at_least(0),
     "Deleted files stay this long under another name, for readers that are still in them."),
    ("log.preallocate", _BOOLEAN, _LIVE, None,
     "Whether room for a whole segment is reserved when it is begun, not as it grows."),
    ("log.cleanup.policy", _LIST, _LIVE, each_of("compact", "delete"),
     "What becomes of old segments: delete, compact, both, or, when empty, nothing."),
    ("log.retention.ms", _LONG, _LIVE, None,
     "Records older than this may go; -1 keeps them for ever; without it log.retention.minutes "
     "counts."),
    ("log.retention.minutes", _INT, _FIXED, None,
     "Records older than this may go, in minutes; without it log.retention.hours counts."),
    ("log.retention.hours", _INT, _FIXED, None,
     "Records older than this may go, in hours."),
    ("log.retention.bytes", _LONG, _LIVE, None,
     "The oldest segments go while a partition is larger than this; -1 sets no limit."),
    ("log.retention.check.interval.ms", _LONG, _FIXED, at_least(1),
     "How often old segments are looked for."),
    ("log.initial.task.delay.ms", _LONG, _FIXED, at_least(0),
     "How long after the start the first round of retention waits."),
    ("log.local.retention.ms", _LONG, _LIVE, at_least(-2),
     "How long tiered topics keep records on local disk; -2 means as long as retention says."),
    ("log.local.retention.bytes", _LONG, _LIVE, at_least(-2),
     "How much tiered topics keep on local disk; -2 means as much as retention says."),
    ("log.message.timestamp.type", _STRING, _LIVE,
     one_of("CreateTime", "LogAppendTime"),
     "Whether records carry the producer's time or the time of the append."),
    ("log.message.timestamp.before.max.ms", _LONG, _LIVE, at_least(0),
     "A record whose timestamp is further in the past than this is refused."),
    ("log.message.timestamp.after.max.ms", _LONG, _LIVE, at_least(0),
     "A record whose timestamp is further in the future than this is refused."),
    ("log.flush.interval.messages", _LONG, _LIVE, at_least(1),
     "A log is forced to disk after so many records."),
    ("log.flush.interval.ms", _LONG, _LIVE, None,
     "A log is forced to disk when a record was only in memory for this long; without it "
     "log.flush.scheduler.interval.ms counts."),
    ("log.flush.scheduler.interval.ms", _LONG, _FIXED, None,
     "How often logs that are due to be forced to disk are looked for."),
    ("log.flush.offset.checkpoint.interval.ms", _INT, _FIXED, at_least(0),
     "How often the recovery points, up to which logs are surely on disk, are written down."),
    ("replica.high.watermark.checkpoint.interval.ms", _LONG, _FIXED, None,
     "How often the high watermarks are written down."),
)  # fmt: skip

_CLEANER: tuple[_Row, ...] = (
    ("log.cleaner.enable", _BOOLEAN, _FIXED, None,
     "Whether compaction runs at all; without it compacted topics only grow."),
    ("log.cleaner.threads", _INT, _LIVE, at_least(0),
     "How many logs are compacted at the same time, up to eight."),
    ("log.cleaner.backoff.ms", _LONG, _LIVE, at_least(0),
     "How long the cleaner rests when no log needs it."),
    ("log.cleaner.io.max.bytes.per.second", _DOUBLE, _LIVE, None,
     "The cleaner reads and writes no more than this together."),
    ("log.cleaner.dedupe.buffer.size", _LONG, _LIVE, None,
     "Memory for the map from keys to their newest offsets."),
    ("log.cleaner.io.buffer.load.factor", _DOUBLE, _LIVE, None,
     "How full the map of keys may become before a run stops at that offset."),
    ("log.cleaner.min.cleanable.ratio", _DOUBLE, _LIVE, between(0, 1),
     "The part of a log that must be new since the last run before it is compacted again."),
    ("log.cleaner.min.compaction.lag.ms", _LONG, _LIVE, at_least(0),
     "Records younger than this are never compacted away."),
    ("log.cleaner.max.compaction.lag.ms", _LONG, _LIVE, at_least(1),
     "A log with a record that waited longer than this is compacted whatever its ratio."),
    ("log.cleaner.delete.retention.ms", _LONG, _LIVE, at_least(0),
     "How long tombstones stay after a run has seen them, for readers that have to learn of them."),
)  # fmt: skip

_METADATA: tuple[_Row, ...] = (
    ("metadata.log.dir", _STRING, _FIXED, None,
     "The directory of the metadata log; the first log directory unless given."),
    ("metadata.log.segment.bytes", _INT, _FIXED, at_least(8 << 20),
     "The size at which a segment of the metadata log is closed."),
    ("metadata.log.segment.ms", _LONG, _FIXED, None,
     "The age at which a segment of the metadata log is closed."),
    ("metadata.max.retention.bytes", _LONG, _FIXED, None,
     "Old segments and snapshots of the metadata log go while together they are larger than this."),
    ("metadata.max.retention.ms", _LONG, _FIXED, None,
     "Segments and snapshots of the metadata log older than this may go."),
    ("metadata.log.max.record.bytes.between.snapshots", _LONG, _FIXED, at_least(1),
     "A snapshot is taken after so many bytes of new metadata records."),
    ("metadata.log.max.snapshot.interval.ms", _LONG, _FIXED, at_least(0),
     "A snapshot is taken after this long if there are new records; 0 turns that off."),
)  # fmt: skip

_OWN: tuple[_Row, ...] = (
    ("headrace.format.new.directories", _BOOLEAN, _FIXED, None,
     "Whether a directory that is not formatted may be added while one that the node had is "
     "missing; for one start, when a lost disk is replaced."),
    ("headrace.metrics.port", _INT, _FIXED, between(0, 65535, -1),
     "The port of the metrics and health pages; -1 opens none, 0 takes any free port."),
    ("headrace.metrics.host", _STRING, _FIXED, not_empty,
     "The interface that the metrics and health pages are served on."),
    ("headrace.registry.listeners", _STRING, _FIXED, None,
     "Where a schema registry for this node listens, as 127.0.0.1:8081; empty starts none."),
    ("headrace.rest.listeners", _STRING, _FIXED, None,
     "Where a REST proxy for this node listens, as 127.0.0.1:8082; empty starts none."),
    ("headrace.schemas.topic", _STRING, _FIXED, not_empty,
     "The registry's topic (its kafkastore.topic), by which topics with "
     "headrace.value.schema.validation or headrace.key.schema.validation are checked."),
    ("headrace.log.format", _STRING, _FIXED, one_of("text", "json"),
     "How the process writes its own log: text for people or one JSON object per line."),
    ("headrace.log.level", _LIST, _FIXED, _log_levels,
     "How much is logged, such as INFO, or INFO,storage=DEBUG for one part of the broker."),
)  # fmt: skip

_INTERNAL = frozenset(
    {
        "log.initial.task.delay.ms",
        "producer.id.expiration.check.interval.ms",
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.state.topic.prune.interval.ms",
    }
)


def field_name(config_name: str) -> str:
    """The field that holds a property: `log.segment.bytes` is `log_segment_bytes`."""
    return config_name.replace(".", "_")


def definitions_of(settings: type[msgspec.Struct]) -> dict[str, ConfigDefinition]:
    """The rows joined with the defaults that the settings class declares."""
    defaults: dict[str, Any] = dict(
        zip(settings.__struct_fields__, settings.__struct_defaults__, strict=True)
    )
    rows = (
        _NODE + _NETWORK + _TOPICS + _LOG + _CLEANER + coordination_configs.ROWS + _METADATA + _OWN
    )
    return {
        name: ConfigDefinition(
            name=name,
            type=kind,
            default=defaults[field_name(name)],
            documentation=documentation,
            validator=validator,
            update_mode=update_mode,
            is_internal=name in _INTERNAL,
        )
        for name, kind, update_mode, validator, documentation in rows
    }
