"""The answer of DescribeConfigs for a config: value, source and synonyms.

Pure and free of wire types, so that the API handler only copies fields into its response.
"""

from collections.abc import Mapping

import msgspec

from headrace.settings.broker import BROKER_CONFIGS, BrokerSettings
from headrace.settings.broker_layers import BrokerLayers, Synonym, definition_of, shown
from headrace.settings.client_metrics import CLIENT_METRICS_CONFIGS
from headrace.settings.definitions import ConfigDefinition, ConfigSource, Value
from headrace.settings.group import GROUP_CONFIGS
from headrace.settings.group import value_of as group_value_of
from headrace.settings.topic import TOPIC_CONFIGS, value_of


class DescribedConfig(msgspec.Struct, frozen=True):
    """A config as in DescribeConfigs; sensitive configs have no value."""

    definition: ConfigDefinition
    value: str | None
    source: ConfigSource
    is_read_only: bool
    synonyms: tuple[Synonym, ...]

    @property
    def name(self) -> str:
        return self.definition.name


def describe_broker(layers: BrokerLayers) -> list[DescribedConfig]:
    """Every config of Kafka's broker and every other config that is set; internal ones if set."""
    from headrace.settings import kafka_properties

    settings = layers.settings
    every = {**BROKER_CONFIGS, **kafka_properties.definitions()}
    set_names = layers.set_names
    public = [one for name, one in every.items() if not one.is_internal or name in set_names]
    others = [definition_of(name) for name in set_names if name not in every]
    return [
        _described(one, layers.value_of(one, settings), layers.synonyms(one.name))
        for one in (*public, *others)
    ]


def describe_cluster_default(layers: BrokerLayers) -> list[DescribedConfig]:
    """Only the configs that are set for the whole cluster, and only that layer of them."""
    alone = BrokerLayers(BrokerSettings(), dynamic_default=layers.dynamic_default)
    described = []
    for name, text in layers.dynamic_default.items():
        definition = definition_of(name)
        synonym = Synonym(name, shown(name, text), ConfigSource.DYNAMIC_DEFAULT_BROKER)
        value = alone.value_of(definition, alone.settings)
        described.append(_described(definition, value, (synonym,)))
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
    """The configs of a subscription, including defaults."""
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
    """Every config of a group, including values that it inherits from the broker."""
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
