"""Requests to a schema registry: persistent connections, several addresses, bounded retries.

Every request can be repeated: registering a schema again returns the id that it has. So failures
that may pass are retried, at the next address if there are several. Redirects are not followed: the
login is for one host and appears in no message.
"""

import base64
import http.client
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from headrace.schema_clients.registry_client.failures import (
    InvalidRegistryAddress,
    RegistryRefusal,
    RegistryUnavailable,
)

TIMEOUT_S = 10.0
ATTEMPTS = 4
PAUSE_S = 0.2
ANSWER_BYTES_MAX = 16 << 20
IDLE_MAX = 8

JSON = "application/vnd.schemaregistry.v1+json"
_ACCEPT = f"{JSON}, application/vnd.schemaregistry+json, application/json"
_CLOSED_MEANWHILE = (
    http.client.RemoteDisconnected,
    ConnectionResetError,
    BrokenPipeError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)
_REPEATABLE = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Access:
    """Addresses of a registry and the client's identity; secrets are not shown."""

    urls: tuple[str, ...]
    login: str = field(default="", repr=False)
    """`user:password`, or empty."""
    token: str = field(default="", repr=False)
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""

    @property
    def headers(self) -> dict[str, str]:
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if self.login:
            return {"Authorization": f"Basic {base64.b64encode(self.login.encode()).decode()}"}
        return {}

    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file or None)
        if self.certificate_file:
            context.load_cert_chain(self.certificate_file, self.key_file or None)
        return context


def access_to(
    address: str | Sequence[str], login: str = "", *, token: str = "", **files: str
) -> Access:
    """Parse one address or several, joined by commas or in a list; the first may contain a
    login."""
    given = address.split(",") if isinstance(address, str) else address
    urls = []
    for text in (one.strip() for one in given):
        url, own_login = _split(text)
        urls.append(url)
        login = login or own_login
    return Access(tuple(urls), login, token, **files)


def _without_login(text: str) -> str:
    """Return an address for messages: the part before an @ may be a password."""
    _, separator, host = text.rpartition("@")
    return f"...@{host}"[:80] if separator else text[:80]


def _split(text: str) -> tuple[str, str]:
    """Return an address without its login, and the login."""
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise InvalidRegistryAddress(
            f"{_without_login(text)!r} is not a registry's address such as http://127.0.0.1:8081"
        )
    login = ""
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}", login


class RegistryConnections:
    """Sends requests from any thread; pickled with the addresses, without connections."""

    def __init__(self, access: Access, sleep: Callable[[float], None] = time.sleep) -> None:
        self.access = access
        self._sleep = sleep
        self._first = 0
        self._idle: dict[str, deque[http.client.HTTPConnection]] = {
            url: deque(maxlen=IDLE_MAX) for url in access.urls
        }

    def __reduce__(self) -> Any:
        return RegistryConnections, (self.access,)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer's JSON; raise RegistryRefusal or RegistryUnavailable."""
        payload = None if body is None else msgspec.json.encode(body)
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                self._sleep(PAUSE_S * 2**attempt)
            urls = self.access.urls
            url = urls[self._first % len(urls)]
            try:
                status, answer = self._request(url, method, path, payload)
            except (OSError, http.client.HTTPException) as error:
                reason = str(error) or type(error).__name__
            else:
                if status < 400:
                    return _read(url, path, answer)
                refusal = _refusal(status, answer)
                if status not in _REPEATABLE:
                    raise refusal
                reason = str(refusal)
            self._first += 1
        raise RegistryUnavailable(
            f"the schema registry {', '.join(self.access.urls)} does not answer {path}: {reason}; "
            "check that it runs, its address and the login"
        )

    def close(self) -> None:
        for idle in self._idle.values():
            while idle:
                idle.pop().close()

    def __del__(self) -> None:
        """Close connections of a lost client: Spark's plans and batches end without closing it."""
        if hasattr(self, "_idle"):
            self.close()

    def _request(
        self, url: str, method: str, path: str, payload: bytes | None
    ) -> tuple[int, bytes]:
        """Use an idle connection if one is still open, or a new one."""
        try:
            connection = self._idle[url].pop()
        except IndexError:
            return self._exchange(url, self._open(url), method, path, payload)
        try:
            return self._exchange(url, connection, method, path, payload)
        except _CLOSED_MEANWHILE:  # The registry may close idle connections.
            return self._exchange(url, self._open(url), method, path, payload)

    def _exchange(
        self,
        url: str,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        payload: bytes | None,
    ) -> tuple[int, bytes]:
        headers = {"Accept": _ACCEPT, **self.access.headers}
        if payload is not None:
            headers["Content-Type"] = JSON
        prefix = urlsplit(url).path
        try:
            connection.request(method, f"{prefix}{path}", payload, headers)
            response = connection.getresponse()
            answer = response.read(ANSWER_BYTES_MAX + 1)
            if len(answer) > ANSWER_BYTES_MAX:
                raise RegistryUnavailable(
                    f"{url}{path} answered with more than {ANSWER_BYTES_MAX >> 20} MB"
                )
            if response.length:  # The connection ended before the answer did.
                raise http.client.IncompleteRead(answer, response.length)
        except BaseException:
            connection.close()
            raise
        idle = self._idle[url]
        if response.will_close or len(idle) >= IDLE_MAX:
            connection.close()
        else:
            idle.append(connection)
        return response.status, answer

    def _open(self, url: str) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        assert parts.hostname is not None, "access_to has checked the addresses"
        if parts.scheme == "https":
            return http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT_S, context=self.access.tls()
            )
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)


class _ErrorBody(msgspec.Struct):
    error_code: int = 0
    message: str = ""


def _refusal(status: int, answer: bytes) -> RegistryRefusal:
    """Build the error from the registry's message, or from the status if a proxy answered."""
    try:
        body = msgspec.json.decode(answer, type=_ErrorBody)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        body = _ErrorBody()
    message = f"HTTP {status}: {body.message}" if body.message else f"HTTP {status}"
    return RegistryRefusal(status, body.error_code or status, message)


def _read(url: str, path: str, answer: bytes) -> Any:
    try:
        return msgspec.json.decode(answer) if answer else None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RegistryUnavailable(f"{url}{path} did not answer with JSON") from error
