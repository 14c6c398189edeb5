"""The configs of a group: overrides of the broker's group settings.

A group stores only its overrides, which must be within the broker's limits. If the limits change
later, the nearest value within them is used.
"""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.errors import InvalidConfig
from headrace.settings.broker import BROKER_CONFIGS, BrokerSettings, field_name
from headrace.settings.definitions import (
    ConfigDefinition,
    ConfigType,
    Validator,
    Value,
    at_least,
    nearest,
    one_of,
)
from headrace.settings.durations import duration_ms

_INT, _STRING, _BOOLEAN = ConfigType.INT, ConfigType.STRING, ConfigType.BOOLEAN
_KINDS = ("consumer", "share", "streams")
_DEAD_LETTERS = "errors.deadletterqueue.topic.name"

BY_DURATION = "by_duration:"


class _Row(NamedTuple):
    """A config of a group.

    `group.` before the name gives the broker config with the default for all groups. A row with a
    default of its own has no such broker config.
    """

    name: str
    validator: Validator | None
    documentation: str
    type: ConfigType = _INT
    default: Value = None


def _offset_reset(value: Value) -> str | None:
    """Check the start of a share group: an end of the log, or some time ago."""
    if value in ("earliest", "latest"):
        return None
    is_duration = isinstance(value, str) and value.startswith(BY_DURATION)
    if is_duration and duration_ms(str(value).removeprefix(BY_DURATION)) is not None:
        return None
    return "must be earliest, latest or by_duration: with a duration such as PT1H"


def _dead_letter_topic(value: Value) -> str | None:
    """Reject internal topics, which the broker must not fill with dead letters."""
    if isinstance(value, str) and value.startswith("__"):
        return "must not be an internal topic"
    return None


_ROWS = (
    _Row("consumer.session.timeout.ms", at_least(1),
         "Time without a heartbeat after which a member of the consumer group is removed."),
    _Row("consumer.heartbeat.interval.ms", at_least(1),
         "Interval at which members of the consumer group send heartbeats."),
    _Row("consumer.assignment.interval.ms", at_least(0),
         "Minimum time between two assignments of the consumer group."),
    _Row("share.session.timeout.ms", at_least(1),
         "Time without a heartbeat after which a member of the share group is removed."),
    _Row("share.heartbeat.interval.ms", at_least(1),
         "Interval at which members of the share group send heartbeats."),
    _Row("share.record.lock.duration.ms", at_least(1_000),
         "Time after which an acquired record is available to other members again."),
    _Row("share.delivery.count.limit", at_least(2),
         "Maximum number of deliveries of a record, after which it is rejected."),
    _Row("share.partition.max.record.locks", at_least(100),
         "Maximum number of records of a partition that are in flight."),
    _Row("share.auto.offset.reset", _offset_reset,
         "Position at which a share group begins to read a partition.", _STRING, "latest"),
    _Row("share.isolation.level", one_of("read_committed", "read_uncommitted"),
         "Records to deliver: all, or only committed ones (read_committed).", _STRING,
         "read_uncommitted"),
    _Row("share.renew.acknowledge.enable", None,
         "Allows members to renew the lock of a record.", _BOOLEAN, True),
    _Row("share.assignment.interval.ms", at_least(0),
         "Minimum time between two assignments of the share group."),
    _Row(_DEAD_LETTERS, _dead_letter_topic,
         "The topic for records that the share group rejects; empty for no topic.", _STRING,
         ""),
    _Row("errors.deadletterqueue.copy.record.enable", None,
         "Copies the record into the dead letter, which otherwise has only its position.",
         _BOOLEAN, False),
    _Row("streams.session.timeout.ms", at_least(1),
         "Time without a heartbeat after which a member of the streams group is removed."),
    _Row("streams.heartbeat.interval.ms", at_least(1),
         "Interval at which members of the streams group send heartbeats."),
    _Row("streams.num.standby.replicas", at_least(0),
         "Number of standby copies of the state of each task."),
    _Row("streams.initial.rebalance.delay.ms", at_least(0),
         "Time that a new streams group waits for more members before it assigns tasks."),
    _Row("streams.assignment.interval.ms", at_least(0),
         "Minimum time between two assignments of the streams group."),
)  # fmt: skip


def _limit_name(name: str, end: str) -> str:
    """`group.share.max.delivery.count.limit`, and one that Kafka names otherwise."""
    kind, _, rest = name.partition(".")
    return f"group.{kind}.{end}.{rest.removeprefix('num.')}"


def _definition(row: _Row) -> ConfigDefinition:
    behind = BROKER_CONFIGS.get(f"group.{row.name}")
    return ConfigDefinition(
        name=row.name,
        type=row.type,
        default=row.default if behind is None else behind.default,
        validator=row.validator,
        documentation=row.documentation,
        synonyms=() if behind is None else (behind.name,),
    )


GROUP_CONFIGS: Mapping[str, ConfigDefinition] = {
    row.name: _definition(row) for row in sorted(_ROWS)
}
"""By name, in the order in which they are described."""


def validate(configs: Mapping[str, str], settings: BrokerSettings) -> None:
    """Raise if a config of a group, or their combination, is invalid."""
    for name, text in configs.items():
        definition = GROUP_CONFIGS.get(name)
        if definition is None:
            hint = nearest(name, GROUP_CONFIGS)
            raise InvalidConfig(f"Unknown group config name: {name}{hint}")
        value = definition.parse(text)
        if isinstance(value, int):
            _check_limits(name, value, settings)
    prefix = settings.errors_deadletterqueue_topic_name_prefix
    if not (configs.get(_DEAD_LETTERS) or prefix).startswith(prefix):
        raise InvalidConfig(
            f"{_DEAD_LETTERS} must begin with {prefix} (errors.deadletterqueue.topic.name.prefix)"
        )
    for kind in _KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _number(session, configs, settings) <= _number(heartbeat, configs, settings):
            raise InvalidConfig(f"{session} must be greater than {heartbeat}")


def value_of(name: str, configs: Mapping[str, str], settings: BrokerSettings) -> Value:
    """The effective value of a config: the group's value within the limits, or the broker's."""
    definition = GROUP_CONFIGS[name]
    if name not in configs:
        return broker_value(definition, settings)
    value = definition.read(configs[name])
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    low, high = _limits(name, settings)
    return min(max(value, value if low is None else low), value if high is None else high)


def broker_value(definition: ConfigDefinition, settings: BrokerSettings) -> Value:
    """The broker's value for all groups."""
    if not definition.synonyms:
        return definition.default
    value: Value = getattr(settings, field_name(definition.synonyms[0]))
    return value


def _number(name: str, configs: Mapping[str, str], settings: BrokerSettings) -> int:
    value = value_of(name, configs, settings)
    assert isinstance(value, int)
    return value


def _check_limits(name: str, value: int, settings: BrokerSettings) -> None:
    low, high = _limits(name, settings)
    if low is not None and value < low:
        raise InvalidConfig(f"{name} must be greater than or equal to {_limit_name(name, 'min')}")
    if high is not None and value > high:
        raise InvalidConfig(f"{name} must be less than or equal to {_limit_name(name, 'max')}")


def _limits(name: str, settings: BrokerSettings) -> tuple[int | None, int | None]:
    low: int | None = getattr(settings, field_name(_limit_name(name, "min")), None)
    high: int | None = getattr(settings, field_name(_limit_name(name, "max")), None)
    return low, high
