"""The rules for dynamic configs, as this node's settings define them."""

from collections.abc import Mapping

from headrace.controller.configs import ConfigRules
from headrace.errors import InvalidRequest
from headrace.metadata.image import ConfigResource, ResourceType
from headrace.settings import client_metrics, group, topic
from headrace.settings.broker_layers import BrokerLayers, definition_of, is_known
from headrace.settings.definitions import ConfigDefinition, ConfigType
from headrace.settings.dynamic import validate_dynamic


class SettingsRules(ConfigRules):
    """The rules for the configs of each kind of resource, by the settings of this broker."""

    __slots__ = ("_layers", "settings")

    def __init__(self, layers: BrokerLayers) -> None:
        self._layers = layers
        self.settings = layers.settings

    def check(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        match resource.type:
            case ResourceType.TOPIC:
                topic.validate(configs, self.settings)
            case ResourceType.BROKER:
                validate_dynamic(configs, self._layers, is_per_broker=bool(resource.name))
            case ResourceType.CLIENT_METRICS:
                client_metrics.validate(configs)
            case ResourceType.GROUP:
                group.validate(configs, self.settings)
            case _:
                raise InvalidRequest(
                    f"configs of resource type {resource.type} are not supported by this version"
                )

    def is_list(self, resource_type: int, name: str) -> bool:
        definition = self._definition(resource_type, name)
        return definition is not None and definition.type is ConfigType.LIST

    def default(self, resource_type: int, name: str) -> str | None:
        definition = self._definition(resource_type, name)
        if definition is None:
            return None
        if resource_type == ResourceType.TOPIC:
            return definition.render(topic.value_of(name, {}, self.settings))
        if resource_type == ResourceType.GROUP:
            return definition.render(group.broker_value(definition, self.settings))
        return definition.render(definition.default)

    def _definition(self, resource_type: int, name: str) -> ConfigDefinition | None:
        match resource_type:
            case ResourceType.TOPIC:
                return topic.TOPIC_CONFIGS.get(name)
            case ResourceType.BROKER:
                return definition_of(name) if is_known(name) else None
            case ResourceType.CLIENT_METRICS:
                return client_metrics.CLIENT_METRICS_CONFIGS.get(name)
            case ResourceType.GROUP:
                return group.GROUP_CONFIGS.get(name)
            case _:
                return None
