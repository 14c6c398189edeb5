"""The settings of a proxy."""

import pytest

from headrace.errors import InvalidConfig
from headrace.rest.settings import RestSettings, settings_of


def test_confluents_names_are_understood() -> None:
    found = settings_of(
        {
            "bootstrap.servers": "a:1",
            "schema.registry.url": "http://r:8081",
            "consumer.instance.timeout.ms": "7",
            "access.control.allow.origin": "https://a.example, https://b.example",
        }
    )
    assert (found.bootstrap_servers, found.schema_registry_url) == ("a:1", "http://r:8081")
    assert found.consumer_instance_timeout_ms == 7
    assert found.origins == ("https://a.example", "https://b.example")


def test_properties_of_clients_go_to_their_kind() -> None:
    found = settings_of(
        {
            "bootstrap.servers": "a:1",
            "client.sasl.username": "ada",
            "producer.linger.ms": "5",
            "consumer.max.poll.records": "9",
            "producer.bootstrap.servers": "elsewhere:1",
        }
    )
    assert found.properties_of("producer") == {
        "sasl.username": "ada",
        "linger.ms": "5",
        "bootstrap.servers": "a:1",
    }
    assert found.properties_of("consumer")["max.poll.records"] == "9"
    assert "linger.ms" not in found.properties_of("admin")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("schema.registry.ulr", "x", r"Did you mean schema\.registry\.url"),
        ("connections.max", "many", r"connections\.max"),
    ],
)
def test_an_invalid_property_is_named(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        settings_of({name: value})


def test_a_property_of_a_part_that_does_not_exist_here_is_skipped_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = settings_of({"listeners": "http://0.0.0.0:8082", "consumer.threads": "5"})
    assert [getattr(one, "property", "") for one in caplog.records] == [
        "listeners",
        "consumer.threads",
    ]
    assert found.properties_of("consumer").keys() == {"bootstrap.servers"}


@pytest.mark.parametrize("name", ["authentication.method", "ssl.keystore.location"])
def test_properties_that_restrict_access_are_not_ignored(name: str) -> None:
    with pytest.raises(InvalidConfig, match="--user-file"):
        settings_of({name: "x"})


def test_browsers_may_not_ask_by_default() -> None:
    assert RestSettings().origins == ()
