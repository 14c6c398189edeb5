"""A blocking connection that speaks Kafka's protocol: one request, one answer, with a timeout.

Made for administration, where requests are few and sequential; records go through
confluent-kafka. On opening, ApiVersions negotiates the versions. A broker that does not support
our version of ApiVersions answers in version 0 with its range. An older broker closes the
connection, so the last attempt uses version 0 on a new connection. With credentials in the
settings, the connection is authenticated next, and again before a limited session expires
(KIP-368).
"""

import socket
import struct
import time
from typing import TypeVar

from headrace.client.addresses import Address, BrokerUnreachable, connect, failure_text
from headrace.client.authentication import authenticate
from headrace.client.security import Security
from headrace.errors import HeadraceError, UnsupportedVersion
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import DecodeError, decode
from headrace.protocol.framing import encode_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.schemas.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

CLIENT_ID = "headrace-cli"
RESPONSE_SIZE_MAX = 256 << 20

_SIZE = struct.Struct(">i")

Response = TypeVar("Response", bound=Message)


class ConnectionLost(BrokerUnreachable):
    """The broker did not answer a request, and may or may not have executed it."""


class NoAnswer(ConnectionLost):
    """The connection is open, but no answer arrived in time."""


class HungUp(ConnectionLost):
    """The broker closed the connection on the first request.

    A broker that stops does this once; a listener that requires TLS or a login, every time.
    """


class NotKafka(BrokerUnreachable):
    """The address answers, but not as a Kafka broker."""


