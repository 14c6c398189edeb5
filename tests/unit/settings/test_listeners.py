"""Listener texts and the rules for a set of them."""

import pytest

from headrace.errors import InvalidConfig
from headrace.settings.listeners import Listener, parse_listener, parse_listeners


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("PLAINTEXT://localhost:9092", Listener("PLAINTEXT", "localhost", 9092)),
        ("plaintext://:9092", Listener("PLAINTEXT", "", 9092)),
        ("A://[::1]:9092", Listener("A", "::1", 9092)),
        ("A://0.0.0.0:0", Listener("A", "0.0.0.0", 0)),
    ],
)
def test_a_listener_is_read(text: str, listener: Listener) -> None:
    assert parse_listener(text) == listener


def test_an_impossible_port_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="port 70000 of 'A://h:70000' is above 65535"):
        parse_listener("A://h:70000")


@pytest.mark.parametrize(
    "text",
    ["", "localhost:9092", "A://host", "A://host:port", "A://::1:9092", "://h:1"],
)
def test_an_invalid_listener_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match="is not a listener"):
        parse_listener(text)


@pytest.mark.parametrize("text", ["PLAINTEXT://h:1", "A://[::1]:9092", "B://:9092"])
def test_a_listener_prints_as_it_is_written(text: str) -> None:
    assert str(parse_listener(text)) == text


def test_two_listeners_may_not_share_a_port() -> None:
    with pytest.raises(InvalidConfig, match="port 1 more than once"):
        parse_listeners(["A://h:1", "B://h:1"])


def test_one_port_serves_both_internet_protocols_and_zero_is_any() -> None:
    assert len(parse_listeners(["A://127.0.0.1:1", "B://[::1]:1", "C://h:0", "D://h:0"])) == 4


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
def test_a_listener_on_every_interface_is_recognized(host: str) -> None:
    assert Listener("A", host, 1).is_every_interface
