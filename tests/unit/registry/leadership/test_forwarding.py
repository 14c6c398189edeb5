"""Requests of clients as the leader receives them."""

import http.client
import socket

import pytest

from headrace.registry.errors import ForwardingFailed
from headrace.registry.leadership import forwarding
from headrace.registry.leadership.election import Identity
from headrace.registry.leadership.forwarding import Forwarded, Forwarder, forwardable_headers
from headrace.registry.settings import RegistrySettings

LEADER = Identity("leader", 8081)
REQUEST = Forwarded("POST", "/subjects/a/versions", {}, b"{}")


class ConnectionOver(http.client.HTTPConnection):
    """An HTTP connection over one end of a pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__("leader")
        self._end = end

    def connect(self) -> None:
        self.sock = self._end


class ForwarderTo(Forwarder):
    """A forwarder whose leader sends these bytes and closes the connection."""

    def __init__(self, answer: bytes) -> None:
        super().__init__(RegistrySettings())
        self._answer = answer

    def _connection(self, leader: Identity) -> http.client.HTTPConnection:
        ours, theirs = socket.socketpair()
        theirs.sendall(self._answer)
        theirs.shutdown(socket.SHUT_WR)
        self._theirs = theirs
        return ConnectionOver(ours)

    def close(self) -> None:
        super().close()
        self._theirs.close()


def test_only_headers_that_the_leader_needs_are_forwarded() -> None:
    given = {"content-type": "application/json", "cookie": "x", "authorization": "Bearer t"}
    assert forwardable_headers(given) == {
        "content-type": "application/json",
        "authorization": "Bearer t",
        "x-forward": "true",
    }


async def test_an_answer_that_breaks_off_is_not_taken_for_whole() -> None:
    forwarder = ForwarderTo(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")
    with pytest.raises(ForwardingFailed, match="7 more expected"):
        await forwarder.send(LEADER, REQUEST)
    forwarder.close()


async def test_an_answer_that_is_too_long_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_ANSWER_BYTES_MAX", 1)
    forwarder = ForwarderTo(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    with pytest.raises(ForwardingFailed, match="more than"):
        await forwarder.send(LEADER, REQUEST)
    forwarder.close()
