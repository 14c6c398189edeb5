"""A channel to one other node: requests over one connection, which is made again when it is lost.

Requests are sent as they come, and the peer answers them in order. On a new connection ApiVersions
negotiates the versions first, except for replica fetchers, whose version follows from
metadata.version as in Kafka. Then the node logs in, if the peer's listener demands it. A session
that ends is renewed before, and new requests wait for that.

A lost connection fails the requests under way, because the peer may have executed them; the caller
decides whether to send them again.
"""

import asyncio
import logging
import ssl
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.errors import SaslAuthenticationFailed, UnsupportedVersion
from headrace.peers.logging_in import log_in
from headrace.peers.own_login import OwnLogin
from headrace.peers.unreachable import PeerUnreachable
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.api_messages import response_type_of
from headrace.protocol.codec import DecodeError, decode
from headrace.protocol.framing import encode_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from headrace.security.tls import ListenerTls

_log = logging.getLogger(__name__)

RESPONSE_BYTES_MAX = 256 << 20
REQUEST_TIMEOUT_S = 30.0
_CONNECT_TIMEOUT_S = 10.0
_SCRATCH_BYTES = 64 << 10
_SIZE_BYTES = 4
_RENEWED_AFTER = 0.85  # A share of the session's life, as in Java's clients.
_API_VERSIONS = int(ApiKey.API_VERSIONS)
_SOFTWARE = "headrace"


class _Waiting(NamedTuple):
    key: int
    version: int
    correlation_id: int
    answer: "asyncio.Future[memoryview]"


