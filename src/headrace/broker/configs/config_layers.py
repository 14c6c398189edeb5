"""The layers of this broker's configs, from its properties file up to what was set for it alone."""

from typing import TYPE_CHECKING

from headrace.controller.config_rules import SettingsRules
from headrace.metadata.image import ResourceType
from headrace.settings.broker_layers import BrokerLayers

if TYPE_CHECKING:
    from headrace.broker.node import Broker


def layers_of(broker: "Broker") -> BrokerLayers:
    image = broker.image
    return BrokerLayers(
        static=broker.settings,
        dynamic_default=image.configs_of(ResourceType.BROKER, ""),
        dynamic=image.configs_of(ResourceType.BROKER, str(broker.node_id)),
    )


def rules_of(broker: "Broker") -> SettingsRules:
    """What may be set, judged by the settings as they are at this moment."""
    return SettingsRules(layers_of(broker))
