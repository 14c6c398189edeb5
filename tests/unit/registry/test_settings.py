"""Settings by Confluent's names."""

import pytest

from headrace.registry.compatibility.levels import Level
from headrace.registry.settings import InvalidSetting, advertised_host, settings_of


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


def test_a_misspelt_name_is_told_with_its_neighbour() -> None:
    with pytest.raises(InvalidSetting, match=r"Did you mean kafkastore\.topic\?"):
        settings_of({"kafkastore.topics": "x"})


def test_a_value_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="cannot be so"):
        settings_of({"kafkastore.timeout.ms": "soon"})


def test_a_level_that_there_is_not_is_told_with_those_that_there_are() -> None:
    with pytest.raises(InvalidSetting, match=r"cannot be 'most'; it is one of NONE, .*TRANSITIVE$"):
        settings_of({"schema.compatibility.level": "most"})


def test_a_server_on_every_interface_is_known_by_its_machine() -> None:
    assert advertised_host("0.0.0.0") != "0.0.0.0"
    assert advertised_host("127.0.0.1") == "127.0.0.1"
