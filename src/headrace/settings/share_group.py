"""A share group's configs as the leaders of its partitions use them."""

from collections.abc import Mapping
from typing import cast

import msgspec

from headrace.settings.broker import BrokerSettings
from headrace.settings.durations import duration_ms
from headrace.settings.group import BY_DURATION, value_of


class ShareGroupSettings(msgspec.Struct, frozen=True):
    """The limits for every partition of a share group."""

    delivery_count_limit: int
    record_locks_max: int
    lock_duration_ms: int
    can_renew: bool
    is_read_committed: bool
    auto_offset_reset: str
    dead_letter_topic: str
    copies_dead_letters: bool

    @property
    def reset_duration_ms(self) -> int | None:
        """The age at which the group begins, unless it begins at an end of the log."""
        if not self.auto_offset_reset.startswith(BY_DURATION):
            return None
        return duration_ms(self.auto_offset_reset.removeprefix(BY_DURATION))


def share_group_settings(
    configs: Mapping[str, str], settings: BrokerSettings
) -> ShareGroupSettings:
    """The group's own configs where it has any, within the broker's limits."""

    def number(name: str) -> int:
        return cast(int, value_of(name, configs, settings))

    def text(name: str) -> str:
        return str(value_of(name, configs, settings))

    return ShareGroupSettings(
        delivery_count_limit=number("share.delivery.count.limit"),
        record_locks_max=number("share.partition.max.record.locks"),
        lock_duration_ms=number("share.record.lock.duration.ms"),
        can_renew=bool(value_of("share.renew.acknowledge.enable", configs, settings)),
        is_read_committed=text("share.isolation.level") == "read_committed",
        auto_offset_reset=text("share.auto.offset.reset"),
        dead_letter_topic=text("errors.deadletterqueue.topic.name"),
        copies_dead_letters=bool(
            value_of("errors.deadletterqueue.copy.record.enable", configs, settings)
        ),
    )
