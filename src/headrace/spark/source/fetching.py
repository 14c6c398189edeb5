"""A connection for record sets, which receives the next response while one is decoded.

Responses are received into one buffer of the connection, without copies. Record sets are views of
that buffer and valid until the next `receive`.
"""

import socket
import time
from typing import Any, cast

import numpy as np

from headrace.client.addresses import Address, failure_text
from headrace.client.connection import RESPONSE_SIZE_MAX, Connection, ConnectionLost, NotKafka
from headrace.client.security import Security
from headrace.protocol.codec import decode
from headrace.protocol.framing import encode_request, read_response_header
from headrace.protocol.schemas.fetch import FetchRequest, FetchResponse

CLIENT_ID = "headrace-spark"

_HEAD_BYTES = 4
_ROOM_BYTES = 1 << 20


class FetchConnection(Connection):
    """Sends a Fetch request and receives its response later, one at a time."""

    def __init__(
        self, address: Address, security: Security, timeout_s: float, opened: socket.socket
    ) -> None:
        super().__init__(address, security, timeout_s, opened)
        self._fetch_timeout_s = timeout_s
        self._room: Any = np.empty(_ROOM_BYTES, dtype=np.uint8)
        self._awaited_version: int | None = None

    @classmethod
    def to(
        cls, address: Address, security: Security, timeout_s: float, receive_buffer_bytes: int
    ) -> "FetchConnection":
        """Connect with a receive buffer in the kernel, which fills during decoding."""
        opened = cast(FetchConnection, cls.open(address, security, timeout_s))
        opened._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        return opened

    @property
    def is_waiting(self) -> bool:
        """Return whether a response is outstanding, so that nothing else may be sent."""
        return self._awaited_version is not None

    def send(self, request: FetchRequest) -> None:
        """Send a request."""
        assert not self.is_waiting
        if self._renewal_at is not None and time.monotonic() >= self._renewal_at:
            self._log_in()
        version = self.version_of(request)
        self._correlation_id += 1
        frame = encode_request(request, version, self._correlation_id, CLIENT_ID)
        try:
            self._socket.settimeout(self._fetch_timeout_s)
            self._socket.sendall(frame)
        except OSError as error:
            raise self._lost(error) from error
        self._awaited_version = version

    def receive(self) -> FetchResponse:
        """Receive the response, which invalidates the record sets of the one before."""
        version = self._awaited_version
        assert version is not None
        self._awaited_version = None
        try:
            self._socket.settimeout(self._fetch_timeout_s)
            view = self._received()
        except OSError as error:
            raise self._lost(error) from error
        correlation_id, position = read_response_header(view, FetchRequest.API_KEY, version)
        if correlation_id != self._correlation_id:
            self.close()
            raise ConnectionLost(f"{self.address} responded to another request")
        return decode(FetchResponse, version, view, position)

    def _received(self) -> memoryview:
        head = bytearray(_HEAD_BYTES)
        self._fill(memoryview(head))
        size = int.from_bytes(head, "big", signed=True)
        if not _HEAD_BYTES <= size <= RESPONSE_SIZE_MAX:
            self.close()
            raise NotKafka(f"{self.address} does not speak Kafka's protocol: size {size}")
        if size > len(self._room):
            self._room = np.empty(size, dtype=np.uint8)
        view = memoryview(self._room)[:size]
        self._fill(view)
        return view

    def _fill(self, view: memoryview) -> None:
        position = 0
        while position < len(view):
            count = self._socket.recv_into(view[position:])
            if not count:
                raise OSError("it closed the connection")
            position += count

    def _lost(self, error: OSError) -> ConnectionLost:
        self.close()
        return ConnectionLost(f"{self.address} did not answer FETCH: {failure_text(error)}")
