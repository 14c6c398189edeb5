"""The properties of clients: librdkafka's names unchanged, and Java's where librdkafka has none.

librdkafka itself decides which names exist, so that a newer one is not held to our list; the list
(made by tools/librdkafka_properties.py) only tells which name a misspelt one may have meant.
"""

import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import msgspec

from headrace.client import java_security
from headrace.errors import HeadraceError
from headrace.settings.definitions import nearest

Properties = Mapping[str, Any] | str
"""Properties by name, or just the bootstrap servers."""


class InvalidProperty(HeadraceError, ValueError):
    """A property that does not exist, or a value that it cannot have."""


class OwnSettings(msgspec.Struct, frozen=True):
    """What librdkafka lacks and this layer adds, under the names that Java's clients use."""

    max_block_s: float = 60.0
    """How long a send waits for room in the buffer, and a transaction for its coordinator."""
    api_timeout_s: float = 60.0
    """How long a question to the brokers may take."""
    max_poll_records: int = 500
    """How many records one poll hands out at most."""


def split(properties: Properties) -> tuple[dict[str, Any], OwnSettings]:
    """librdkafka's part of the properties, and ours."""
    if isinstance(properties, str):
        properties = {"bootstrap.servers": properties}
    given = {name: value for name, value in properties.items() if value is not None}
    own = OwnSettings(
        max_block_s=_number(given, "max.block.ms", 60_000) / 1000,
        api_timeout_s=_number(given, "default.api.timeout.ms", 60_000) / 1000,
        max_poll_records=max(1, int(_number(given, "max.poll.records", 500))),
    )
    given = for_librdkafka(given)
    for java, (name, convert) in _JAVA_NAMES.items():
        if java in given:
            value = convert(given.pop(java))
            given.setdefault(name, value)
    for name in given:
        if name in _ELSEWHERE:
            raise InvalidProperty(f"{name} belongs to Java; {_ELSEWHERE[name]}")
    return given, own


def with_librdkafkas_names(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with what they say about security under librdkafka's names."""
    return java_security.translated(properties)


def for_librdkafka(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Security as librdkafka takes it: a token that is given becomes a function that gives it."""
    given = with_librdkafkas_names(properties)
    token = given.pop(TOKEN, None)
    if token is not None:
        given["oauth_cb"] = lambda _: (str(token), time.time() + _TOKEN_TOLD_FOR_S)
    return given


def unknown(name: str) -> InvalidProperty:
    """The error for a name that librdkafka does not know, with the one it is nearest to."""
    return InvalidProperty(f"there is no property {name!r}{nearest(name, names())}")


def names() -> list[str]:
    """Every name that a client takes."""
    text = files("headrace.client").joinpath("librdkafka_properties.txt").read_text()
    return [*(line.split()[0] for line in text.splitlines()), *_JAVA_NAMES, *_OWN_NAMES]


def _number(given: dict[str, Any], name: str, default: int) -> float:
    value = given.pop(name, default)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidProperty(f"{name} must be a number, not {value!r}") from None


def _same(value: Any) -> Any:
    return value


def _kilobytes(value: Any) -> int:
    return max(1, -(-int(value) // 1024))


TOKEN = "sasl.oauthbearer.token"
"""A token for OAUTHBEARER; librdkafka has a function in its place, which no file can hold."""

_TOKEN_TOLD_FOR_S = 3600
"""librdkafka asks again after this long; whether the token still counts, the broker decides."""

_OWN_NAMES = ("max.block.ms", "default.api.timeout.ms", "max.poll.records", TOKEN)

_JAVA_NAMES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "buffer.memory": ("queue.buffering.max.kbytes", _kilobytes),
    "max.request.size": ("message.max.bytes", _same),
    "fetch.max.wait.ms": ("fetch.wait.max.ms", _same),
    "send.buffer.bytes": ("socket.send.buffer.bytes", _same),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", _same),
}

_ELSEWHERE = {
    "key.serializer": "give the Producer key_serializer=function",
    "value.serializer": "give the Producer value_serializer=function",
    "key.deserializer": "give the Consumer key_deserializer=function",
    "value.deserializer": "give the Consumer value_deserializer=function",
    "partitioner.class": "give the Producer partitioner=function, or the name of one",
}
