"""Serializers as functions, and as objects that see the headers."""

from typing import Any

import pytest
from confluent_kafka import Message

from headrace.client.serializers import Headers, deserialization, serialization


class Stamp:
    """Puts a header beside a payload, and reads it back."""

    def to_record(self, topic: str, part: str, value: Any, headers: Headers) -> bytes | None:
        headers.append((part, topic.encode()))
        return bytes(value)

    def from_record(self, topic: str, part: str, payload: bytes | None, headers: Any) -> Any:
        return payload, dict(headers)[part]


def upper(topic: str, value: Any) -> bytes:
    return bytes(value).upper()


def test_records_without_serializers_are_sent_as_they_are() -> None:
    assert serialization(None, None) is None
    assert deserialization(None, None) is None


def test_a_function_gets_the_topic_and_the_value() -> None:
    """PRD-1"""
    serialize = serialization(upper, None)
    assert serialize is not None
    assert serialize("orders", b"a", b"b", None) == (b"A", b"b", None)


@pytest.mark.parametrize("headers", [None, [], {}, ()])
def test_an_object_may_add_headers_to_any_that_are_given(headers: Any) -> None:
    serialize = serialization(upper, Stamp())
    assert serialize is not None
    assert serialize("orders", b"a", b"b", headers) == (b"A", b"b", [("value", b"orders")])


def test_headers_of_the_caller_stay_as_they_are() -> None:
    given = {"trace": b"7"}
    serialize = serialization(Stamp(), None)
    assert serialize is not None
    assert serialize("orders", b"a", None, given)[2] == [("trace", b"7"), ("key", b"orders")]
    assert given == {"trace": b"7"}


def test_an_object_sees_the_headers_of_a_message() -> None:
    message: Any = Message(topic="orders", key=b"a", value=b"b", headers=[("value", b"seen")])
    decode = deserialization(upper, Stamp())
    assert decode is not None
    decode(message)
    assert (message.key(), message.value()) == (b"A", (b"b", b"seen"))


def test_a_message_that_cannot_be_read_stays_as_it_is() -> None:
    def fail(topic: str, payload: bytes | None) -> Any:
        raise ValueError("no")

    message = Message(topic="orders", key=b"a", value=b"b")
    decode = deserialization(upper, fail)
    assert decode is not None
    with pytest.raises(ValueError, match="no"):
        decode(message)
    assert (message.key(), message.value()) == (b"a", b"b")
