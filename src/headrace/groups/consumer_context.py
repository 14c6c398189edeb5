"""The circumstances in which a consumer group's decisions are made."""

from collections.abc import Mapping
from typing import cast

import msgspec

from headrace.coordination.effects import TimerKey
from headrace.metadata.image import MetadataImage
from headrace.settings import group as group_settings
from headrace.settings.broker import BrokerSettings

SESSION, REBALANCE = "consumer.session", "consumer.rebalance"
"""The timers of a member: until its next heartbeat, and until it has given up partitions."""

JOIN, SYNC = "consumer.join", "consumer.sync"
"""Those of a member that speaks the classic protocol: until it rejoins, and until it syncs."""


class ConsumerSettings(msgspec.Struct, frozen=True):
    """What is set for a group, by itself or for all of them."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = (1 << 31) - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    regex_refresh_interval_ms: int = 600_000
    migration_policy: str = "bidirectional"
    classic_max_size: int = (1 << 31) - 1


def settings_of(configs: Mapping[str, str], broker: BrokerSettings) -> ConsumerSettings:
    """What counts for a group with these configs of its own."""
    session_ms, heartbeat_ms, assignment_ms = (
        cast(int, group_settings.value_of(f"consumer.{name}", configs, broker))
        for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
    )
    return ConsumerSettings(
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=heartbeat_ms,
        assignment_interval_ms=assignment_ms,
        max_size=broker.group_consumer_max_size,
        assignors=broker.group_consumer_assignors,
        regex_refresh_interval_ms=broker.group_consumer_regex_refresh_interval_ms,
        migration_policy=broker.group_consumer_migration_policy,
        classic_max_size=broker.group_max_size,
    )


class Client(msgspec.Struct, frozen=True):
    """Who sends a request, as it is shown to administrators."""

    id: str
    host: str


class Context(msgspec.Struct, frozen=True):
    """The circumstances of a decision."""

    image: MetadataImage
    settings: ConsumerSettings
    now_ms: int


def timers_of_member(group_id: str, member_id: str) -> list[TimerKey]:
    """All timers that a member may have."""
    return [(kind, group_id, member_id) for kind in (SESSION, REBALANCE, JOIN, SYNC)]
