"""The layers of a broker's configs: its properties file, the cluster's defaults, its own values.

Every name has a definition here. Kafka accepts any name on a running broker that is not one of
its own fixed configs, because a plug-in may read it. Values of unknown names may be secrets.
"""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import dropwhile

import msgspec

from headrace.errors import InvalidConfig
from headrace.settings.broker import BROKER_CONFIGS, UNITS, BrokerSettings, field_name
from headrace.settings.broker_loading import with_dynamic
from headrace.settings.definitions import (
    ConfigDefinition,
    ConfigSource,
    ConfigType,
    UpdateMode,
    Value,
)
from headrace.settings.listener_security import base_name

# Kafka requires these in the file and has no defaults for them.
_DEMANDED = ("node.id", "process.roles", "controller.listener.names")


class Synonym(msgspec.Struct, frozen=True):
    """One layer that sets the config, under the name that it has there."""

    name: str
    value: str | None
    source: ConfigSource


class BrokerLayers(msgspec.Struct, frozen=True, dict=True):
    """The layers of a broker's configs, from the properties file up to its own dynamic ones.

    Derived values are cached, because they are needed for each of hundreds of configs.
    """

    static: BrokerSettings
    dynamic_default: Mapping[str, str] = {}
    dynamic: Mapping[str, str] = {}

    @cached_property
    def settings(self) -> BrokerSettings:
        """The settings after all layers are applied."""
        return with_dynamic(self.static, self.dynamic_default, self.dynamic)

    @cached_property
    def _file(self) -> dict[str, str | None]:
        """The properties file with all properties that Kafka requires, and both names of the node.

        Kafka 4 reports the advertised listeners as a static config also where the file has none.
        """
        static = self.static
        values = {name: getattr(static, field_name(name)) for name in _DEMANDED}
        values["advertised.listeners"] = _advertised(static)
        texts = {name: BROKER_CONFIGS[name].render(value) for name, value in values.items()}
        return {"broker.id": texts["node.id"], **texts, **static.given, **static.ignored}

    @property
    def set_names(self) -> dict[str, None]:
        """Every config that any layer sets, each once."""
        return dict.fromkeys((*self._file, *self.dynamic_default, *self.dynamic))

    def value_of(self, definition: ConfigDefinition, settings: BrokerSettings) -> Value:
        """The effective value of a config; the top layer's text if Headrace ignores the config."""
        name = definition.name
        if name == "broker.id":
            return settings.node_id
        if name == "advertised.listeners":
            return _advertised(settings)
        if name in BROKER_CONFIGS:
            value: Value = getattr(settings, field_name(name))
            return value
        for layer in (self.dynamic, self.dynamic_default, self.static.ignored):
            text = layer.get(name)
            if text is not None:
                return _read(definition, text)
        return definition.default

    def synonyms(self, name: str) -> tuple[Synonym, ...]:
        """Every layer that sets a config, strongest first.

        As in Kafka, the list begins at the first layer that sets the name itself. So
        `log.retention.hours` alone does not count as a source of `log.retention.ms`.
        """
        names = _names_of(name)
        layers: tuple[tuple[Mapping[str, str | None], ConfigSource], ...] = (
            (self.dynamic, ConfigSource.DYNAMIC_BROKER),
            (self.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._file, ConfigSource.STATIC_BROKER),
            (_defaults(names), ConfigSource.DEFAULT),
        )
        found = (
            Synonym(alias, shown(alias, layer[alias]), source)
            for layer, source in layers
            for alias in names
            if alias in layer
        )
        return tuple(dropwhile(lambda synonym: synonym.name != name, found))


def definition_of(name: str) -> ConfigDefinition:
    """The definition of a broker config: Headrace's, Kafka's, or one for an unknown name."""
    return BROKER_CONFIGS.get(name) or _foreign_definition(name)


def is_known(name: str) -> bool:
    """Return whether the config is defined by Kafka's broker or by Headrace."""
    from headrace.settings import kafka_properties

    return (
        name in BROKER_CONFIGS
        or name in kafka_properties.definitions()
        or name in kafka_properties.dynamic_definitions()
    )


def shown(name: str, text: str | None) -> str | None:
    """Return a value without secrets."""
    return None if definition_of(name).is_sensitive else text


def _foreign_definition(name: str) -> ConfigDefinition:
    from headrace.settings import kafka_properties  # Large, and seldom needed.

    known = kafka_properties.definitions().get(name)
    known = known or kafka_properties.dynamic_definitions().get(name)
    if known is not None:
        return known
    base = base_name(name)
    of_base = BROKER_CONFIGS.get(base) or kafka_properties.definitions().get(base)
    return ConfigDefinition(
        name=name,
        type=of_base.type if of_base is not None else ConfigType.UNKNOWN,
        default=None,
        documentation="",
        validator=of_base.validator if of_base is not None else None,
        update_mode=UpdateMode.READ_ONLY,
    )


def _advertised(settings: BrokerSettings) -> tuple[str, ...]:
    if settings.advertised_listeners is not None:
        return settings.advertised_listeners
    return tuple(map(str, settings.broker_listeners))


def _names_of(name: str) -> tuple[str, ...]:
    if name.startswith("listener.name."):
        return tuple(dict.fromkeys((name, base_name(name))))
    return next((group for group in UNITS if name in group), (name,))


def _read(definition: ConfigDefinition, text: str) -> Value:
    try:
        return definition.read(text)
    except InvalidConfig:
        return text  # Stored by a version that defined another type.


@lru_cache(maxsize=1024)  # Names come from clients.
def _defaults(names: tuple[str, ...]) -> Mapping[str, str]:
    """The defaults of some configs as text, without configs that have no default."""
    definitions = [definition_of(name) for name in names if name not in _DEMANDED]
    rendered = {one.name: one.render(one.default) for one in definitions}
    return {name: text for name, text in rendered.items() if text is not None}
