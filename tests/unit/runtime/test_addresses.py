"""The text of network addresses."""

import pytest

from headrace.runtime.addresses import address_text, plain_host


def test_hosts_of_ipv6_are_in_brackets() -> None:
    assert address_text("localhost", 9092) == "localhost:9092"
    assert address_text("::1", 9092) == "[::1]:9092"


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("broker:1", "broker:1"),
    ],
)
def test_an_address_has_one_form(given: str, plain: str) -> None:
    assert plain_host(given) == plain
