"""The broker configs of groups and transactions; types and defaults are in `broker.py`.

Part of the table in `broker_configs.py`, where the columns are explained.
"""

from headrace.settings.definitions import (
    ConfigType,
    UpdateMode,
    Validator,
    Value,
    at_least,
    between,
)

_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_LONG, _SHORT, _LIST = ConfigType.LONG, ConfigType.SHORT, ConfigType.LIST
_FIXED, _LIVE = UpdateMode.READ_ONLY, UpdateMode.CLUSTER_WIDE

_Row = tuple[str, ConfigType, UpdateMode, Validator | None, str]

_POLICIES = ("disabled", "downgrade", "upgrade", "bidirectional")


def _migration_policy(value: Value) -> str | None:
    """Kafka takes it in any case."""
    if isinstance(value, str) and value.lower() in _POLICIES:
        return None
    return f"must be one of {', '.join(_POLICIES)}"


def _simple(value: Value) -> str | None:
    """The one assignor of share groups that there is."""
    return None if value == ("simple",) else "must be simple, the only assignor of share groups"


GROUPS: tuple[_Row, ...] = (
    ("group.initial.rebalance.delay.ms", _INT, _FIXED, None,
     "How long a new group waits for more members before its first rebalance."),
    ("group.min.session.timeout.ms", _INT, _FIXED, None,
     "The shortest session timeout that a member of a classic group may ask for."),
    ("group.max.session.timeout.ms", _INT, _FIXED, None,
     "The longest session timeout that a member of a classic group may ask for."),
    ("group.max.size", _INT, _FIXED, at_least(1),
     "How many members a classic group may have."),
    ("offset.metadata.max.bytes", _INT, _FIXED, None,
     "The longest text that a member may leave beside a committed offset."),
    ("offsets.retention.minutes", _INT, _FIXED, at_least(1),
     "Committed offsets of a group without members are forgotten after this."),
    ("offsets.retention.check.interval.ms", _LONG, _FIXED, at_least(1),
     "How often forgotten offsets and groups are looked for."),
    ("offsets.topic.num.partitions", _INT, _FIXED, at_least(1),
     "Partitions of the topic of groups; must not change after it was created."),
    ("offsets.topic.replication.factor", _SHORT, _FIXED, at_least(1),
     "Replicas of the topic of groups, or as many as there are brokers."),
    ("offsets.topic.segment.bytes", _INT, _FIXED, at_least(1),
     "The segment size of the topic of groups; small, so that it is compacted and loaded fast."),
)  # fmt: skip

CONSUMER_GROUPS: tuple[_Row, ...] = (
    ("group.consumer.assignors", _LIST, _FIXED, None,
     "The assignors of consumer groups; the first is used unless members ask for another."),
    ("group.consumer.session.timeout.ms", _INT, _FIXED, at_least(1),
     "A member of a consumer group that was silent for this long is removed."),
    ("group.consumer.min.session.timeout.ms", _INT, _FIXED, at_least(1),
     "The shortest session timeout that a consumer group may be given."),
    ("group.consumer.max.session.timeout.ms", _INT, _FIXED, at_least(1),
     "The longest session timeout that a consumer group may be given."),
    ("group.consumer.heartbeat.interval.ms", _INT, _FIXED, at_least(1),
     "How often members of consumer groups send a heartbeat."),
    ("group.consumer.min.heartbeat.interval.ms", _INT, _FIXED, at_least(1),
     "The shortest heartbeat interval that a consumer group may be given."),
    ("group.consumer.max.heartbeat.interval.ms", _INT, _FIXED, at_least(1),
     "The longest heartbeat interval that a consumer group may be given."),
    ("group.consumer.assignment.interval.ms", _INT, _LIVE, at_least(0),
     "The least time between two assignments of a consumer group."),
    ("group.consumer.min.assignment.interval.ms", _INT, _FIXED, at_least(0),
     "The shortest assignment interval that a consumer group may be given."),
    ("group.consumer.max.assignment.interval.ms", _INT, _FIXED, at_least(0),
     "The longest assignment interval that a consumer group may be given."),
    ("group.consumer.max.size", _INT, _FIXED, at_least(1),
     "How many members a consumer group may have."),
    ("group.consumer.migration.policy", _STRING, _FIXED, _migration_policy,
     "Between which kinds a group may change while it has members."),
    ("group.consumer.regex.refresh.interval.ms", _INT, _FIXED, at_least(10_000),
     "How often the patterns that members subscribe to are matched against all topics again."),
)  # fmt: skip

