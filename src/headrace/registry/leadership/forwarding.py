"""Hands a write on to the instance that leads, and its answer back to the client."""

import asyncio
import http.client
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from headrace.errors import HeadraceError
from headrace.registry.errors import ForwardingFailed
from headrace.registry.leadership.election import Identity
from headrace.registry.settings import RegistrySettings

FORWARDED = "x-forward"
"""Confluent's header: who gets it answers itself or not at all, so no request goes in circles."""

WRITTEN_AT = "x-headrace-offset"
"""In answers to forwarded writes: who forwarded one waits until it has read up to there."""

AT_ONCE_MAX = 16
_PASSED_ON = ("content-type", "accept", "authorization")
_ANSWER_BYTES_MAX = 64 << 20


class NotReached(HeadraceError):
    """The leader has not got the request, so it may be sent to another."""


class Forwarded(NamedTuple):
    """A request as the leader is to get it."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """What the leader said, and how far the topic has to be read to know it oneself."""

    status: int
    content_type: str
    body: bytes
    offset: int | None = None


def forwardable_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What the leader has to know of the client, and that it must not hand the request on."""
    passed_on = {name: headers[name] for name in _PASSED_ON if name in headers}
    return {**passed_on, FORWARDED: "true"}


class Forwarder:
    """Sends requests from threads, a few at once."""

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
                raise NotReached(f"the leader at {leader.url} is not reached: {error}") from error
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
            if answer.length:  # The connection has ended before the answer did.
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
