"""The gate over real connections: who gets in, who is answered late, and when sessions end."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from headrace.broker.connection import Connection
from headrace.broker.frame_buffers import FrameBuffers, Frames
from headrace.broker.logins import gate as gates
from headrace.broker.logins.gate import Gate
from headrace.broker.ready_sockets import ReadySockets
from headrace.errors import IllegalSaslState, SaslAuthenticationFailed
from headrace.protocol.codec import decode
from headrace.protocol.framing import RequestHeader, encode_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.schemas.heartbeat import HeartbeatRequest
from headrace.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from headrace.security.principals import ANONYMOUS, USER, Principal
from headrace.security.sasl.authentication import Mechanisms
from headrace.security.sasl.listener import ListenerLogins
from headrace.security.sasl.plain import PlainServer
from headrace.security.sasl.reports import LoginMetrics, LoginReports

USERS = {"ada": "secret", "bob": "secret"}
ADA = b"\0ada\0secret"
WRONG = b"\0ada\0wrong"
SECONDS_MAX = 20


class Timers:
    """The timers of a loop, and a clock that a test moves."""

    def __init__(self) -> None:
        self.moment_ms = 1_000_000
        self.planned: list[tuple[float, Callable[[], None], asyncio.TimerHandle]] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        handle = asyncio.TimerHandle(0, callback, (), loop)
        self.planned.append((self.moment_ms + delay_s * 1000, callback, handle))
        return handle

    def advance(self, ms: int) -> None:
        self.moment_ms += ms
        due = [one for one in self.planned if one[0] <= self.moment_ms]
        self.planned = [one for one in self.planned if one not in due]
        for _, callback, handle in due:
            if not handle.cancelled():
                callback()

    def now_ms(self) -> int:
        return self.moment_ms

    def monotonic_ms(self) -> int:
        return self.moment_ms


class NoRound:
    """A round of ready sockets without work."""

    def begin(self) -> None: ...

    def end(self) -> None: ...


class Listener:
    """A gate, its connections, and a broker that answers every frame with its number."""

    def __init__(self, max_reauth_ms: int = 0) -> None:
        self.timers = Timers()
        self.served = 0
        reports = LoginReports("SASL", self.timers.monotonic_ms)
        self.logins = ListenerLogins(
            Mechanisms(
                {"PLAIN": lambda: PlainServer(USERS.get), "OTHER": lambda: PlainServer(USERS.get)},
                {"PLAIN": max_reauth_ms},
            ),
            1000,
            100,
            reports,
            self.timers.now_ms,
        )
        self.gate = Gate(
            self.logins,
            dispatch=self.dispatch,
            versions_for=lambda connection: versions,
            loop=cast(Any, self.timers),
            clock=self.timers,
        )
        self.loop = asyncio.get_running_loop()
        self.ready = ReadySockets(self.loop, NoRound())
        self.buffers = FrameBuffers(1 << 20)
        self.clients: list[Client] = []

    @property
    def metrics(self) -> LoginMetrics:
        return self.logins.reports.metrics

    def dispatch(self, connection: Connection, data: Frames, position: int, end: int) -> None:
        self.served += 1
        if bytes(data[position : position + 2]) == b"\0\x11":  # As the handler of SaslHandshake.
            request = SaslHandshakeRequest("PLAIN")
            assert connection.login is not None
            response = connection.login.begin_again(request, 1)
            connection.answer(encoded(response))
            return
        connection.answer(b"\0\0\0\1" + bytes([self.served]))

    def client(self) -> "Client":
        self.clients.append(Client(self))
        return self.clients[-1]

    def close(self) -> None:
        for client in self.clients:
            client.connection.close()
            client.peer.close()
        self.ready.close()


def encoded(response: SaslHandshakeResponse) -> bytes:
    from headrace.protocol.framing import encode_response

    return encode_response(7, response.API_KEY, 1, response)


def versions(header: RequestHeader, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    return ApiVersionsResponse()


class Client:
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        ours, self.peer = socket.socketpair()
        ours.setblocking(False)
        self.peer.settimeout(SECONDS_MAX)
        self.connection = Connection(
            ours,
            ("10.0.0.7", 40_000),
            "SASL",
            loop=listener.loop,
            ready=listener.ready,
            buffers=listener.buffers,
            take=lambda *_: False,
            dispatch=listener.dispatch,
            on_close=lambda connection: None,
        )
        listener.gate.admit(self.connection)

    async def send(self, *requests: bytes) -> None:
        """Send bytes, and let the node read them."""
        self.peer.sendall(b"".join(requests))
        await asyncio.sleep(0)
        self._listener.ready._serve()

    def received(self) -> bytes:
        """Return what has arrived; b"" also after the end."""
        self.peer.setblocking(False)
        try:
            return self.peer.recv(1 << 16)
        except BlockingIOError:
            return b""

    async def log_in(self, token: bytes = ADA) -> None:
        await self.send(handshake(), request(SaslAuthenticateRequest(token), 2))

    @property
    def is_closed(self) -> bool:
        return self.connection.closed


def request(message: Message, version: int) -> bytes:
    return encode_request(message, version, 7, "client")


def handshake(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    return request(SaslHandshakeRequest(mechanism), version)


def answer_in(data: bytes, response: type[Message], version: int) -> Message:
    """Decode the last frame."""
    while 4 + int.from_bytes(data[:4]) < len(data):
        data = data[4 + int.from_bytes(data[:4]) :]
    body = memoryview(data)[4:]
    _, position = read_response_header(body, response.API_KEY, version)
    return decode(response, version, body[position:])


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.fixture
async def expiring() -> AsyncIterator[Listener]:
    """A listener whose sessions last ten seconds."""
    made = Listener(max_reauth_ms=10_000)
    yield made
    made.close()


async def test_requests_are_served_after_the_login(listener: Listener) -> None:
    client = listener.client()
    await client.send(request(ApiVersionsRequest("c", "1"), 3))
    await client.log_in()
    client.received()
    await client.send(request(HeartbeatRequest(), 0))
    assert client.received() == b"\0\0\0\1\1"
    assert client.connection.principal == Principal(USER, "ada")
    assert listener.metrics.successes == 1


async def test_requests_right_behind_the_login_are_served(listener: Listener) -> None:
    client = listener.client()
    last = request(SaslAuthenticateRequest(ADA), 2)
    await client.send(handshake(), last, request(HeartbeatRequest(), 0))
    assert client.received().endswith(b"\0\0\0\1\1")


async def test_a_request_before_the_login_closes_the_connection(listener: Listener) -> None:
    client = listener.client()
    await client.send(request(HeartbeatRequest(), 0))
    assert client.is_closed
    assert listener.served == 0


async def test_a_failed_login_is_answered_late(listener: Listener) -> None:
    client = listener.client()
    await client.log_in(WRONG)
    client.received()
    listener.timers.advance(99)
    assert client.received() == b""
    listener.timers.advance(1)
    answer = answer_in(client.received(), SaslAuthenticateResponse, 2)
    assert isinstance(answer, SaslAuthenticateResponse)
    assert answer.error_code == SaslAuthenticationFailed.code
    assert client.is_closed
    assert client.connection.principal is ANONYMOUS
    assert listener.metrics.failures == 1


async def test_nothing_is_served_between_a_failure_and_its_answer(listener: Listener) -> None:
    client = listener.client()
    await client.log_in(WRONG)
    await client.log_in(ADA)
    listener.timers.advance(100)
    assert client.is_closed
    assert (listener.metrics.successes, listener.served) == (0, 0)


async def test_failures_beyond_the_bound_are_answered_at_once(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "WAITING_MAX", 3)
    clients = [listener.client() for _ in range(5)]
    for client in clients:
        await client.log_in(WRONG)
    assert [client.is_closed for client in clients] == [True, True, False, False, False]
    assert len(listener.gate.waiting) == 3


async def test_a_client_that_leaves_does_not_wait(listener: Listener) -> None:
    client = listener.client()
    await client.log_in(WRONG)
    client.connection.close()
    assert not listener.gate.waiting
    listener.timers.advance(100)


@pytest.mark.parametrize("size", [1001, 1 << 19, -1])
async def test_an_oversized_frame_closes_the_connection(listener: Listener, size: int) -> None:
    client = listener.client()
    await client.send(size.to_bytes(4, signed=True) + b"x")
    assert client.is_closed


async def test_an_oversized_frame_that_arrives_whole_closes_the_connection(
    listener: Listener,
) -> None:
    client = listener.client()
    await client.send(request(SaslHandshakeRequest("P" * 1000), 1))
    assert client.is_closed


async def test_large_frames_are_served_after_the_login(listener: Listener) -> None:
    client = listener.client()
    await client.log_in()
    await client.send(request(HeartbeatRequest("g" * 5000), 0))
    assert listener.served == 1


async def test_a_session_that_ends_needs_a_new_login(expiring: Listener) -> None:
    client = expiring.client()
    await client.log_in()
    answer = answer_in(client.received(), SaslAuthenticateResponse, 2)
    assert isinstance(answer, SaslAuthenticateResponse)
    assert answer.session_lifetime_ms == 10_000
    expiring.timers.advance(9999)
    await client.send(request(HeartbeatRequest(), 0))
    assert expiring.served == 1
    expiring.timers.advance(1)
    await client.send(request(HeartbeatRequest(), 0))
    assert client.is_closed
    assert expiring.served == 1
    assert expiring.metrics.connections_expired == 1


async def test_a_session_can_be_renewed_after_its_end(expiring: Listener) -> None:
    client = expiring.client()
    await client.log_in()
    expiring.timers.advance(10_000)
    await client.log_in()
    await client.send(request(HeartbeatRequest(), 0))
    assert expiring.served == 1
    assert (expiring.metrics.successes, expiring.metrics.renewals) == (1, 1)


async def test_a_session_can_be_renewed_before_its_end(expiring: Listener) -> None:
    client = expiring.client()
    await client.log_in()
    expiring.timers.advance(9000)
    await client.log_in()
    expiring.timers.advance(9000)
    await client.send(request(HeartbeatRequest(), 0))
    assert not client.is_closed
    assert expiring.metrics.renewals == 1


async def test_a_renewal_under_another_name_fails(expiring: Listener) -> None:
    client = expiring.client()
    await client.log_in()
    expiring.timers.advance(5000)
    await client.log_in(b"\0bob\0secret")
    expiring.timers.advance(100)
    assert client.is_closed
    assert expiring.metrics.renewal_failures == 1


async def test_a_renewal_by_another_mechanism_fails(expiring: Listener) -> None:
    client = expiring.client()
    await client.log_in()
    expiring.timers.advance(10_000)
    await client.send(handshake("OTHER"), request(SaslAuthenticateRequest(ADA), 2))
    expiring.timers.advance(100)
    assert client.is_closed
    assert expiring.metrics.renewal_failures == 1


async def test_a_session_without_an_end_is_not_renewed(listener: Listener) -> None:
    client = listener.client()
    await client.log_in()
    client.received()
    await client.send(handshake())
    answer = answer_in(client.received(), SaslHandshakeResponse, 1)
    assert isinstance(answer, SaslHandshakeResponse)
    assert answer.error_code == IllegalSaslState.code


async def test_a_session_is_renewed_at_most_once_a_second(expiring: Listener) -> None:
    client = expiring.client()
    await client.log_in()
    for elapsed_ms, error_code in ((5000, 0), (999, IllegalSaslState.code), (1, 0)):
        expiring.timers.advance(elapsed_ms)
        client.received()
        await client.send(handshake())
        answer = answer_in(client.received(), SaslHandshakeResponse, 1)
        assert isinstance(answer, SaslHandshakeResponse)
        assert answer.error_code == error_code
        await client.send(request(SaslAuthenticateRequest(ADA), 2))


async def test_no_other_request_is_served_during_a_renewal(expiring: Listener) -> None:
    client = expiring.client()
    await client.log_in()
    expiring.timers.advance(5000)
    await client.send(handshake(), request(HeartbeatRequest(), 0))
    expiring.timers.advance(100)
    assert client.is_closed
    assert expiring.served == 1  # The handshake.


async def test_timers_of_closed_connections_do_nothing(expiring: Listener) -> None:
    client = expiring.client()
    await client.log_in()
    client.connection.close()
    expiring.timers.advance(10_000)
    assert client.connection.login is None
