"""Single requests of a user with a password, in the messages of this project."""

import socket
import struct
from typing import Any, Self

from headrace.protocol.codec import decode
from headrace.protocol.framing import encode_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.processes.nodes import HOST

SECONDS_MAX = 30
_SIZE = struct.Struct(">i")


class LoggedIn:
    """A connection of one user, as a context manager."""

    def __init__(self, port: int, user: str, password: str) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=SECONDS_MAX)
        self._correlation_id = 0
        self.ask(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, 1)
        login = SaslAuthenticateRequest(f"\0{user}\0{password}".encode())
        answer = self.ask(login, SaslAuthenticateResponse, 2)
        assert answer.error_code == 0, answer.error_message

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()

    def ask(self, request: Message, response_type: type[Any], version: int) -> Any:
        self._correlation_id += 1
        self._socket.sendall(encode_request(request, version, self._correlation_id, "tests"))
        (size,) = _SIZE.unpack(self._receive(_SIZE.size))
        frame = self._receive(size)
        key = int(request.API_KEY)
        correlation_id, position = read_response_header(frame, key, version)
        assert correlation_id == self._correlation_id
        return decode(response_type, version, memoryview(frame)[position:])

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            received = self._socket.recv(size - len(data))
            if not received:
                raise ConnectionResetError("the broker has closed the connection")
            data += received
        return data