STREAMS_GROUPS: tuple[_Row, ...] = (
    ("group.streams.session.timeout.ms", _INT, _FIXED, at_least(1),
     "A member of a streams group that was silent for this long is removed."),
    ("group.streams.min.session.timeout.ms", _INT, _FIXED, at_least(1),
     "The shortest session timeout that a streams group may be given."),
    ("group.streams.max.session.timeout.ms", _INT, _FIXED, at_least(1),
     "The longest session timeout that a streams group may be given."),
    ("group.streams.heartbeat.interval.ms", _INT, _FIXED, at_least(1),
     "How often members of streams groups send a heartbeat."),
    ("group.streams.min.heartbeat.interval.ms", _INT, _FIXED, at_least(1),
     "The shortest heartbeat interval that a streams group may be given."),
    ("group.streams.max.heartbeat.interval.ms", _INT, _FIXED, at_least(1),
     "The longest heartbeat interval that a streams group may be given."),
    ("group.streams.assignment.interval.ms", _INT, _LIVE, at_least(0),
     "The least time between two assignments of a streams group."),
    ("group.streams.min.assignment.interval.ms", _INT, _FIXED, at_least(0),
     "The shortest assignment interval that a streams group may be given."),
    ("group.streams.max.assignment.interval.ms", _INT, _FIXED, at_least(0),
     "The longest assignment interval that a streams group may be given."),
    ("group.streams.initial.rebalance.delay.ms", _INT, _FIXED, at_least(0),
     "How long a new streams group waits for more members before its first assignment."),
    ("group.streams.max.size", _INT, _FIXED, at_least(1),
     "How many members a streams group may have."),
    ("group.streams.num.standby.replicas", _INT, _FIXED, at_least(0),
     "How many standby copies of its state a streams group keeps."),
    ("group.streams.max.standby.replicas", _INT, _FIXED, at_least(0),
     "The most standby copies that a streams group may be given."),
)  # fmt: skip

