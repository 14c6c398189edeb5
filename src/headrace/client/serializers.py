"""Serializers and deserializers of keys and values.

A serializer is a function of topic and value, or an object that also receives the headers, which
may hold the schema id.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from confluent_kafka import Message

Headers = list[tuple[str, Any]]

Serializer = Callable[[str, Any], bytes | str | None]
"""Serializes a key or a value for a topic."""

Deserializer = Callable[[str, bytes | None], Any]
"""Deserializes a key or a value of a topic."""


@runtime_checkable
class HeaderSerializer(Protocol):
    """Serializes a `key` or a `value`, and may add headers."""

    def to_record(self, topic: str, part: str, value: Any, headers: Headers) -> bytes | None: ...


@runtime_checkable
class HeaderDeserializer(Protocol):
    """Deserializes a `key` or a `value` with access to the headers."""

    def from_record(self, topic: str, part: str, payload: bytes | None, headers: Any) -> Any: ...


Serialize = Callable[[str, Any, Any, Any], tuple[Any, Any, Any]]
"""Maps topic, key, value and headers to the key, value and headers to send."""

AnySerializer = Serializer | HeaderSerializer
AnyDeserializer = Deserializer | HeaderDeserializer


def serialization(key: AnySerializer | None, value: AnySerializer | None) -> Serialize | None:
    """Combine two serializers; return None if records are sent unchanged."""
    if isinstance(key, HeaderSerializer) or isinstance(value, HeaderSerializer):
        return _with_headers(key, value)
    if key is None and value is None:
        return None
    return _without_headers(key, value)


def deserialization(
    key: AnyDeserializer | None, value: AnyDeserializer | None
) -> Callable[[Message], None] | None:
    """Combine two deserializers, which replace the parts of a message; None without any."""
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
        # Set both only after both succeeded, so that an invalid record stays unchanged.
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
    """Copy the headers, because serializers may add some."""
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
