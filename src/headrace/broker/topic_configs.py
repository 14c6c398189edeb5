"""What the configs of topics and broker come to: the settings in force, and those of each log."""

from typing import TYPE_CHECKING

from headrace.metadata.image import ResourceType
from headrace.settings.broker import with_dynamic
from headrace.settings.topic import effective
from headrace.storage.config import LogConfig

if TYPE_CHECKING:
    from headrace.metadata.image import MetadataImage
    from headrace.settings.broker import BrokerSettings


class TopicConfigs:
    """The effective config of every topic's logs; equal configs are one object."""

    def __init__(self, static: "BrokerSettings", node_id: int) -> None:
        self._static = static
        self._node_id = node_id
        self._made: dict[frozenset[tuple[str, str]], LogConfig] = {}
        self.settings = static
        """Those of the broker, with what was changed at run time."""

    def of(self, image: "MetadataImage", topic: str) -> LogConfig:
        overrides = image.configs_of(ResourceType.TOPIC, topic)
        key = frozenset(overrides.items())
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = LogConfig(**effective(overrides, self.settings))
        return made

    def relayer(self, image: "MetadataImage") -> None:
        """The broker's own configs have changed: every topic's defaults may be others now."""
        self.settings = with_dynamic(
            self._static,
            image.configs_of(ResourceType.BROKER, ""),
            image.configs_of(ResourceType.BROKER, str(self._node_id)),
        )
        self._made.clear()
