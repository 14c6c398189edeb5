"""The properties of clients: librdkafka's names unchanged, and Java's where librdkafka has none.

librdkafka itself decides which names exist, so newer versions may have more. Our list of names (by
tools/librdkafka_properties.py) only serves suggestions for misspelt names.
"""

import math
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import msgspec

from headrace.client import aws_tokens, java_security
from headrace.errors import HeadraceError
from headrace.settings.definitions import nearest

Properties = Mapping[str, Any] | str
"""Properties by name, or just the bootstrap servers."""


class InvalidProperty(HeadraceError, ValueError):
    """An unknown property, or an invalid value."""


class OwnSettings(msgspec.Struct, frozen=True):
    """Settings of this layer that librdkafka lacks, under the names of Java's clients."""

    max_block_s: float = 60.0
    """Longest wait for room in the buffer, or for a transaction coordinator."""
    api_timeout_s: float = 60.0
    """Time limit of a request to the brokers."""
    max_poll_records: int = 500
    """Maximum number of records per poll."""
    chunk_bytes: int = 0
    """Values above this size are sent in chunks; 0 sends every record whole."""
    chunk_memory_bytes: int = 64 << 20
    """Memory for records whose chunks have not all arrived; 0 returns chunks as they are."""
    chunk_timeout_ms: int = 600_000
    """Time after which a record of a dead producer is dropped."""


def split(properties: Properties) -> tuple[dict[str, Any], OwnSettings]:
    """Separate librdkafka's properties from ours."""
    if isinstance(properties, str):
        properties = {"bootstrap.servers": properties}
    given = {name: value for name, value in properties.items() if value is not None}
    own = OwnSettings(
        max_block_s=_number(given, "max.block.ms", 60_000) / 1000,
        api_timeout_s=_number(given, "default.api.timeout.ms", 60_000) / 1000,
        max_poll_records=max(1, int(_number(given, "max.poll.records", 500))),
        chunk_bytes=_count(given, "chunk.bytes", 0),
        chunk_memory_bytes=_count(given, "chunk.memory", 64 << 20),
        chunk_timeout_ms=_count(given, "chunk.timeout.ms", 600_000),
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
    """Rename Java's security settings to librdkafka's."""
    return java_security.translated(properties)


def for_librdkafka(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Rename security settings; a token, or a region to sign for, becomes a function."""
    given = with_librdkafkas_names(properties)
    if str(given.pop(DELEGATION_TOKEN, False)).lower() == "true":
        raise InvalidProperty(
            "producers and consumers cannot log in by a delegation token, because librdkafka does "
            "not support it; commands and clients of administration can"
        )
    token = given.pop(TOKEN, None)
    if token is not None:
        given["oauth_cb"] = lambda _: (str(token), time.time() + _TOKEN_LIFETIME_S)
    region = given.pop(AWS_REGION, None)
    if region is not None:
        given["oauth_cb"] = lambda _: (
            aws_tokens.msk_token(str(region)),
            time.time() + aws_tokens.LIFETIME_S,
        )
    return given


def unknown(name: str) -> InvalidProperty:
    """Return the error for an unknown name, with the nearest known name."""
    return InvalidProperty(f"unknown property {name!r}{nearest(name, names())}")


def names() -> list[str]:
    """Return the names of all properties."""
    text = files("headrace.client").joinpath("librdkafka_properties.txt").read_text()
    return [*(line.split()[0] for line in text.splitlines()), *_JAVA_NAMES, *_OWN_NAMES]


def _number(given: dict[str, Any], name: str, default: int) -> float:
    value = given.pop(name, default)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidProperty(f"{name} must be a number, not {value!r}") from None


def _count(given: dict[str, Any], name: str, default: int) -> int:
    number = _number(given, name, default)
    if not 0 <= number < math.inf:
        raise InvalidProperty(f"{name} must not be negative or infinite, but is {number:g}")
    return int(number)


def _same(value: Any) -> Any:
    return value


def _kilobytes(value: Any) -> int:
    return max(1, -(-int(value) // 1024))


TOKEN = "sasl.oauthbearer.token"
"""A token for OAUTHBEARER; librdkafka takes only a function, which no file can hold."""

AWS_REGION = "sasl.oauthbearer.aws.region"
"""The region of an Amazon MSK cluster, whose tokens are signed for each login."""

DELEGATION_TOKEN = java_security.DELEGATION_TOKEN
"""True if the login by SCRAM is by a delegation token, which librdkafka does not support."""

_TOKEN_LIFETIME_S = 3600
"""Interval after which librdkafka reads the token again; brokers check its expiry."""

_OWN_NAMES = (
    "max.block.ms",
    "default.api.timeout.ms",
    "max.poll.records",
    "chunk.bytes",
    "chunk.memory",
    "chunk.timeout.ms",
    TOKEN,
    AWS_REGION,
    DELEGATION_TOKEN,
)

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
