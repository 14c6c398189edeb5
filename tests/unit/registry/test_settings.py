"""Settings by Confluent's names."""

import pytest

from headrace.errors import InvalidConfig
from headrace.registry.compatibility.levels import Level
from headrace.registry.settings import advertised_host, settings_of


def test_names_and_values_are_confluents() -> None:
    settings = settings_of(
        {
            "kafkastore.topic": "_other",
            "schema.compatibility.level": "full",
            "kafkastore.timeout.ms": "700",
            "leader.eligibility": "false",
        }
    )
    assert (
        settings.kafkastore_topic,
        settings.schema_compatibility_level,
        settings.kafkastore_timeout_ms,
        settings.leader_eligibility,
    ) == ("_other", Level.FULL, 700, False)


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(InvalidConfig, match=r"Did you mean kafkastore\.topic\?"):
        settings_of({"kafkastore.topics": "x"})


def test_an_invalid_value_of_a_setting_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="invalid property"):
        settings_of({"kafkastore.timeout.ms": "soon"})


def test_an_unknown_level_is_reported_with_the_valid_ones() -> None:
    with pytest.raises(InvalidConfig, match=r"'most'; choose one of NONE, .*TRANSITIVE$"):
        settings_of({"schema.compatibility.level": "most"})


def test_a_server_on_every_interface_is_named_by_its_host() -> None:
    assert advertised_host("0.0.0.0") != "0.0.0.0"
    assert advertised_host("127.0.0.1") == "127.0.0.1"
