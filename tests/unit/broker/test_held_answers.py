"""Rounds of ready sockets: answers that are held until all requests have been read."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from struct import pack

import pytest

from headrace.broker.connection import Connection
from headrace.broker.frame_buffers import FrameBuffers, Frames
from headrace.broker.ready_sockets import ReadySockets

Serve = Callable[[Connection, bytes], None]


class NoRound:
    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass


class Host:
    """Two clients or more of a server whose handler the test brings."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.ready = ReadySockets(self.loop, NoRound())
        self.buffers = FrameBuffers(1 << 20)
        self.serve: Serve = lambda connection, _: connection.answer_in_round(b"fine")
        self.connections: list[Connection] = []
        self.peers: list[socket.socket] = []

    def connect(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        made = Connection(
            ours,
            ("10.0.0.7", 40_000),
            "PLAINTEXT",
            loop=self.loop,
            ready=self.ready,
            buffers=self.buffers,
            take=lambda *_: False,
            dispatch=self._dispatch,
            on_close=lambda _: None,
        )
        self.connections.append(made)
        self.peers.append(theirs)
        return theirs

    def turn(self) -> None:
        """Let the loop see what is ready, once."""
        for _ in range(2):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        for peer in self.peers:
            peer.close()
        self.ready.close()
        self.loop.close()

    def _dispatch(self, connection: Connection, data: Frames, position: int, end: int) -> None:
        self.serve(connection, bytes(data[position:end]))


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.close()


def framed(*bodies: bytes) -> bytes:
    return b"".join(pack(">i", len(body)) + body for body in bodies)


def received(peer: socket.socket) -> bytes:
    try:
        return peer.recv(1 << 20)
    except BlockingIOError:
        return b""


def test_answers_leave_when_all_requests_of_the_round_have_been_read(host: Host) -> None:
    peers = [host.connect() for _ in range(3)]
    there_before: list[list[bytes]] = []

    def serve(connection: Connection, _body: bytes) -> None:
        there_before.append([received(peer) for peer in peers])
        connection.answer_in_round(b"fine")

    host.serve = serve
    for peer in peers:
        peer.send(framed(b"ask"))
    host.turn()
    assert there_before == [[b"", b"", b""]] * 3
    assert [received(peer) for peer in peers] == [b"fine"] * 3


def test_a_single_request_is_answered_without_a_round(host: Host) -> None:
    peer = host.connect()
    host.connect()
    peer.send(framed(b"ask", b"ask"))
    host.turn()
    assert received(peer) == b"finefine"


def test_answers_of_one_client_stay_in_order(host: Host) -> None:
    """Held answers and others alike."""
    one, two = host.connect(), host.connect()

    def serve(connection: Connection, body: bytes) -> None:
        (connection.answer_in_round if body == b"a" else connection.answer)(body)

    host.serve = serve
    one.send(framed(b"a", b"b", b"a", b"c"))
    two.send(framed(b"c", b"a"))
    host.turn()
    assert (received(one), received(two)) == (b"abac", b"ca")


def test_a_client_that_had_to_wait_continues_after_the_round(host: Host) -> None:
    """Its request is finished within a round, and what it sent meanwhile is served there."""
    one, two, three = host.connect(), host.connect(), host.connect()

    def serve(connection: Connection, body: bytes) -> None:
        if body == b"wait":
            connection.wait()
            return
        if body == b"end":
            host.connections[0].finish([b"ended "])
        connection.answer_in_round(body)

    host.serve = serve
    one.send(framed(b"wait", b"later"))
    host.turn()
    one.send(framed(b"last"))
    host.turn()
    two.send(framed(b"end"))
    three.send(framed(b"other"))
    host.turn()
    host.turn()
    assert (received(two), received(three)) == (b"end", b"other")
    assert received(one) == b"ended laterlast"


def test_nothing_overtakes_a_request_that_waits_behind_a_held_answer(host: Host) -> None:
    one, two, three = host.connect(), host.connect(), host.connect()

    def serve(connection: Connection, body: bytes) -> None:
        if body == b"wait":
            connection.wait()
            return
        if body == b"end":
            host.connections[0].finish([b"ended "])
        connection.answer_in_round(body)

    host.serve = serve
    one.send(framed(b"wait", b"held", b"wait", b"last"))
    host.turn()
    one.send(framed(b"behind"))
    host.turn()
    two.send(framed(b"end"))
    three.send(framed(b"other"))
    host.turn()
    host.turn()
    assert received(one) == b"ended held"
    host.connections[0].finish([b" ended "])
    host.turn()
    assert received(one) == b" ended lastbehind"


def test_an_answer_that_the_socket_does_not_take_whole_is_sent_on(host: Host) -> None:
    one, two = host.connect(), host.connect()
    large = b"x" * (1 << 20)
    host.serve = lambda connection, _: connection.answer_in_round(large)
    one.send(framed(b"ask"))
    two.send(framed(b"ask"))
    sizes = [0, 0]
    for _ in range(200):
        host.turn()
        sizes = [size + len(received(peer)) for size, peer in zip(sizes, (one, two), strict=True)]
        if sizes == [len(large)] * 2:
            break
    assert sizes == [len(large)] * 2


def test_a_connection_that_is_closed_during_the_round_affects_no_other(host: Host) -> None:
    one, two = host.connect(), host.connect()

    def serve(connection: Connection, _body: bytes) -> None:
        connection.answer_in_round(b"fine")
        if connection is host.connections[0]:
            connection.close()

    host.serve = serve
    one.send(framed(b"ask"))
    two.send(framed(b"ask"))
    host.turn()
    assert received(two) == b"fine"
    assert one.recv(10) == b""
