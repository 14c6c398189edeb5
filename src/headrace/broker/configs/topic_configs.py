"""What the configs of topics and broker come to: the settings in force, and those of each log."""

import logging
from typing import TYPE_CHECKING

from headrace.metadata.image import ResourceType
from headrace.settings.broker import BROKER_CONFIGS, with_dynamic
from headrace.settings.topic import STRATEGY_CONFIGS, VALIDATION_CONFIGS, effective, value_of
from headrace.storage.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.metadata.image import MetadataImage
    from headrace.serdes.payload_rules import PayloadRule, Registered
    from headrace.settings.broker import BrokerSettings

_log = logging.getLogger(__name__)

_TOLD_MAX = 1000
_VALIDATIONS = frozenset(VALIDATION_CONFIGS.values())


class TopicConfigs:
    """The effective config of every topic's logs; equal configs are one object."""

    def __init__(self, static: "BrokerSettings", node_id: int, schemas: "Registered") -> None:
        self._static = static
        self._node_id = node_id
        self._schemas = schemas
        self._made: dict[frozenset[tuple[str, str]], LogConfig] = {}
        self._told: set[str] = set()
        self.settings = static
        """Those of the broker, with what was changed at run time."""

    def of(self, image: "MetadataImage", topic: str) -> LogConfig:
        overrides = image.configs_of(ResourceType.TOPIC, topic)
        if not _VALIDATIONS.isdisjoint(overrides):
            return self._with_rules(topic, overrides)
        key = frozenset(overrides.items())
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = LogConfig(**effective(overrides, self.settings))
        return made

    def _with_rules(self, topic: str, overrides: "Mapping[str, str]") -> LogConfig:
        """The config of a topic whose payloads must name registered schemas: its very own."""
        return LogConfig(
            **effective(overrides, self.settings),
            record_rules=_payload_rules(topic, overrides, self.settings, self._schemas),
        )

    def relayer(self, image: "MetadataImage") -> None:
        """The broker's own configs have changed: every topic's defaults may be others now."""
        cluster_default = image.configs_of(ResourceType.BROKER, "")
        own = image.configs_of(ResourceType.BROKER, str(self._node_id))
        self.settings = with_dynamic(self._static, cluster_default, own)
        self._made.clear()
        for name in (*cluster_default, *own):
            if name not in BROKER_CONFIGS:
                self._tell_without_effect(name)

    def _tell_without_effect(self, name: str) -> None:
        """Once for each config: who set it may be waiting for something to happen."""
        from headrace.settings.kafka_properties import reason_without_effect

        if name not in self._told and len(self._told) < _TOLD_MAX:
            self._told.add(name)
            _log.warning("%s has no effect: %s", name, reason_without_effect(name))


def _payload_rules(
    topic: str,
    overrides: "Mapping[str, str]",
    settings: "BrokerSettings",
    schemas: "Registered",
) -> "tuple[PayloadRule, ...]":
    from headrace.serdes.payload_rules import PayloadRule
    from headrace.serdes.subject_strategies import strategy_named

    return tuple(
        PayloadRule(
            part,
            topic,
            strategy_named(str(value_of(STRATEGY_CONFIGS[part], overrides, settings))),
            schemas,
        )
        for part, name in VALIDATION_CONFIGS.items()
        if value_of(name, overrides, settings)
    )
