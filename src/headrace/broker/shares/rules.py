"""The configs of share groups, parsed once for many fetches."""

from typing import TYPE_CHECKING, NamedTuple

from headrace.metadata.image import ResourceType
from headrace.settings.share_group import ShareGroupSettings, share_group_settings
from headrace.shares.selection import ShareLimits

if TYPE_CHECKING:
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.metadata import ClusterMetadata
    from headrace.settings.broker import BrokerSettings

_CACHED_MAX = 10_000


class GroupRules(NamedTuple):
    """A group's configs, as settings and as limits of its share partitions."""

    settings: ShareGroupSettings
    limits: ShareLimits


class _Cached(NamedTuple):
    """Rules, with the configs and settings from which they were made: valid while unchanged."""

    configs: object
    settings: "BrokerSettings"
    rules: GroupRules


class Rules:
    """A cache of the rules of groups."""

    def __init__(self, controller: "ClusterMetadata", configs: "TopicConfigs") -> None:
        self._controller = controller
        self._configs = configs
        self._cached: dict[str, _Cached] = {}

    def of(self, group_id: str) -> GroupRules:
        """Return a group's rules, rebuilt when its configs or the broker's have changed."""
        configs = self._controller.image.configs_of(ResourceType.GROUP, group_id)
        settings = self._configs.settings
        mark = configs or None  # Without configs there is no object that stays the same.
        cached = self._cached.get(group_id)
        if cached is not None and cached.configs is mark and cached.settings is settings:
            return cached.rules
        own = share_group_settings(configs, settings)
        limits = ShareLimits(
            own.delivery_count_limit,
            own.record_locks_max,
            own.lock_duration_ms,
            own.can_renew,
            bool(own.dead_letter_topic),
        )
        if len(self._cached) >= _CACHED_MAX:
            self._cached.clear()
        rules = GroupRules(own, limits)
        self._cached[group_id] = _Cached(mark, settings, rules)
        return rules
