"""Logins at a controller listener, by the channel with which nodes reach each other."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from headrace.peers.channel import Channel
from headrace.peers.own_login import OwnLogin
from headrace.peers.unreachable import PeerUnreachable
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.framing import encode_request
from headrace.protocol.message import Message
from headrace.protocol.schemas.api_versions import ApiVersion, ApiVersionsResponse
from headrace.protocol.schemas.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest
from headrace.quorum import listener as listener_module
from headrace.quorum.listener import ControllerListener, ControllerLogins
from headrace.security.principals import USER, Caller, Principal
from headrace.security.sasl import plain
from headrace.security.sasl.authentication import Mechanisms
from headrace.security.sasl.listener import ListenerLogins
from headrace.security.sasl.plain import PlainServer
from headrace.security.sasl.reports import LoginMetrics, LoginReports

NODE = Principal(USER, "node")


def versions(version: int) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[ApiVersion(int(key), 0, 1) for key in (ApiKey.BROKER_HEARTBEAT,)]
    )


class Served(NamedTuple):
    """A listener that demands logins, and the callers whose requests it has served."""

    port: int
    callers: list[Caller]
    metrics: LoginMetrics
    listener: ControllerListener

    def channel(self, password: str = "secret", **options: Any) -> Channel:
        login = OwnLogin("PLAIN", lambda: plain.authenticate("node", password))
        return Channel("127.0.0.1", self.port, "test", login=login, **options)


@asynccontextmanager
async def listener(max_reauth_ms: int = 0) -> AsyncIterator[Served]:
    callers: list[Caller] = []

    async def serve(request: Message, version: int, caller: Caller) -> Message:
        callers.append(caller)
        return BrokerHeartbeatResponse()

    reports = LoginReports("CTL", lambda: 0)
    logins = ListenerLogins(
        Mechanisms(
            {"PLAIN": lambda: PlainServer({"node": "secret"}.get)}, {"PLAIN": max_reauth_ms}
        ),
        1000,
        0,
        reports,
        lambda: 0,
    )
    made = ControllerListener(serve, logins=ControllerLogins({"CTL": logins}, versions))
    sock = socket.create_server(("127.0.0.1", 0))
    await made.listen([sock], ["CTL"])
    yield Served(sock.getsockname()[1], callers, reports.metrics, made)
    made.close()


@pytest.mark.parametrize("negotiates_versions", [True, False])
async def test_a_node_logs_in_before_its_first_request(*, negotiates_versions: bool) -> None:
    async with listener() as served:
        channel = served.channel(negotiates_versions=negotiates_versions)
        await channel.ask(BrokerHeartbeatRequest())
        await channel.ask(BrokerHeartbeatRequest())
        assert served.callers == [Caller(NODE, "127.0.0.1", "test")] * 2
        assert served.metrics.successes == 1
        channel.close()


async def test_a_wrong_password_makes_the_peer_unreachable() -> None:
    async with listener() as served:
        channel = served.channel("wrong")
        with pytest.raises(PeerUnreachable, match="rejects the login of this node"):
            await channel.ask(BrokerHeartbeatRequest())
        assert served.callers == []
        assert served.metrics.failures == 1
        channel.close()


async def test_another_mechanism_makes_the_peer_unreachable() -> None:
    async with listener() as served:
        login = OwnLogin("SCRAM-SHA-256", lambda: plain.authenticate("node", "secret"))
        channel = Channel("127.0.0.1", served.port, "test", login=login)
        with pytest.raises(PeerUnreachable, match="it offers PLAIN, not SCRAM-SHA-256"):
            await channel.ask(BrokerHeartbeatRequest())
        channel.close()


async def test_a_node_without_a_login_is_not_served() -> None:
    async with listener() as served:
        channel = Channel("127.0.0.1", served.port, "test", negotiates_versions=False)
        with pytest.raises(PeerUnreachable, match="was lost"):
            await channel.ask(BrokerHeartbeatRequest())
        assert served.callers == []
        channel.close()


async def test_a_peer_that_does_not_log_in_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SEC-2: strangers would hold connections and memory of a controller."""
    monkeypatch.setattr(listener_module, "_LOGIN_TIMEOUT_S", 0.01)
    async with listener() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()


async def test_a_peer_that_has_logged_in_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listener() as served:
        channel = served.channel()
        await channel.ask(BrokerHeartbeatRequest())
        (connection,) = served.listener._connections
        assert connection._login_timeout is None
        channel.close()


async def test_a_peer_in_its_login_is_not_read_on() -> None:
    """SEC-2: its frames wait in the kernel, not in the memory of a controller."""
    async with listener() as served:
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(encode_request(SaslHandshakeRequest("PLAIN"), 1, 1, "test") * 20)
        async with asyncio.timeout(20):
            while not served.listener._connections:
                await asyncio.sleep(0)
            (connection,) = served.listener._connections
            while not connection._is_paused:
                await asyncio.sleep(0)
        writer.close()


async def test_a_session_is_renewed_before_the_next_request() -> None:
    async with listener(max_reauth_ms=60_000) as served:
        channel = served.channel()
        await channel.connect()
        end_session(channel)
        await channel.ask(BrokerHeartbeatRequest())
        assert (served.metrics.successes, served.metrics.renewals) == (1, 1)
        channel.close()


async def test_a_session_is_not_renewed_twice_in_a_second() -> None:
    async with listener(max_reauth_ms=60_000) as served:
        channel = served.channel()
        await channel.connect()
        end_session(channel)
        await channel.ask(BrokerHeartbeatRequest())
        end_session(channel)
        with pytest.raises(PeerUnreachable):
            await channel.ask(BrokerHeartbeatRequest())
        channel.close()


def end_session(channel: Channel) -> None:
    """Make the channel renew its session with the next request."""
    assert channel._connection is not None
    channel._connection.renewal_s = 0.0


async def test_an_expired_session_serves_no_request() -> None:
    async with listener(max_reauth_ms=60_000) as served:
        channel = served.channel()
        await channel.connect()
        for connection in served.listener._connections:
            assert connection._login is not None
            connection._login._ends_s = 0.0
        with pytest.raises(PeerUnreachable, match="was lost"):
            await channel.ask(BrokerHeartbeatRequest())
        assert served.callers == []
        assert served.metrics.connections_expired == 1
        channel.close()


async def test_an_oversized_frame_before_the_login_ends_the_connection() -> None:
    async with listener() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(encode_request(SaslHandshakeRequest("P" * 2000), 1, 1, "test"))
        assert await reader.read() == b""
        writer.close()
