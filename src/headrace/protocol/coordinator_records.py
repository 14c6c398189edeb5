"""The keys and values of coordinator records: a type or a version, and then the message.

A key opens with the number of the record's type, a value with its own version; a null value
deletes the key. Kafka's loaders skip unknown types, and so does `decode_key`: a newer version may
have written the record, and no state here depends on it.
"""

from struct import Struct
from types import ModuleType
from typing import NamedTuple

from headrace.protocol.codec import DecodeError, decode, encode_into
from headrace.protocol.message import Message

_NUMBER = Struct(">h")

Bytes = bytes | bytearray | memoryview


class CoordinatorRecord(NamedTuple):
    """One record as a coordinator writes it; a value of None is a tombstone."""

    key: bytes
    value: bytes | None


class RecordType(NamedTuple):
    """The two messages that make up a record."""

    key: type[Message]
    value: type[Message]


RecordTypes = dict[int, RecordType]


def record_types(module: ModuleType) -> RecordTypes:
    """The types of a module of `schemas/records`, by the number in the key."""
    messages = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Message) and one is not Message
    ]
    keys = {one.API_KEY: one for one in messages if one.__name__.endswith("Key")}
    values = {one.API_KEY: one for one in messages if one.__name__.endswith("Value")}
    return {number: RecordType(key, values[number]) for number, key in keys.items()}


def encode_record(key: Message, value: Message | None, version: int = 0) -> CoordinatorRecord:
    """A record of a key and a value in `version`, or a tombstone for the key."""
    return CoordinatorRecord(
        encode_key(key), None if value is None else encode_value(value, version)
    )


def encode_key(key: Message) -> bytes:
    out = bytearray(_NUMBER.pack(key.API_KEY))
    encode_into(key, 0, out)
    return bytes(out)


def encode_value(value: Message, version: int = 0) -> bytes:
    out = bytearray(_NUMBER.pack(version))
    encode_into(value, version, out)
    return bytes(out)


def decode_key(types: RecordTypes, data: Bytes) -> Message | None:
    """The key, or None if its type is unknown."""
    found = types.get(_number(data))
    return None if found is None else decode(found.key, 0, data, 2)


def decode_value(types: RecordTypes, key: Message, data: Bytes) -> Message:
    """The value that belongs to a key."""
    version = _number(data)
    value = types[key.API_KEY].value
    if version not in value.VERSIONS:
        raise DecodeError(f"{value.__name__} has no version {version} here")
    return decode(value, version, data, 2)


def _number(data: Bytes) -> int:
    if len(data) < 2:
        raise DecodeError(f"{len(data)} bytes are not a coordinator record")
    number: int = _NUMBER.unpack_from(data)[0]
    return number
