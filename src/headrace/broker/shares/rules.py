"""What share groups' configs say, read once for many fetches."""

from typing import TYPE_CHECKING, NamedTuple

from headrace.metadata.image import ResourceType
from headrace.settings.share_group import ShareGroupSettings, share_group_settings
from headrace.shares.selection import ShareLimits

if TYPE_CHECKING:
    from headrace.broker.node import Broker
    from headrace.settings.broker import BrokerSettings

_GROUPS_KNOWN_MAX = 10_000


class GroupRules(NamedTuple):
    """What a group's configs say, in the shape that each part of the work wants."""

    settings: ShareGroupSettings
    limits: ShareLimits


class _Known(NamedTuple):
    """Rules, and what they were made of: they hold while these are the same objects."""

    configs: object
    settings: "BrokerSettings"
    rules: GroupRules


class Rules:
    """The rules of every group that took records lately."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._known: dict[str, _Known] = {}

    def of(self, group_id: str) -> GroupRules:
        """A group's rules, made anew only when its configs or the broker's have changed."""
        configs = self._broker.image.configs_of(ResourceType.GROUP, group_id)
        settings = self._broker.settings
        mark = configs or None  # Without configs there is no object that stays the same.
        known = self._known.get(group_id)
        if known is not None and known.configs is mark and known.settings is settings:
            return known.rules
        own = share_group_settings(configs, settings)
        limits = ShareLimits(
            own.delivery_count_limit,
            own.record_locks_max,
            own.lock_duration_ms,
            own.can_renew,
            bool(own.dead_letter_topic),
        )
        if len(self._known) >= _GROUPS_KNOWN_MAX:
            self._known.clear()
        rules = GroupRules(own, limits)
        self._known[group_id] = _Known(mark, settings, rules)
        return rules
