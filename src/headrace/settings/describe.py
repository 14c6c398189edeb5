"""What DescribeConfigs says of a config: its value, where that came from, and what lies beneath.

Pure and free of wire types, so that the API handler only copies fields into its response.
"""

from collections.abc import Mapping
from functools import cache
from itertools import dropwhile

import msgspec

from headrace.settings.broker import BROKER_CONFIGS, BrokerSettings, with_dynamic
from headrace.settings.broker_configs import field_name
from headrace.settings.client_metrics import CLIENT_METRICS_CONFIGS
from headrace.settings.definitions import ConfigDefinition, ConfigSource, ConfigType, Value
from headrace.settings.group import GROUP_CONFIGS
from headrace.settings.group import value_of as group_value_of
from headrace.settings.topic import TOPIC_CONFIGS, value_of

# Configs that say the same in several units; the first that is set counts.
_ALIASES = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)


class Synonym(msgspec.Struct, frozen=True):
    """One layer that sets the config, under the name that it has there."""

    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(msgspec.Struct, frozen=True):
    """A config as DescribeConfigs tells it; the value of a sensitive one is None."""

    definition: ConfigDefinition
    value: str | None
    source: ConfigSource
    is_read_only: bool
    synonyms: tuple[Synonym, ...]

    @property
    def name(self) -> str:
        return self.definition.name


class BrokerLayers(msgspec.Struct, frozen=True):
    """The layers of a broker's configs, from the properties file up to its own dynamic ones."""

    static: BrokerSettings
    dynamic_default: Mapping[str, str] = {}
    dynamic: Mapping[str, str] = {}

    @property
    def settings(self) -> BrokerSettings:
        """All layers laid over each other."""
        return with_dynamic(self.static, self.dynamic_default, self.dynamic)

    def synonyms(self, name: str) -> tuple[Synonym, ...]:
        """Every layer that sets a config, strongest first.

        Like Kafka, the list begins where the asked name itself is set: a `log.retention.hours`
        alone does not count as a source of `log.retention.ms`.
        """
        names = next((group for group in _ALIASES if name in group), _flush_names(name))
        layers = (
            (self.dynamic, ConfigSource.DYNAMIC_BROKER),
            (self.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self.static.given, ConfigSource.STATIC_BROKER),
            (_defaults(names), ConfigSource.DEFAULT),
        )
        found = (
            Synonym(alias, _shown(alias, layer[alias]), source)
            for layer, source in layers
            for alias in names
            if alias in layer
        )
        return tuple(dropwhile(lambda synonym: synonym.name != name, found))


def describe_broker(layers: BrokerLayers) -> list[DescribedConfig]:
    """Every config of this broker that is not internal, and what its file sets in vain."""
    settings = layers.settings
    honoured = [
        _described(definition, getattr(settings, field_name(name)), layers.synonyms(name))
        for name, definition in BROKER_CONFIGS.items()
        if not definition.is_internal
    ]
    return honoured + [_ignored(name, text) for name, text in settings.ignored.items()]


def describe_cluster_default(layers: BrokerLayers) -> list[DescribedConfig]:
    """Only the configs that are set for the cluster as a whole, and only that layer of them."""
    described = []
    for name, text in layers.dynamic_default.items():
        if (definition := BROKER_CONFIGS.get(name)) is not None:
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER
            synonym = Synonym(name, _shown(name, text), source)
            described.append(_described(definition, definition.read(text), (synonym,)))
    return described


def describe_topic(overrides: Mapping[str, str], layers: BrokerLayers) -> list[DescribedConfig]:
    """Every config of a topic that is not internal, or is internal and set."""
    settings = layers.settings
    described = []
    for name, definition in TOPIC_CONFIGS.items():
        if definition.is_internal and name not in overrides:
            continue
        value = value_of(name, overrides, settings)
        beneath = layers.synonyms(definition.synonyms[0]) if definition.synonyms else ()
        if name in overrides:
            own = Synonym(name, definition.render(value), ConfigSource.TOPIC)
            beneath = (own, *beneath)
        described.append(_described(definition, value, beneath, is_read_only=False))
    return described


def describe_client_metrics(configs: Mapping[str, str]) -> list[DescribedConfig]:
    """The configs of a subscription; what it does not set has its default."""
    return [
        _described(
            definition,
            definition.read(configs[name]) if name in configs else definition.default,
            (Synonym(name, configs[name], ConfigSource.CLIENT_METRICS),) if name in configs else (),
            is_read_only=False,
        )
        for name, definition in CLIENT_METRICS_CONFIGS.items()
    ]


def describe_group(configs: Mapping[str, str], layers: BrokerLayers) -> list[DescribedConfig]:
    """Every config of a group; what it does not set is as the broker sets it for all groups."""
    described = []
    for name, definition in GROUP_CONFIGS.items():
        value = group_value_of(name, configs, layers.settings)
        beneath: tuple[Synonym, ...] = (
            layers.synonyms(definition.synonyms[0])
            if definition.synonyms
            else (Synonym(name, definition.render(definition.default), ConfigSource.DEFAULT),)
        )
        if name in configs:
            beneath = (Synonym(name, configs[name], ConfigSource.GROUP), *beneath)
        described.append(_described(definition, value, beneath, is_read_only=False))
    return described


def _described(
    definition: ConfigDefinition,
    value: Value,
    synonyms: tuple[Synonym, ...],
    *,
    is_read_only: bool | None = None,
) -> DescribedConfig:
    return DescribedConfig(
        definition=definition,
        value=None if definition.is_sensitive else definition.render(value),
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        is_read_only=definition.is_read_only if is_read_only is None else is_read_only,
        synonyms=synonyms,
    )


def _ignored(name: str, text: str | None) -> DescribedConfig:
    """A config that only Kafka honours: shown, so that nobody believes it to be in force."""
    from headrace.settings.kafka_properties import is_sensitive, reason_unsupported

    definition = ConfigDefinition(
        name=name,
        type=ConfigType.PASSWORD if is_sensitive(name) else ConfigType.STRING,
        default=None,
        documentation=f"Ignored: {reason_unsupported(name)}.",
    )
    source = ConfigSource.STATIC_BROKER
    return DescribedConfig(definition, text, source, True, (Synonym(name, text, source),))


def _flush_names(name: str) -> tuple[str, ...]:
    if name == "log.flush.interval.ms":
        return (name, "log.flush.scheduler.interval.ms")
    return (name,)


@cache
def _defaults(names: tuple[str, ...]) -> Mapping[str, str]:
    """The defaults of some configs as text; a config whose default is none has no such layer."""
    rendered = {name: BROKER_CONFIGS[name].render(BROKER_CONFIGS[name].default) for name in names}
    return {name: text for name, text in rendered.items() if text is not None}


def _shown(name: str, text: str) -> str | None:
    return None if BROKER_CONFIGS[name].is_sensitive else text
