"""The values of `__cluster_metadata` records: a small frame with type and version."""

from headrace.protocol.codec import DecodeError, decode, encode_into
from headrace.protocol.message import Message
from headrace.protocol.primitives import read_uvarint, uvarint
from headrace.protocol.schemas.records import metadata

FRAME_VERSION = 1

_BY_KEY: dict[int, type[Message]] = {
    one.API_KEY: one
    for one in vars(metadata).values()
    if isinstance(one, type) and issubclass(one, Message) and one is not Message
}


def encode_metadata_record(message: Message, version: int) -> bytes:
    """A record's value: frame version, record type, its version, the record."""
    out = bytearray((FRAME_VERSION,))
    out += uvarint(message.API_KEY) + uvarint(version)
    encode_into(message, version, out)
    return bytes(out)


def decode_metadata_record(data: bytes | bytearray | memoryview) -> tuple[Message, int]:
    """The record in a value, and its version.

    An unknown type or version is an error: no record about the cluster may be skipped.
    """
    view = memoryview(data)
    try:
        frame_version, position = read_uvarint(view, 0)
        key, position = read_uvarint(view, position)
        version, position = read_uvarint(view, position)
    except IndexError as error:
        raise DecodeError("a metadata record ends within its frame") from error
    if frame_version != FRAME_VERSION:
        raise DecodeError(f"metadata record frame {frame_version} is unknown")
    record = _BY_KEY.get(key)
    if record is None or version not in record.VERSIONS:
        raise DecodeError(f"metadata record type {key} version {version} is unknown")
    return decode(record, version, view, position), version
