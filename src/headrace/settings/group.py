"""The configs of a group: what one group may have otherwise than the broker sets for all.

A group stores only its overrides, and they must lie within the limits that the broker sets. Where
those limits have moved since, the nearest value within them counts.
"""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.errors import InvalidConfig
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_configs import field_name
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
    """A config of a group; `group.` before its name gives the broker's, if there is one."""

    name: str
    default: Value
    validator: Validator | None
    documentation: str
    type: ConfigType = _INT
    has_broker_config: bool = True


def _offset_reset(value: Value) -> str | None:
    """Where a share group starts: an end of the log, or some time ago."""
    if value in ("earliest", "latest"):
        return None
    is_duration = isinstance(value, str) and value.startswith(BY_DURATION)
    if is_duration and duration_ms(str(value).removeprefix(BY_DURATION)) is not None:
        return None
    return "must be earliest, latest or by_duration: with a duration such as PT1H"


def _dead_letter_topic(value: Value) -> str | None:
    """What the broker writes by itself must not reach a topic that others rely on."""
    if isinstance(value, str) and value.startswith("__"):
        return "must not be an internal topic"
    return None


_ROWS = (
    _Row("consumer.session.timeout.ms", 45_000, at_least(1),
         "A member of the consumer group that was silent for this long is removed."),
    _Row("consumer.heartbeat.interval.ms", 5_000, at_least(1),
         "How often the members of the consumer group send a heartbeat."),
    _Row("consumer.assignment.interval.ms", 1_000, at_least(0),
         "The least time between two assignments of the consumer group."),
    _Row("share.session.timeout.ms", 45_000, at_least(1),
         "A member of the share group that was silent for this long is removed."),
    _Row("share.heartbeat.interval.ms", 5_000, at_least(1),
         "How often the members of the share group send a heartbeat."),
    _Row("share.record.lock.duration.ms", 30_000, at_least(1_000),
         "How long a record is held for the member that acquired it."),
    _Row("share.delivery.count.limit", 5, at_least(2),
         "How often a record is delivered before it is given up."),
    _Row("share.partition.max.record.locks", 2_000, at_least(100),
         "How many records of a partition may be under way at once."),
    _Row("share.auto.offset.reset", "latest", _offset_reset,
         "Where a share group begins to read a partition.", _STRING, has_broker_config=False),
    _Row("share.isolation.level", "read_uncommitted", one_of("read_committed", "read_uncommitted"),
         "Whether records of transactions under way or aborted are delivered.", _STRING,
         has_broker_config=False),
    _Row("share.renew.acknowledge.enable", True, None,
         "Whether members may renew their hold on a record.", _BOOLEAN, has_broker_config=False),
    _Row("share.assignment.interval.ms", 1_000, at_least(0),
         "The least time between two assignments of the share group."),
    _Row(_DEAD_LETTERS, "", _dead_letter_topic,
         "The topic for records that the share group gives up; empty for none.", _STRING,
         has_broker_config=False),
    _Row("errors.deadletterqueue.copy.record.enable", False, None,
         "Whether a dead letter holds a copy of the record, or only says which one it was.",
         _BOOLEAN, has_broker_config=False),
    _Row("streams.session.timeout.ms", 45_000, at_least(1),
         "A member of the streams group that was silent for this long is removed."),
    _Row("streams.heartbeat.interval.ms", 5_000, at_least(1),
         "How often the members of the streams group send a heartbeat."),
    _Row("streams.num.standby.replicas", 0, at_least(0),
         "How many members keep a copy of each task's state at hand."),
    _Row("streams.initial.rebalance.delay.ms", 3_000, at_least(0),
         "How long a new streams group waits for more members before it shares out tasks."),
    _Row("streams.assignment.interval.ms", 1_000, at_least(0),
         "The least time between two assignments of the streams group."),
)  # fmt: skip


def _limit_name(name: str, end: str) -> str:
    """`group.share.max.delivery.count.limit`, and one that Kafka names otherwise."""
    kind, _, rest = name.partition(".")
    return f"group.{kind}.{end}.{rest.removeprefix('num.')}"


GROUP_CONFIGS: Mapping[str, ConfigDefinition] = {
    row.name: ConfigDefinition(
        name=row.name,
        type=row.type,
        default=row.default,
        validator=row.validator,
        documentation=row.documentation,
        synonyms=(f"group.{row.name}",) if row.has_broker_config else (),
    )
    for row in sorted(_ROWS)
}
"""By name, in the order in which they are described."""


BROKER_SETTINGS = frozenset(
    field_name(setting)
    for row in _ROWS
    if row.has_broker_config
    for setting in (
        f"group.{row.name}",
        *(_limit_name(row.name, end) for end in ("min", "max")),
    )
)
"""The settings of the broker that are read here: defaults and limits."""


def validate(configs: Mapping[str, str], settings: BrokerSettings) -> None:
    """Raise unless a group may have these configs, each by itself and together."""
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
    """What a config comes to: the group's own value within the limits, or the broker's."""
    definition = GROUP_CONFIGS[name]
    if name not in configs:
        return broker_value(definition, settings)
    value = definition.read(configs[name])
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    low, high = _limits(name, settings)
    return min(max(value, value if low is None else low), value if high is None else high)


def broker_value(definition: ConfigDefinition, settings: BrokerSettings) -> Value:
    """What the broker sets for all groups."""
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
