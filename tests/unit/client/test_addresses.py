"""Bootstrap addresses."""

import pytest

from headrace.client.addresses import Address, failure_text, parse_addresses
from headrace.errors import HeadraceError


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost", [Address("localhost", 9092)]),
        ("a:1, b:2 ,", [Address("a", 1), Address("b", 2)]),
        ("[::1]:9093", [Address("::1", 9093)]),
        ("::1", [Address("::1", 9092)]),
        ("[::1]", [Address("::1", 9092)]),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, addresses: list[Address]) -> None:
    assert parse_addresses(text) == addresses


@pytest.mark.parametrize("text", ["", " , ", "a:b", "a:0", "a:70000"])
def test_an_invalid_address_is_rejected(text: str) -> None:
    with pytest.raises(HeadraceError, match="host:port"):
        parse_addresses(text)


def test_an_address_prints_as_it_is_written() -> None:
    assert [str(Address("::1", 1)), str(Address("a", 2))] == ["[::1]:1", "a:2"]


def test_failures_fit_into_a_sentence() -> None:
    assert failure_text(ConnectionRefusedError(111, "Connection refused")) == "connection refused"
    assert failure_text(TimeoutError()) == "no answer in time"
    assert failure_text(OSError("it closed the connection")) == "it closed the connection"
