"""A broker that is a function: a socket that answers each request by a script, with no network."""

import socket
from collections.abc import Callable, Mapping
from typing import cast

from headrace.client.addresses import Address
from headrace.client.connection import Connection
from headrace.client.security import Security
from headrace.errors import UnsupportedVersion
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode
from headrace.protocol.framing import encode_response, read_request_header
from headrace.protocol.message import Message
from headrace.protocol.schemas.api_versions import ApiVersion, ApiVersionsResponse
from tests.builders.messages import request_class

SPOKEN = (
    2,
    3,
    15,
    18,
    19,
    20,
    21,
    29,
    30,
    31,
    32,
    37,
    38,
    39,
    40,
    41,
    43,
    45,
    46,
    48,
    49,
    50,
    51,
    55,
    60,
    69,
    80,
    81,
)
"""The API keys that `knowing_all` offers."""

Script = Callable[[Message, int], Message | None]
"""Answers a request of a version; nothing closes the connection."""

ADDRESS = Address("broker", 9092)


class ScriptedSocket:
    """Enough of a socket for `Connection`."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.unread = b""
        self.is_closed = False
        self.seen: list[tuple[int, int]] = []

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def sendall(self, frame: bytes) -> None:
        header, position = read_request_header(frame, 4)
        self.seen.append((header.api_key, header.api_version))
        message_class = request_class(ApiKey(header.api_key))
        request: Message | None = None
        version = header.api_version
        if version in message_class.VERSIONS:
            request = decode(message_class, version, frame, position)
        answer = None if request is None else self.script(request, version)
        if answer is None:
            return
        if isinstance(answer, ApiVersionsResponse) and answer.error_code == UnsupportedVersion.code:
            version = 0
        self.unread += encode_response(header.correlation_id, header.api_key, version, answer)

    def recv_into(self, view: memoryview) -> int:
        count = min(len(view), len(self.unread), 7)  # Bytes come in whatever pieces they like.
        view[:count] = self.unread[:count]
        self.unread = self.unread[count:]
        return count

    def close(self) -> None:
        self.is_closed = True


def versions(known: Mapping[int, tuple[int, int]]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in known.items()
        ]
    )


def knowing_all(script: Script) -> Script:
    """A script that speaks every version that we know of the APIs it is asked for."""
    ranges = {
        key: (request_class(ApiKey(key)).VERSIONS[0], request_class(ApiKey(key)).VERSIONS[-1])
        for key in SPOKEN
    }

    def answer(request: Message, version: int) -> Message | None:
        if request.API_KEY == ApiKey.API_VERSIONS:
            return versions(ranges)
        return script(request, version)

    return answer


def connected(
    script: Script, security: Security | None = None
) -> tuple[Connection, ScriptedSocket]:
    opened = ScriptedSocket(script)
    connection = Connection.open(ADDRESS, security or Security(), 5, cast(socket.socket, opened))
    return connection, opened
