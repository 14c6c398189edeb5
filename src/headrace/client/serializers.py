"""What makes bytes of keys and values, and what makes values of bytes again.

Either a function of the topic and the value, or an object that sees the headers too: a schema's id
may stand there, and not in the payload.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from confluent_kafka import Message

Headers = list[tuple[str, Any]]

Serializer = Callable[[str, Any], bytes | str | None]
"""Makes bytes of a key or a value for a topic."""

Deserializer = Callable[[str, bytes | None], Any]
"""Makes a value of the bytes of a key or a value from a topic."""


@runtime_checkable
class HeaderSerializer(Protocol):
    """Makes bytes of a `key` or a `value`, and may add headers to the record's."""

    def to_record(self, topic: str, part: str, value: Any, headers: Headers) -> bytes | None: ...


@runtime_checkable
class HeaderDeserializer(Protocol):
    """Makes a value of the bytes of a `key` or a `value`, with the record's headers at hand."""

    def from_record(self, topic: str, part: str, payload: bytes | None, headers: Any) -> Any: ...


Serialize = Callable[[str, Any, Any, Any], tuple[Any, Any, Any]]
"""Of a topic, a key, a value and headers: the key, value and headers that are sent."""

AnySerializer = Serializer | HeaderSerializer
AnyDeserializer = Deserializer | HeaderDeserializer


def serialization(key: AnySerializer | None, value: AnySerializer | None) -> Serialize | None:
    """Both in one; None where records are sent as they are."""
    if isinstance(key, HeaderSerializer) or isinstance(value, HeaderSerializer):
        return _with_headers(key, value)
    if key is None and value is None:
        return None
    return _without_headers(key, value)


def deserialization(
    key: AnyDeserializer | None, value: AnyDeserializer | None
) -> Callable[[Message], None] | None:
    """Puts values in the place of a message's bytes; None where messages stay as they are."""
    if key is None and value is None:
        return None

    decode_key, decode_value = _reader(key, "key"), _reader(value, "value")

    def decode(message: Message) -> None:
        topic = message.topic() or ""
        found_key, found_value = message.key(), message.value()
        if decode_key is not None:
            found_key = decode_key(topic, found_key, message)
        if decode_value is not None:
            found_value = decode_value(topic, found_value, message)
        # Both are known before either is set: a record that cannot be read stays as it is.
        message.set_key(found_key)
        message.set_value(found_value)

    return decode


def _without_headers(key: Serializer | None, value: Serializer | None) -> Serialize:
    def serialize(topic: str, given_key: Any, given_value: Any, headers: Any) -> Any:
        if key is not None:
            given_key = key(topic, given_key)
        if value is not None:
            given_value = value(topic, given_value)
        return given_key, given_value, headers

    return serialize


def _with_headers(key: AnySerializer | None, value: AnySerializer | None) -> Serialize:
    write_key, write_value = _writer(key, "key"), _writer(value, "value")

    def serialize(topic: str, given_key: Any, given_value: Any, headers: Any) -> Any:
        own = _listed(headers)
        return write_key(topic, given_key, own), write_value(topic, given_value, own), own

    return serialize


def _writer(serializer: AnySerializer | None, part: str) -> Callable[[str, Any, Headers], Any]:
    if serializer is None:
        return lambda topic, value, headers: value
    if isinstance(serializer, HeaderSerializer):
        write = serializer.to_record
        return lambda topic, value, headers: write(topic, part, value, headers)
    function = serializer
    return lambda topic, value, headers: function(topic, value)


def _listed(headers: Any) -> Headers:
    """A list of our own, to which may be added: the caller's is the caller's."""
    if headers is None:
        return []
    return list(headers.items() if isinstance(headers, dict) else headers)


def _reader(
    deserializer: AnyDeserializer | None, part: str
) -> Callable[[str, Any, Message], Any] | None:
    if deserializer is None:
        return None
    if isinstance(deserializer, HeaderDeserializer):
        read = deserializer.from_record
        return lambda topic, payload, message: read(topic, part, payload, message.headers())
    function = deserializer
    return lambda topic, payload, message: function(topic, payload)
