"""Client properties that callers may set."""

import pytest

from headrace.rest.errors import RestError, bad_request
from headrace.rest.overrides import CONSUMER, INSTANCE, PRODUCER, checked


def test_allowed_properties_become_text() -> None:
    """RST-6"""
    given = {"enable.auto.commit": True, "max.poll.records": 7, "client.id": "me"}
    assert checked(given, CONSUMER, bad_request) == {
        "enable.auto.commit": "true",
        "max.poll.records": "7",
        "client.id": "me",
    }


@pytest.mark.parametrize(
    "name",
    ["bootstrap.servers", "ssl.key.location", "sasl.password", "plugin.library.paths", "debug"],
)
def test_other_properties_are_rejected_with_a_list_of_the_allowed_ones(name: str) -> None:
    """RST-6"""
    with pytest.raises(RestError, match=r"acks, compression\.type") as refusal:
        checked({name: "x"}, PRODUCER, bad_request)
    assert name in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("acks", "2", "one of all, -1, 0, 1"),
        ("linger.ms", "900000", "from 0 to 1000"),
        ("linger.ms", "-1", "from 0 to 1000"),
        ("delivery.timeout.ms", "0", "from 1"),
        ("compression.type", None, "one of none"),
    ],
)
def test_no_value_may_hold_up_the_proxy(name: str, value: object, words: str) -> None:
    with pytest.raises(RestError, match=words):
        checked({name: value}, PRODUCER, bad_request)


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "x" * 300])
def test_client_ids_must_be_printable(name: str) -> None:
    with pytest.raises(RestError, match="printable"):
        checked({"client.id": name}, CONSUMER, bad_request)


def test_the_error_also_lists_settings_that_are_not_client_properties() -> None:
    with pytest.raises(RestError, match=r"allowed are .*auto\.offset\.reset.*session"):
        checked({"ssl.ca.location": "x"}, CONSUMER, bad_request, besides=INSTANCE)
