"""The effective configs of the broker and of the logs of each topic."""

import logging
from typing import TYPE_CHECKING

from headrace.metadata.image import ResourceType
from headrace.settings.broker import BROKER_CONFIGS
from headrace.settings.broker_layers import BrokerLayers
from headrace.settings.broker_loading import with_dynamic
from headrace.settings.topic import STRATEGY_CONFIGS, VALIDATION_CONFIGS, effective, value_of
from headrace.storage.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headrace.metadata.image import MetadataImage
    from headrace.protocol.schemas.describe_configs import DescribeConfigsResourceResult
    from headrace.serdes.payload_rules import PayloadRule, Registered
    from headrace.settings.broker import BrokerSettings

_log = logging.getLogger(__name__)

_WARNED_MAX = 1000
_VALIDATIONS = frozenset(VALIDATION_CONFIGS.values())


Entries = list["DescribeConfigsResourceResult"]


class DescribedBroker:
    """The broker's own configs in the form of DescribeConfigs, cached until one of them changes.

    There are hundreds, each with a text and its layers. Tools request all of them repeatedly, and
    building the list would block the loop for milliseconds. The entries are cached by the form of
    the response: with synonyms, with documentation.
    """

    def __init__(self) -> None:
        self._layers: BrokerLayers | None = None
        self._entries: dict[tuple[bool, bool], Entries] = {}

    def entries(
        self, layers: BrokerLayers, asked: tuple[bool, bool], make: "Callable[[], Entries]"
    ) -> Entries:
        """Return the cached entries if all layers are unchanged; callers must not modify them."""
        if layers != self._layers:
            self._layers = layers
            self._entries = {}
        kept = self._entries.get(asked)
        if kept is None:
            kept = self._entries[asked] = make()
        return kept


class TopicConfigs:
    """The effective config of every topic's logs; equal configs are one object."""

    def __init__(self, static: "BrokerSettings", node_id: int, schemas: "Registered") -> None:
        self._static = static
        self._node_id = node_id
        self._schemas = schemas
        self._made: dict[frozenset[tuple[str, str]], LogConfig] = {}
        self._warned: set[str] = set()
        self.described_broker = DescribedBroker()
        self.settings = static
        """The settings of the broker with the changes made at run time."""

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
        """The config of a topic with schema validation, which no other topic shares."""
        return LogConfig(
            **effective(overrides, self.settings),
            record_rules=_payload_rules(topic, overrides, self.settings, self._schemas),
        )

    def layers(self, image: "MetadataImage") -> BrokerLayers:
        """The layers of this broker's configs, from the properties file up to its own overrides."""
        return BrokerLayers(
            static=self.settings,
            dynamic_default=image.configs_of(ResourceType.BROKER, ""),
            dynamic=image.configs_of(ResourceType.BROKER, str(self._node_id)),
        )

    def relayer(self, image: "MetadataImage") -> None:
        """Apply changed configs of the broker, which may change the defaults of every topic."""
        cluster_default = image.configs_of(ResourceType.BROKER, "")
        own = image.configs_of(ResourceType.BROKER, str(self._node_id))
        self.settings = with_dynamic(self._static, cluster_default, own)
        self._made.clear()
        for name in (*cluster_default, *own):
            if name not in BROKER_CONFIGS and not name.endswith(".replication.throttled.rate"):
                self._warn_of_no_effect(name)

    def _warn_of_no_effect(self, name: str) -> None:
        """Warn once of each config that changes nothing."""
        from headrace.settings.kafka_properties import reason_without_effect

        if name not in self._warned and len(self._warned) < _WARNED_MAX:
            self._warned.add(name)
            reason = reason_without_effect(name)
            _log.warning("config has no effect", extra={"config": name, "reason": reason})


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
