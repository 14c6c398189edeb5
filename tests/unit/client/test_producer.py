"""Errors of a producer that cannot send; they need no broker."""

from typing import Any

import pytest

from headrace import Consumer, HeadraceError, Producer

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "max.block.ms": 10}


def test_the_end_of_a_with_does_not_wait_for_a_broker_that_never_answers() -> None:
    """PRD-9: bounded by max.block.ms, not by delivery.timeout.ms, which is five minutes."""
    with (
        pytest.raises(TimeoutError, match="no broker of 127\\.0\\.0\\.1:1 answers") as caught,
        Producer(NOWHERE) as producer,
    ):
        producer.send("greetings", "hello")
    assert "1 record is not delivered" in str(caught.value)
    assert isinstance(caught.value, HeadraceError)


@pytest.mark.parametrize(("value", "key", "name"), [({"a": 1}, None, "value"), ("text", 7, "key")])
def test_an_error_about_values_that_are_not_bytes_names_the_serializer(
    value: Any, key: Any, name: str
) -> None:
    """PRD-1"""
    producer = Producer(NOWHERE)
    with pytest.raises(TypeError, match=f"{name}_serializer=function"):
        producer.send("orders", value, key)
    producer.disconnect()


def test_settings_that_confluent_kafka_refuses_are_our_errors() -> None:
    for kind in (Producer, Consumer):
        with pytest.raises(HeadraceError):
            kind({**NOWHERE, "error_cb": 3})