class Channel:
    """Requests to one address; for the event loop that runs when it is first used."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str,
        *,
        negotiates_versions: bool = True,
        login: OwnLogin | None = None,
        tls: "ListenerTls | None" = None,
    ) -> None:
        """`tls` has the certificates of this node for the peer's listener; None for plaintext."""
        self.host = host
        self.port = port
        self._tls = tls
        self._is_distrusted = False  # The last handshake failed, which the log reports.
        self._login = login
        self._is_rejected = False  # The peer rejected the last login, which the log reports.
        self._client_id = client_id
        self._negotiates_versions = negotiates_versions
        self._connecting: asyncio.Task[_Connection] | None = None
        self._connection: _Connection | None = None

    def __repr__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_open(self) -> bool:
        return self._connection is not None and not self._connection.is_lost

    async def ask(
        self, request: Message, *, version: int | None = None, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> Any:
        """Return the response; without `version`, the newest that both nodes support is used."""
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._connected()
                if version is None:
                    version = self._version_of(connection, request)
                body = await connection.ask(request, version, self._client_id)
        except TimeoutError:
            self._drop()  # A late answer must not be taken for that of the next request.
            name = ApiKey(request.API_KEY).name
            raise PeerUnreachable(f"{self} did not answer {name} in {timeout_s:g} s") from None
        try:
            return decode(response_type_of(type(request)), version, body)
        except DecodeError as error:
            self._drop()
            name = ApiKey(request.API_KEY).name
            raise PeerUnreachable(f"{self} sent an invalid answer to {name}: {error}") from error

    async def ask_raw(
        self, request: Message, version: int, *, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> memoryview:
        """Return the body of the response as it was received."""
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._connected()
                return await connection.ask(request, version, self._client_id)
        except TimeoutError:
            self._drop()
            name = ApiKey(request.API_KEY).name
            raise PeerUnreachable(f"{self} did not answer {name} in {timeout_s:g} s") from None

    async def connect(self, timeout_s: float = _CONNECT_TIMEOUT_S) -> None:
        """Open the connection now; raise `PeerUnreachable` if that fails."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._connected()
        except TimeoutError:
            raise PeerUnreachable(f"no connection to {self} in {timeout_s:g} s") from None

    async def lost(self) -> None:
        """Wait until the present connection is lost; return at once if it is not open."""
        if self._connection is not None:
            await self._connection.lost()

    def close(self) -> None:
        """Close the connection; requests under way fail."""
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _connected(self) -> "_Connection":
        connection = self._connection
        if connection is not None and not connection.is_lost:
            if connection.renewal_s is None:
                return connection
            if asyncio.get_running_loop().time() < connection.renewal_s:
                return connection
        else:
            connection = None
        if self._connecting is None:
            opening = self._open() if connection is None else self._renew(connection)
            self._connecting = asyncio.ensure_future(opening)
            self._connecting.add_done_callback(self._opened)
        connecting = self._connecting
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            if connecting.cancelled():
                raise PeerUnreachable(f"the channel to {self} was closed") from None
            raise

    def _opened(self, connecting: "asyncio.Task[_Connection]") -> None:
        if self._connecting is connecting:
            self._connecting = None
        if not connecting.cancelled():
            connecting.exception()  # Marked as seen: every request that waited may be cancelled.

    async def _open(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        secured: dict[str, Any] = {}
        if self._tls is not None:
            secured = {"ssl": self._tls.client, "server_hostname": self.host}
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                _, connection = await loop.create_connection(
                    lambda: _Connection(repr(self)), self.host, self.port, **secured
                )
                if self._negotiates_versions:
                    await connection.negotiate(self._client_id)
                if self._login is not None:
                    await self._log_in(connection, self._login)
        except ssl.SSLError as error:
            raise self._distrusted(error) from error
        except (OSError, TimeoutError) as error:
            refused = isinstance(error, ConnectionRefusedError)
            reason = "connection refused" if refused else str(error) or "no answer"
            raise PeerUnreachable(f"cannot reach {self}: {reason}", is_refused=refused) from error
        self._connection = connection
        self._is_distrusted = False
        return connection

    def _distrusted(self, error: ssl.SSLError) -> PeerUnreachable:
        """Return the error of a failed handshake; the first of them is logged."""
        from headrace.security.tls import reason_of  # Only TLS needs OpenSSL.

        reason = reason_of(error)
        if not self._is_distrusted:
            self._is_distrusted = True
            fields = {"peer": repr(self), "reason": reason}
            _log.error("TLS to another node failed, retrying", extra=fields)
        return PeerUnreachable(f"no TLS connection to {self}: {reason}")

    async def _renew(self, connection: "_Connection") -> "_Connection":
        """Log in again on an open connection, behind the requests under way."""
        assert self._login is not None, "only logins make sessions"
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                await self._log_in(connection, self._login)
        except TimeoutError:
            connection.close()
            raise PeerUnreachable(f"{self} did not answer a repeated login") from None
        return connection

    async def _log_in(self, connection: "_Connection", login: OwnLogin) -> None:
        try:
            lifetime_ms = await log_in(connection, login, self._client_id)
        except (SaslAuthenticationFailed, DecodeError) as error:
            connection.close()
            if not self._is_rejected:
                self._is_rejected = True
                fields = {"peer": repr(self), "mechanism": login.mechanism, "error": str(error)}
                _log.error("login at another node failed, retrying", extra=fields)
            raise PeerUnreachable(f"{self} rejects the login of this node: {error}") from error
        self._is_rejected = False
        now_s = asyncio.get_running_loop().time()
        connection.renewal_s = (
            now_s + lifetime_ms / 1000 * _RENEWED_AFTER if lifetime_ms > 0 else None
        )

    def _version_of(self, connection: "_Connection", request: Message) -> int:
        ours, theirs = request.VERSIONS, connection.versions.get(request.API_KEY)
        if not self._negotiates_versions:
            return ours[-1]
        version = min(ours[-1], theirs[1]) if theirs else -1
        if theirs is None or version < max(ours[0], theirs[0]):
            name = ApiKey(request.API_KEY).name
            raise UnsupportedVersion(f"{self} supports no version of {name} that this node does")
        return version


class _Connection(asyncio.BufferedProtocol):
    """One connection: received bytes go into a scratch buffer, large answers into their own."""

    def __init__(self, name: str) -> None:
        self.versions: dict[int, tuple[int, int]] = {}
        self.is_lost = False
        self.renewal_s: float | None = None
        """When the login must be repeated, by the loop's time."""
        self._name = name
        self._transport: asyncio.Transport
        self._waiting: deque[_Waiting] = deque()
        self._correlation_id = 0
        self._scratch = bytearray(_SCRATCH_BYTES)
        self._filled = 0
        self._frame: bytearray | None = None
        self._frame_filled = 0
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # --- requests -----------------------------------------------------------------------------

    async def negotiate(self, client_id: str) -> None:
        """Ask for the peer's versions; a peer without our version answers in version 0."""
        request = ApiVersionsRequest(_SOFTWARE, "1")
        for version in (request.VERSIONS[-1], 0):
            body = await self.ask(request, version, client_id)
            answered = version if not any(body[:2]) else 0
            answer = decode(ApiVersionsResponse, answered, body)
            if not answer.error_code:
                break
        self.versions = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}

    def ask(self, request: Message, version: int, client_id: str) -> "asyncio.Future[memoryview]":
        if self.is_lost:
            raise PeerUnreachable(f"the connection to {self._name} was lost")
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        answer: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(request.API_KEY, version, self._correlation_id, answer)
        self._transport.write(encode_request(request, version, waiting.correlation_id, client_id))
        self._waiting.append(waiting)
        return answer

    async def lost(self) -> None:
        await asyncio.shield(self._lost)

    def close(self) -> None:
        self._transport.abort()
        self._fail("it was closed here")

    # --- asyncio's calls ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]  # uvloop's has no common base.

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(str(error) if error else "the peer closed it")

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return memoryview(self._frame)[self._frame_filled :]
        return memoryview(self._scratch)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        if self._frame is not None:
            self._frame_filled += nbytes
            if self._frame_filled == len(self._frame):
                frame, self._frame = self._frame, None
                self._take(memoryview(frame))
            return
        self._filled += nbytes
        self._split()

    def _split(self) -> None:
        """Take the whole frames out of the scratch buffer, and keep the start of the next one."""
        scratch, position = self._scratch, 0
        while self._filled - position >= _SIZE_BYTES:
            size = int.from_bytes(scratch[position : position + _SIZE_BYTES], signed=True)
            if not 0 <= size <= RESPONSE_BYTES_MAX:
                self.close()
                return
            start, end = position + _SIZE_BYTES, position + _SIZE_BYTES + size
            if end > self._filled:
                if end - position > len(scratch):
                    self._frame = bytearray(size)
                    self._frame_filled = self._filled - start
                    self._frame[: self._frame_filled] = scratch[start : self._filled]
                    position = self._filled
                break
            self._take(memoryview(bytes(scratch[start:end])))
            position = end
        scratch[: self._filled - position] = scratch[position : self._filled]
        self._filled -= position

    def _take(self, frame: memoryview) -> None:
        """Give an answer to the oldest request."""
        if not self._waiting:
            self.close()
            return
        waiting = self._waiting.popleft()
        version = waiting.version
        if waiting.key == _API_VERSIONS:
            version = 0  # Its header is always that of version 0.
        try:
            correlation_id, position = read_response_header(frame, waiting.key, version)
        except DecodeError:
            correlation_id, position = -1, 0
        if correlation_id != waiting.correlation_id:
            if not waiting.answer.done():
                waiting.answer.set_exception(PeerUnreachable(f"{self._name} mixes up its answers"))
            self.close()
        elif not waiting.answer.done():
            waiting.answer.set_result(frame[position:])

    def _fail(self, reason: str) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        self._lost.set_result(None)
        while self._waiting:
            answer = self._waiting.popleft().answer
            if not answer.done():
                text = f"the connection to {self._name} was lost: {reason}"
                answer.set_exception(PeerUnreachable(text))