class Connection:
    """One open connection, with the API versions of the broker."""

    def __init__(
        self, address: Address, security: Security, timeout_s: float, opened: socket.socket
    ) -> None:
        self.address = address
        self.supported_features: list[SupportedFeatureKey] = []
        self.finalized_features: list[FinalizedFeatureKey] = []
        self._versions: dict[int, tuple[int, int]] = {}
        self._security = security
        self._timeout_s = timeout_s
        self._correlation_id = 0
        self._has_answered = False
        self._renewal_at: float | None = None
        self._socket = security.wrap(opened, address)

    @classmethod
    def open(
        cls,
        address: Address,
        security: Security,
        timeout_s: float,
        opened: socket.socket | None = None,
    ) -> "Connection":
        """Connect unless a socket is given, negotiate versions, and authenticate."""
        try:
            connection = cls(address, security, timeout_s, opened or connect(address, timeout_s))
            try:
                connection._settle(ApiVersionsRequest.VERSIONS[-1])
            except NoAnswer:
                raise
            except (ConnectionLost, DecodeError):
                connection.close()
                connection = cls(address, security, timeout_s, connect(address, timeout_s))
                connection._settle(0)
        except OSError as error:
            raise BrokerUnreachable(f"cannot reach {address}: {failure_text(error)}") from error
        except DecodeError as error:
            raise NotKafka(f"{address} does not speak Kafka's protocol: {error}") from error
        connection._log_in()
        return connection

    def call(
        self, request: Message, response: type[Response], timeout_s: float | None = None
    ) -> Response:
        """Send a request in the newest common version, and wait for the answer."""
        if self._renewal_at is not None and time.monotonic() >= self._renewal_at:
            self._log_in()
        answer = self.exchange(request, response, timeout_s)
        self._has_answered = True
        return answer

    def exchange(
        self, request: Message, response: type[Response], timeout_s: float | None = None
    ) -> Response:
        """Like `call`, but without renewing the session: for the authentication itself."""
        return self._exchange(request, response, self.version_of(request), timeout_s)

    def version_of(self, request: Message) -> int:
        """Return the version in which a request will be sent."""
        ours = request.VERSIONS
        theirs = self._versions.get(request.API_KEY)
        name = ApiKey(request.API_KEY).name
        if theirs is None:
            raise UnsupportedVersion(f"the broker at {self.address} does not offer {name}")
        version = min(ours[-1], theirs[1])
        if version < max(ours[0], theirs[0]):
            raise UnsupportedVersion(
                f"the broker at {self.address} supports {name} {theirs[0]} to {theirs[1]},"
                f" this client {ours[0]} to {ours[-1]}"
            )
        return version

    def understands(self, request: type[Message]) -> bool:
        """Return whether the broker supports a version of this request."""
        theirs = self._versions.get(request.API_KEY)
        return theirs is not None and (
            min(request.VERSIONS[-1], theirs[1]) >= max(request.VERSIONS[0], theirs[0])
        )

    def close(self) -> None:
        self._socket.close()

    def _log_in(self) -> None:
        if self._security.sasl is None:
            return
        try:
            renewed_after_s = authenticate(self, self._security.sasl)
        except HeadraceError:
            self.close()
            raise
        now = time.monotonic()
        self._renewal_at = None if renewed_after_s is None else now + renewed_after_s

    def _settle(self, version: int) -> None:
        request = ApiVersionsRequest(client_software_name="headrace", client_software_version="0")
        answer = self._exchange(request, ApiVersionsResponse, version)
        if answer.error_code == UnsupportedVersion.code:
            known = {key.api_key: key.max_version for key in answer.api_keys}
            newest = min(known.get(ApiKey.API_VERSIONS, 0), version - 1)
            answer = self._exchange(request, ApiVersionsResponse, max(0, newest))
        self._versions = {
            key.api_key: (key.min_version, key.max_version) for key in answer.api_keys
        }
        self.supported_features = answer.supported_features
        self.finalized_features = answer.finalized_features

    def _exchange(
        self,
        request: Message,
        response: type[Response],
        version: int,
        timeout_s: float | None = None,
    ) -> Response:
        self._correlation_id += 1
        deadline = time.monotonic() + (timeout_s or self._timeout_s)
        frame = encode_request(request, version, self._correlation_id, CLIENT_ID)
        try:
            self._socket.settimeout(timeout_s or self._timeout_s)
            self._socket.sendall(frame)
            data = self._receive(deadline)
        except OSError as error:
            self.close()
            kind = NoAnswer if isinstance(error, TimeoutError) else self._loss()
            raise kind(
                f"{self.address} did not answer {ApiKey(request.API_KEY).name}:"
                f" {failure_text(error)}"
            ) from error
        correlation_id, position = read_response_header(data, request.API_KEY, version)
        if correlation_id != self._correlation_id:
            self.close()
            raise ConnectionLost(f"{self.address} answered a different request")
        return decode(response, _answered_in(request, version, data, position), data, position)

    def _loss(self) -> type[ConnectionLost]:
        return ConnectionLost if self._has_answered else HungUp

    def _receive(self, deadline: float) -> bytes:
        head = self._receive_exactly(4, deadline)
        (size,) = _SIZE.unpack(head)
        if not 4 <= size <= RESPONSE_SIZE_MAX:
            self.close()
            raise NotKafka(f"{self.address} does not speak Kafka's protocol: {spoken(head)}")
        return self._receive_exactly(size, deadline)

    def _receive_exactly(self, size: int, deadline: float) -> bytes:
        received = bytearray(size)
        view = memoryview(received)
        position = 0
        while position < size:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            count = self._socket.recv_into(view[position:])
            if count == 0:
                raise OSError("it closed the connection")
            position += count
        return bytes(received)


def spoken(head: bytes) -> str:
    """Name the protocol of an answer whose first bytes cannot be a size."""
    if head == b"HTTP":
        return "it speaks HTTP"
    if head == b"SSH-":
        return "it speaks SSH"
    if head[0] in (0x15, 0x16) and head[1] == 0x03:
        return "it speaks TLS, but security.protocol is set to plaintext"
    return f"its answer starts with {head!r}"


def _answered_in(request: Message, version: int, data: bytes, position: int) -> int:
    """Return the version of an answer: 0 if ApiVersions was sent in an unsupported version.

    The error code is the first field of every version, so it is readable in any version.
    """
    if request.API_KEY != ApiKey.API_VERSIONS:
        return version
    code = int.from_bytes(data[position : position + 2], "big", signed=True)
    return 0 if code == UnsupportedVersion.code else version