SHARE_GROUPS: tuple[_Row, ...] = (
    ("group.share.session.timeout.ms", _INT, _FIXED, at_least(1),
     "A member of a share group that was silent for this long is removed."),
    ("group.share.min.session.timeout.ms", _INT, _FIXED, at_least(1),
     "The shortest session timeout that a share group may be given."),
    ("group.share.max.session.timeout.ms", _INT, _FIXED, at_least(1),
     "The longest session timeout that a share group may be given."),
    ("group.share.heartbeat.interval.ms", _INT, _FIXED, at_least(1),
     "How often members of share groups send a heartbeat."),
    ("group.share.min.heartbeat.interval.ms", _INT, _FIXED, at_least(1),
     "The shortest heartbeat interval that a share group may be given."),
    ("group.share.max.heartbeat.interval.ms", _INT, _FIXED, at_least(1),
     "The longest heartbeat interval that a share group may be given."),
    ("group.share.assignment.interval.ms", _INT, _LIVE, at_least(0),
     "The least time between two assignments of a share group."),
    ("group.share.min.assignment.interval.ms", _INT, _FIXED, at_least(0),
     "The shortest assignment interval that a share group may be given."),
    ("group.share.max.assignment.interval.ms", _INT, _FIXED, at_least(0),
     "The longest assignment interval that a share group may be given."),
    ("group.share.delivery.count.limit", _INT, _FIXED, between(2, 10),
     "How often a record is delivered before it is given up."),
    ("group.share.min.delivery.count.limit", _INT, _FIXED, between(2, 5),
     "The lowest delivery count limit that a share group may be given."),
    ("group.share.max.delivery.count.limit", _INT, _FIXED, between(5, 25),
     "The highest delivery count limit that a share group may be given."),
    ("group.share.record.lock.duration.ms", _INT, _FIXED, between(1000, 3_600_000),
     "How long a member has for a record before another gets it."),
    ("group.share.min.record.lock.duration.ms", _INT, _FIXED, between(1000, 30_000),
     "The shortest record lock that a share group may be given."),
    ("group.share.max.record.lock.duration.ms", _INT, _FIXED, between(30_000, 3_600_000),
     "The longest record lock that a share group may be given."),
    ("group.share.partition.max.record.locks", _INT, _FIXED, between(100, 10_000),
     "How many records of a partition a share group may have in flight."),
    ("group.share.min.partition.max.record.locks", _INT, _FIXED, between(100, 2000),
     "The lowest limit of records in flight that a share group may be given."),
    ("group.share.max.partition.max.record.locks", _INT, _FIXED, between(2000, 10_000),
     "The highest limit of records in flight that a share group may be given."),
    ("group.share.max.size", _INT, _FIXED, between(1, 1000),
     "How many members a share group may have."),
    ("group.share.max.share.sessions", _INT, _FIXED, at_least(1),
     "How many share sessions a broker serves at once."),
    ("errors.deadletterqueue.topic.name.prefix", _STRING, _FIXED, None,
     "The dead letter topics of share groups have names that begin so."),
    ("errors.deadletterqueue.auto.create.topics.enable", _BOOLEAN, _FIXED, None,
     "Whether a dead letter topic that is missing is created by its first letter."),
    ("group.share.assignors", _LIST, _FIXED, _simple,
     "Who shares out the partitions of share groups: there is one, simple."),
    ("group.share.initialize.retry.interval.ms", _INT, _FIXED, at_least(1),
     "When to try again to begin the states of partitions that a share group is to read."),
    ("share.coordinator.state.topic.num.partitions", _INT, _FIXED, at_least(1),
     "Partitions of the topic of share states; must not change after it was created."),
    ("share.coordinator.state.topic.replication.factor", _SHORT, _FIXED, at_least(1),
     "Replicas of the topic of share states, or as many as there are brokers."),
    ("share.coordinator.state.topic.min.isr", _SHORT, _FIXED, at_least(1),
     "In-sync replicas that the topic of share states needs, or as many as it has replicas."),
    ("share.coordinator.state.topic.segment.bytes", _INT, _FIXED, at_least(1),
     "The segment size of the topic of share states."),
    ("share.coordinator.state.topic.prune.interval.ms", _INT, _FIXED, at_least(1),
     "How often records that later ones made redundant are deleted from the topic."),
    ("share.coordinator.snapshot.update.records.per.snapshot", _INT, _FIXED, between(0, 500),
     "How many changes of a share partition are written before its whole state is."),
    ("share.coordinator.cold.partition.snapshot.interval.ms", _INT, _FIXED, at_least(1),
     "After this time the whole state of a share partition is written in any case."),
)  # fmt: skip

TRANSACTIONS: tuple[_Row, ...] = (
    ("transaction.max.timeout.ms", _INT, _FIXED, at_least(1),
     "The longest transaction timeout that a producer may ask for."),
    ("transaction.state.log.num.partitions", _INT, _FIXED, at_least(1),
     "Partitions of the topic of transactions; must not change after it was created."),
    ("transaction.state.log.replication.factor", _SHORT, _FIXED, at_least(1),
     "Replicas of the topic of transactions, or as many as there are brokers."),
    ("transaction.state.log.min.isr", _INT, _FIXED, at_least(1),
     "In-sync replicas that the topic of transactions needs, or as many as it has replicas."),
    ("transaction.state.log.segment.bytes", _INT, _FIXED, at_least(1),
     "The segment size of the topic of transactions."),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", _INT, _FIXED, at_least(1),
     "How often transactions that took too long are looked for."),
    ("transaction.remove.expired.transaction.cleanup.interval.ms", _INT, _FIXED, at_least(1),
     "How often transactional ids that are not used any more are looked for."),
    ("transaction.partition.verification.enable", _BOOLEAN, _LIVE, None,
     "Whether a partition asks the coordinator before it takes records of a transaction."),
    ("transactional.id.expiration.ms", _INT, _FIXED, at_least(1),
     "A transactional id that was silent for this long is forgotten."),
)  # fmt: skip

ROWS = GROUPS + CONSUMER_GROUPS + STREAMS_GROUPS + SHARE_GROUPS + TRANSACTIONS
