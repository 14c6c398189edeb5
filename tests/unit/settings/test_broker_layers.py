"""The layers of a broker's configs, and what is known of every name in them."""

import pytest

from headrace.settings.broker_layers import BrokerLayers, definition_of
from headrace.settings.broker_loading import load
from headrace.settings.definitions import ConfigType
from headrace.settings.listener_security import base_name


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("listener.name.external.ssl.keystore.location", "ssl.keystore.location"),
        ("listener.name.internal.plain.sasl.jaas.config", "sasl.jaas.config"),
        ("max.connections", "max.connections"),
        ("listener.name.", "listener.name."),
    ],
)
def test_a_listeners_config_has_the_base_name_it_overrides(name: str, base: str) -> None:
    assert base_name(name) == base


def test_unknown_configs_are_treated_as_secrets() -> None:
    """SEC-1."""
    custom = definition_of("some.plugin.key")
    assert (custom.type, custom.is_sensitive, custom.is_read_only) == (0, True, True)
    assert definition_of("listener.name.a.plain.sasl.jaas.config").is_sensitive


def test_a_config_of_kafkas_has_kafkas_type_and_default() -> None:
    threads = definition_of("num.io.threads")
    assert (threads.type, threads.default, threads.is_read_only) == (ConfigType.INT, 8, False)
    assert threads.documentation == (
        "Known to Apache Kafka; has no effect in Headrace: one event loop serves all connections."
    )


def test_the_strongest_layer_gives_the_value_of_ignored_configs() -> None:
    static, _ = load({"num.io.threads": "2"})
    name = definition_of("num.io.threads")
    stack = [
        BrokerLayers(static),
        BrokerLayers(static, {"num.io.threads": "3"}),
        BrokerLayers(static, {"num.io.threads": "3"}, {"num.io.threads": "4"}),
    ]
    assert [layers.value_of(name, layers.settings) for layers in stack] == [2, 3, 4]
    assert [(one.value, one.source) for one in stack[2].synonyms("num.io.threads")] == [
        ("4", 2), ("3", 3), ("2", 4), ("8", 5),
    ]  # fmt: skip


def test_a_node_has_both_its_names_though_the_file_gives_one() -> None:
    layers = BrokerLayers(load({"node.id": "7"})[0])
    assert [(one.value, one.source) for one in layers.synonyms("broker.id")] == [
        ("7", 4),
        ("-1", 5),
    ]
    assert [(one.value, one.source) for one in layers.synonyms("node.id")] == [("7", 4)]
