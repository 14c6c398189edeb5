"""The controller listener: requests of brokers, controllers and tools, one by one per connection.

Every API that a node of Kafka may send gets an answer. An unimplemented API inside an envelope gets
UNSUPPORTED_VERSION, because a broker waits for each envelope before it sends the next one.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headrace.controller.requests import DECIDED, OF_NODES
from headrace.errors import (
    HeadraceError,
    IllegalSaslState,
    InvalidRequest,
    KafkaError,
    NotController,
    NotLeaderOrFollower,
    UnknownServerError,
    UnsupportedVersion,
)
from headrace.metadata.features import KRAFT_VERSION, SUPPORTED
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.api_messages import request_type_of, response_type_of
from headrace.protocol.codec import DecodeError, read
from headrace.protocol.framing import (
    SIZE_BYTES,
    RequestHeader,
    encode_response,
    read_request_header,
)
from headrace.protocol.message import Message
from headrace.protocol.refusals import refusal_of
from headrace.protocol.schemas.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from headrace.protocol.schemas.envelope import EnvelopeRequest, EnvelopeResponse
from headrace.quorum.controller_link import OF_TOOLS
from headrace.quorum.envelopes import caller_in, sealed
from headrace.quorum.peer_login import PeerLogin
from headrace.quorum.tls_acceptor import TlsAcceptor
from headrace.security.principals import ANONYMOUS, UNKNOWN_CALLER, Caller
from headrace.security.sasl.authentication import NoLoginRequest
from headrace.security.sasl.listener import ListenerLogins

if TYPE_CHECKING:
    from headrace.security.node_tls import NodeTls
    from headrace.security.tls import ListenerTls

_log = logging.getLogger(__name__)

FRAME_BYTES_MAX = 100 << 20
_WAITING_MAX = 64
_WAITING_IN_LOGIN_MAX = 2
_LOGIN_TIMEOUT_S = 30.0
_LEVEL_0_FROM = 4

Serve = Callable[[Message, int, Caller], Awaitable[Message]]
"""Serves a request in a version for a caller."""

CheckForwarder = Callable[[Caller], None]
"""Raises unless a peer may forward requests of clients."""


def forward_freely(peer: Caller) -> None:
    """Let every peer forward requests."""


class ControllerLogins(NamedTuple):
    """The logins of the listeners with SASL, and the answer to ApiVersions before a login."""

    by_listener: Mapping[str, ListenerLogins]
    versions: Callable[[int], ApiVersionsResponse]

    def answer(
        self, header: RequestHeader, request: ApiVersionsRequest | None
    ) -> ApiVersionsResponse:
        if request is None:
            return ApiVersionsResponse(UnsupportedVersion.code, [_row(ApiKey.API_VERSIONS)])
        return self.versions(header.api_version)


class ControllerListener:
    """Listening sockets for the controller, on the event loop of the quorum."""

    def __init__(
        self,
        serve: Serve,
        check_forwarder: CheckForwarder = forward_freely,
        logins: ControllerLogins | None = None,
        tls: "NodeTls | None" = None,
    ) -> None:
        self._serve = serve
        self._tls = tls
        self._acceptors: list[TlsAcceptor] = []
        self._logins = logins
        self._check_forwarder = check_forwarder
        self._servers: list[asyncio.Server] = []
        self._connections: dict[_Connection, None] = {}

    async def listen(self, sockets: Sequence[socket.socket], names: Sequence[str] = ()) -> None:
        """Accept connections on bound sockets; `names` are their listeners, in the same order."""
        loop = asyncio.get_running_loop()
        for number, sock in enumerate(sockets):
            name = names[number] if names else ""
            connected = partial(self._connected, name)
            tls = None if self._tls is None else self._tls.of(name)
            if tls is not None:
                secured = partial(self._connected, name, tls)
                self._acceptors.append(TlsAcceptor(sock, tls, secured))
                continue
            self._servers.append(await loop.create_server(connected, sock=sock))

    def close(self) -> None:
        for server in self._servers:
            server.close()
        for acceptor in self._acceptors:
            acceptor.close()
        for connection in list(self._connections):
            connection.close()
        self._servers.clear()
        self._acceptors.clear()

    def _connected(self, listener: str, tls: "ListenerTls | None" = None) -> "_Connection":
        connection = _Connection(self._serve, self._check_forwarder, self._connections, tls)
        if self._logins is not None and listener in self._logins.by_listener:
            connection.demand_login(self._logins, listener)
        return connection


class _Connection(asyncio.Protocol):
    """One peer: frames are served in order, and reading pauses while too many wait."""

    def __init__(
        self,
        serve: Serve,
        check_forwarder: CheckForwarder,
        open_: "dict[_Connection, None]",
        tls: "ListenerTls | None" = None,
    ) -> None:
        self._serve = serve
        self._tls = tls
        self._check_forwarder = check_forwarder
        self._open = open_
        self._buffer = bytearray()
        self._frames: deque[bytes] = deque()
        self._serving: asyncio.Task[None] | None = None
        self._is_paused = False
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._transport: asyncio.Transport
        self._caller = UNKNOWN_CALLER
        self._demanded: tuple[ControllerLogins, str] | None = None
        self._login: PeerLogin | None = None
        self._login_timeout: asyncio.TimerHandle | None = None

    def demand_login(self, logins: ControllerLogins, listener: str) -> None:
        """Serve no request before the peer has logged in."""
        self._demanded = logins, listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # uvloop's has no common base.
        self._open[self] = None
        peer = transport.get_extra_info("peername")
        self._caller = Caller(ANONYMOUS, str(peer[0]) if peer else UNKNOWN_CALLER.host)
        if self._tls is not None:
            self._name_by_certificate(self._tls)
        if self._demanded is not None:
            logins, listener = self._demanded
            self._login = PeerLogin(
                logins.by_listener[listener], logins.answer, str(peer), self._caller.host
            )
            loop = asyncio.get_running_loop()
            self._login_timeout = loop.call_later(_LOGIN_TIMEOUT_S, self._end_late_login)

    def _end_late_login(self) -> None:
        """Close the connection of a peer that has not logged in: strangers must not pile up."""
        fields = {"peer": self._caller.host, "seconds": _LOGIN_TIMEOUT_S}
        _log.debug("no login at the controller in time, connection closed", extra=fields)
        self.close()

    def _name_by_certificate(self, tls: "ListenerTls") -> None:
        """Take the principal from the peer's certificate; close if no rule names it."""
        try:
            principal = tls.principal_of(self._transport.get_extra_info("ssl_object"))
        except HeadraceError as error:
            fields = {"peer": str(self._caller.host), "error": str(error)}
            _log.warning("invalid request to the controller, connection closed", extra=fields)
            self.close()
        else:
            self._caller = Caller(principal, self._caller.host)

    def connection_lost(self, error: Exception | None) -> None:
        self._open.pop(self, None)
        self._stop_login_timeout()
        if self._serving is not None:
            self._serving.cancel()

    def close(self) -> None:
        self._transport.abort()

    def pause_writing(self) -> None:
        """Serve no more requests until the peer has read its answers."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        position = 0
        while len(buffer) - position >= SIZE_BYTES:
            size = int.from_bytes(buffer[position : position + SIZE_BYTES], signed=True)
            if not 0 < size <= self._frame_bytes_max:
                _log.warning("invalid frame size, connection closed", extra={"size": size})
                self.close()
                return
            end = position + SIZE_BYTES + size
            if end > len(buffer):
                break
            self._frames.append(bytes(buffer[position + SIZE_BYTES : end]))
            position = end
        del buffer[:position]
        if len(self._frames) > self._waiting_max and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        if self._frames and self._serving is None:
            self._serving = asyncio.get_running_loop().create_task(self._serve_all())

    @property
    def _waiting_max(self) -> int:
        is_in_login = self._login is not None and self._login.principal is None
        return _WAITING_IN_LOGIN_MAX if is_in_login else _WAITING_MAX

    @property
    def _frame_bytes_max(self) -> int:
        limit = self._login.frame_bytes_max if self._login is not None else None
        return FRAME_BYTES_MAX if limit is None else limit

    async def _answer_login(self, login: PeerLogin, frame: bytes) -> bool:
        """Serve a frame of a login; return false for one that the session allows."""
        reply = await login.take(frame)
        if reply is None:
            return False
        if reply.answer is not None:
            self._transport.write(reply.answer)
        if reply.is_last:
            self._frames.clear()
            self._transport.close()
        elif login.principal is not None:
            self._caller = Caller(login.principal, self._caller.host)
            self._stop_login_timeout()
        return True

    def _stop_login_timeout(self) -> None:
        if self._login_timeout is not None:
            self._login_timeout.cancel()
            self._login_timeout = None

    async def _serve_all(self) -> None:
        try:
            while self._frames:
                await self._may_write.wait()
                frame = self._frames.popleft()
                if self._login is None or not await self._answer_login(self._login, frame):
                    answer = await answered(frame, self._serve, self._caller, self._check_forwarder)
                    self._transport.write(answer)
                if self._is_paused and len(self._frames) <= self._waiting_max // 2:
                    self._is_paused = False
                    self._transport.resume_reading()
        except (DecodeError, NoLoginRequest) as error:
            fields = {"peer": str(self._transport.get_extra_info("peername")), "error": str(error)}
            _log.warning("invalid request to the controller, connection closed", extra=fields)
            self.close()
        except Exception:
            fields = {"peer": str(self._transport.get_extra_info("peername"))}
            _log.exception("answer of the controller failed, connection closed", extra=fields)
            self.close()
        finally:
            self._serving = None


async def answered(
    frame: bytes,
    serve: Serve,
    caller: Caller = UNKNOWN_CALLER,
    check_forwarder: CheckForwarder = forward_freely,
) -> bytes:
    """Return the frame that answers a request; raise `DecodeError` for bytes that are none."""
    header, position = read_request_header(frame)
    key, version = header.api_key, header.api_version
    request_type = request_type_of(key)
    if key == ApiKey.API_VERSIONS and version not in ApiVersionsRequest.VERSIONS:
        refusal = ApiVersionsResponse(UnsupportedVersion.code, [_row(ApiKey.API_VERSIONS)])
        return encode_response(header.correlation_id, key, 0, refusal)
    if key not in SERVED or request_type is None or version not in request_type.VERSIONS:
        raise DecodeError(f"API {key} v{version} is not served by a controller")
    request, _ = read(request_type, version, memoryview(frame), position)
    if key in DECIDED:
        caller = caller._replace(client_id=header.client_id or "")
    if isinstance(request, EnvelopeRequest):
        response: Message = await _open(request, serve, caller, check_forwarder)
    else:
        response = await _answer(request, version, serve, caller)
    try:
        return encode_response(header.correlation_id, key, version, response)
    except UnsupportedVersion as error:
        refused = _refused(request, error, version)
        return encode_response(header.correlation_id, key, version, refused)


async def _answer(request: Message, version: int, serve: Serve, caller: Caller) -> Message:
    """Serve a request; its errors become part of the response."""
    if request.API_KEY in OF_LOGINS:
        return _refused(request, IllegalSaslState("there is no login under way"), version)
    try:
        return await _served(request, version, serve, caller)
    except KafkaError as error:
        return _refused(request, error, version)


async def _served(request: Message, version: int, serve: Serve, caller: Caller) -> Message:
    """Serve a request; every failure is raised as a `KafkaError`."""
    try:
        return await serve(request, version, caller)
    except KafkaError:
        raise
    except HeadraceError as error:
        raise UnknownServerError(str(error)) from error
    except Exception as error:
        fields = {"api": ApiKey(request.API_KEY).name}
        _log.error("request to the controller failed", extra=fields, exc_info=error)
        raise UnknownServerError("the controller failed; see its log") from error


async def _open(
    envelope: EnvelopeRequest, serve: Serve, peer: Caller, check_forwarder: CheckForwarder
) -> EnvelopeResponse:
    """Serve the request in an envelope."""
    try:
        check_forwarder(peer)
        caller = caller_in(envelope)
        header, position = read_request_header(envelope.request_data)
        caller = caller._replace(client_id=header.client_id or "")
        request_type = request_type_of(header.api_key)
        version = header.api_version
        is_known = header.api_key in FORWARDED and request_type is not None
        if not is_known or request_type is None or version not in request_type.VERSIONS:
            raise UnsupportedVersion(f"API {header.api_key} v{version} cannot be forwarded here")
        data = memoryview(envelope.request_data)
        request, _ = read(request_type, version, data, position)
    except DecodeError:
        return EnvelopeResponse(error_code=InvalidRequest.code)
    except KafkaError as error:
        return EnvelopeResponse(error_code=error.code)
    try:
        answer = await _served(request, version, serve, caller)
    except (NotController, NotLeaderOrFollower):
        return EnvelopeResponse(error_code=NotController.code)
    except KafkaError as error:
        answer = _refused(request, error, version)
    return sealed(envelope, answer)


def _refused(request: Message, error: KafkaError, version: int) -> Message:
    return refusal_of(response_type_of(type(request)))(request, error, version)


OF_RAFT = frozenset(
    (
        ApiKey.FETCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.UPDATE_RAFT_VOTER,
        *OF_TOOLS,
    )
)
"""Requests that the raft core answers."""

FORWARDED = (DECIDED | OF_TOOLS) - OF_NODES
"""Requests of clients that brokers forward."""

OF_LOGINS = frozenset((ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))
"""Requests of a login, which are out of place on a connection that needs none."""

SERVED = (
    DECIDED
    | OF_RAFT
    | OF_LOGINS
    | {ApiKey.API_VERSIONS, ApiKey.DESCRIBE_ACLS, ApiKey.DESCRIBE_CLUSTER, ApiKey.ENVELOPE}
)


def api_versions(
    features_epoch: int, levels: dict[str, int], version: int = ApiVersionsRequest.VERSIONS[-1]
) -> ApiVersionsResponse:
    """Return the APIs and features of a controller.

    Before version 4 clients cannot read a feature whose lowest level is 0.
    """
    return ApiVersionsResponse(
        api_keys=[_row(key) for key in sorted(SERVED)],
        supported_features=[
            SupportedFeatureKey(name, *one)
            for name, one in SUPPORTED.items()
            if one[0] or version >= _LEVEL_0_FROM
        ],
        finalized_features_epoch=features_epoch,
        finalized_features=[
            FinalizedFeatureKey(name, level, level) for name, level in levels.items() if level
        ],
    )


def _row(key: ApiKey) -> ApiVersion:
    request = request_type_of(key)
    assert request is not None, "a served API has a request"
    return ApiVersion(int(key), request.VERSIONS[0], request.VERSIONS[-1])


def features_of(levels: Mapping[str, int], kraft_version: int) -> dict[str, int]:
    """Return the levels in use, with that of the quorum itself."""
    return {**levels, KRAFT_VERSION: kraft_version}
