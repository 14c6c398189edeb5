"""Forward writes to the leader, and its answers to the clients."""

import asyncio
import http.client
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from headrace.errors import HeadraceError
from headrace.http.tls import ServerTls
from headrace.registry.errors import ForwardingFailed
from headrace.registry.leadership.election import Identity
from headrace.registry.settings import RegistrySettings

FORWARDED = "x-forward"
"""Confluent's header: a request with it is not forwarded again, so none goes in circles."""

WRITTEN_AT = "x-headrace-offset"
"""In answers to forwarded writes: the offset that the forwarding instance waits to read."""

AT_ONCE_MAX = 16
_PASSED_ON = ("content-type", "accept", "authorization")
_ANSWER_BYTES_MAX = 64 << 20


class NotReached(HeadraceError):
    """The leader did not receive the request, so another one may."""


class Forwarded(NamedTuple):
    """A request for the leader."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """The leader's answer, and the offset of its last record."""

    status: int
    content_type: str
    body: bytes
    offset: int | None = None


def forwardable_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Select the headers for the leader, and mark the request as forwarded."""
    passed_on = {name: headers[name] for name in _PASSED_ON if name in headers}
    return {**passed_on, FORWARDED: "true"}


def forwarding_context(tls: ServerTls | None, authority: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context for other instances, which may request this one's certificate."""
    if tls is None and authority is None:
        return None
    context = ssl.create_default_context(cafile=authority)
    if tls is not None:
        context.load_cert_chain(tls.certificate, tls.key, tls.key_password or "")
    return context


class Forwarder:
    """Sends requests in threads, a few at once."""

    def __init__(self, settings: RegistrySettings, tls: ssl.SSLContext | None = None) -> None:
        self._connect_s = settings.leader_connect_timeout_ms / 1000
        self._read_s = settings.leader_read_timeout_ms / 1000
        self._tls = tls
        self._threads = ThreadPoolExecutor(AT_ONCE_MAX, "registry-forward")

    async def send(self, leader: Identity, request: Forwarded) -> Answer:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._send, leader, request)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _send(self, leader: Identity, request: Forwarded) -> Answer:
        connection = self._connection(leader)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise NotReached(f"the leader at {leader.url} is unreachable: {error}") from error
            assert connection.sock is not None
            connection.sock.settimeout(self._read_s)
            connection.request(
                request.method, request.target, request.body or None, dict(request.headers)
            )
            answer = connection.getresponse()
            body = answer.read(_ANSWER_BYTES_MAX + 1)
            if len(body) > _ANSWER_BYTES_MAX:
                raise ForwardingFailed(
                    f"the leader at {leader.url} answered with more than"
                    f" {_ANSWER_BYTES_MAX >> 20} MB"
                )
            if answer.length:  # The connection ended before the answer did.
                raise http.client.IncompleteRead(body, answer.length)
            offset = answer.getheader(WRITTEN_AT, "")
            return Answer(
                answer.status,
                answer.getheader("content-type") or "",
                body,
                int(offset) if offset.isdecimal() else None,
            )
        except (OSError, http.client.HTTPException) as error:
            raise ForwardingFailed(
                f"the leader at {leader.url} did not answer: {error or type(error).__name__}"
            ) from error
        finally:
            connection.close()

    def _connection(self, leader: Identity) -> http.client.HTTPConnection:
        if leader.scheme == "https":
            return http.client.HTTPSConnection(
                leader.host, leader.port, timeout=self._connect_s, context=self._tls
            )
        return http.client.HTTPConnection(leader.host, leader.port, timeout=self._connect_s)
