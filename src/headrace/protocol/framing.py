"""Frames and headers: the envelope of a message on a connection.

A frame is a size in four bytes, a header, a message. Which header a request or a response has
follows from the API and the version: from the first flexible version on, headers end with
tagged fields too. ApiVersions answers are the exception, because a client must be
able to read them before it has the broker's versions.
"""

import struct

import msgspec

from headrace.protocol.api_keys import FLEXIBLE_FROM, ApiKey
from headrace.protocol.codec import DecodeError, encode_into
from headrace.protocol.message import NEVER, Message
from headrace.protocol.primitives import reading_failure, skip_tags

SIZE_BYTES = 4
"""The size at the head of a frame, which does not count itself."""

_FLEXIBLE_FROM = tuple(FLEXIBLE_FROM.get(key, NEVER) for key in range(max(ApiKey) + 1))
_API_VERSIONS = int(ApiKey.API_VERSIONS)
_REQUEST = struct.Struct(">hhih")
_RESPONSE = struct.Struct(">ii")
_SIZE = struct.Struct(">i")


class RequestHeader(msgspec.Struct, frozen=True, gc=False):
    """The header of a request: API, version, correlation id and client id."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def read_request_header(
    data: bytes | bytearray | memoryview, position: int = 0
) -> tuple[RequestHeader, int]:
    """The header of a request, and where its body starts."""
    try:
        api_key, version, correlation_id, length = _REQUEST.unpack_from(data, position)
        position += 10
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(data):
                raise DecodeError(f"a client id of {length} bytes is announced and not there")
            client_id = str(data[position:end], "utf-8")
            position = end
        if is_flexible(api_key, version):
            tags = data[position]
            position += 1
            if tags:
                position = skip_tags(memoryview(data), position, tags)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"not a request header: {reading_failure(error)}") from error
    return RequestHeader(api_key, version, correlation_id, client_id), position


def is_flexible(api_key: int, api_version: int) -> bool:
    """Return whether this version of an API has the flexible encoding."""
    return 0 <= api_key < len(_FLEXIBLE_FROM) and api_version >= _FLEXIBLE_FROM[api_key]


def response_header_version(api_key: int, api_version: int) -> int:
    """0, or 1 with tagged fields."""
    return 1 if api_key != _API_VERSIONS and is_flexible(api_key, api_version) else 0


def encode_response(correlation_id: int, api_key: int, version: int, message: Message) -> bytes:
    """A whole frame with the answer to a request."""
    out = bytearray(8)
    if response_header_version(api_key, version):
        out.append(0)
    encode_into(message, version, out)
    _RESPONSE.pack_into(out, 0, len(out) - SIZE_BYTES, correlation_id)
    return bytes(out)


def frame_response(correlation_id: int, api_key: int, version: int, body: bytes) -> bytes:
    """A whole frame around a body that is encoded already."""
    tags = b"\0" if response_header_version(api_key, version) else b""
    size = _RESPONSE.size - SIZE_BYTES + len(tags) + len(body)
    return b"".join((_RESPONSE.pack(size, correlation_id), tags, body))


def read_response_header(
    data: bytes | bytearray | memoryview, api_key: int, version: int, position: int = 0
) -> tuple[int, int]:
    """The correlation id of an answer, and where its body starts."""
    try:
        (correlation_id,) = _SIZE.unpack_from(data, position)
        position += 4
        if response_header_version(api_key, version):
            position = skip_tags(memoryview(data), position + 1, data[position])
    except (struct.error, IndexError) as error:
        raise DecodeError(f"not a response header: {reading_failure(error)}") from error
    return correlation_id, position


def encode_request(
    message: Message, version: int, correlation_id: int, client_id: str | None = None
) -> bytes:
    """A whole frame with a request."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    out = bytearray(SIZE_BYTES)
    out += _REQUEST.pack(message.API_KEY, version, correlation_id, length)
    out += name
    if is_flexible(message.API_KEY, version):
        out.append(0)
    encode_into(message, version, out)
    _SIZE.pack_into(out, 0, len(out) - SIZE_BYTES)
    return bytes(out)
