"""One connection on a pair of sockets: frames, order, waiting, and back pressure."""

import asyncio
import itertools
import os
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from headrace.broker import connection as connection_module
from headrace.broker.connection import Connection, Part
from headrace.broker.frame_buffers import FrameBuffers, Frames
from headrace.broker.ready_sockets import ReadySockets

REQUEST_BYTES_MAX = 10 << 20


class NoRound:
    """Nothing is gathered."""

    def begin(self) -> None: ...

    def end(self) -> None: ...


class Peer:
    """A connection under test, what its handler saw, and the client's end of the socket."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        ready: ReadySockets,
        pair: tuple[socket.socket, socket.socket],
    ) -> None:
        self.loop = loop
        self.client, server = pair
        self.client.setblocking(False)
        server.setblocking(False)
        self.frames: list[bytes] = []
        self.serve: Callable[[Connection, bytes], None] = lambda connection, frame: (
            connection.answer(frame)
        )
        self.was_closed = False
        self.connection = Connection(
            server,
            ("127.0.0.1", 1),
            "PLAINTEXT",
            loop=loop,
            ready=ready,
            buffers=FrameBuffers(REQUEST_BYTES_MAX),
            take=lambda *_: False,
            dispatch=self._dispatch,
            on_close=self._closed,
        )

    def _dispatch(self, connection: Connection, data: Frames, start: int, end: int) -> None:
        frame = bytes(data[start:end])
        self.frames.append(frame)
        self.serve(connection, frame)

    def _closed(self, connection: Connection) -> None:
        self.was_closed = True

    def send(self, data: bytes) -> None:
        """Send all of it, with the loop running whenever the socket is full."""
        view = memoryview(data)
        while view:
            try:
                view = view[self.client.send(view) :]
            except BlockingIOError:
                self.turn()
        self.turn()

    def turn(self, turns: int = 5) -> None:
        for _ in range(turns):
            self.loop.run_until_complete(asyncio.sleep(0))

    def received(self) -> bytes:
        out = bytearray()
        try:
            while data := self.client.recv(1 << 20):
                out += data
                self.turn()
        except BlockingIOError:
            pass
        return bytes(out)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a TCP connection, which unlike `socketpair` has half-closed and reset states."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        return client, listening.accept()[0]


def reset(client: socket.socket) -> None:
    """Close at once by a reset, which the other end notices."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


MakePeer = Callable[[tuple[socket.socket, socket.socket]], Peer]


@pytest.fixture
def make_peer() -> Iterator[MakePeer]:
    """Connections that share a loop, and a set of ready sockets."""
    loop = asyncio.new_event_loop()
    ready = ReadySockets(loop, NoRound())
    made: list[Peer] = []

    def make(pair: tuple[socket.socket, socket.socket]) -> Peer:
        made.append(Peer(loop, ready, pair))
        return made[-1]

    yield make
    for peer in made:
        peer.client.close()
        peer.connection.close()
    ready.close()
    loop.close()


@pytest.fixture
def peer(make_peer: MakePeer) -> Peer:
    return make_peer(socket.socketpair())


@pytest.fixture
def tcp_peer(make_peer: MakePeer) -> Peer:
    return make_peer(tcp_pair())


def waits_if_told(connection: Connection, frame: bytes) -> None:
    if frame.startswith(b"wait"):
        connection.wait()
    else:
        connection.answer(frame)


@pytest.mark.parametrize("size", [1, 1000, 40_000, 300_000, 3_000_000])
def test_frames_of_any_size_arrive_whole(peer: Peer, size: int) -> None:
    peer.serve = lambda connection, frame: None
    body = os.urandom(size)
    peer.send(framed(body))
    peer.turn(20)
    assert peer.frames == [body]


def test_frames_byte_by_byte(peer: Peer) -> None:
    for byte in framed(b"first") + framed(b"second"):
        peer.send(bytes([byte]))
    assert peer.frames == [b"first", b"second"]


def test_pipelined_frames_are_answered_in_order(peer: Peer) -> None:
    bodies = [b"request %d" % n for n in range(500)]
    peer.send(b"".join(map(framed, bodies)))
    assert peer.received() == b"".join(bodies)
    assert peer.frames == bodies


def test_nothing_is_served_while_a_request_waits(peer: Peer) -> None:
    peer.serve = waits_if_told
    peer.send(framed(b"one") + framed(b"wait") + framed(b"two"))
    peer.send(framed(b"three") * 3)
    assert peer.frames == [b"one", b"wait"]
    peer.connection.finish([b"waited"])
    peer.turn()
    assert peer.received() == b"onewaitedtwothreethreethree"


def test_bytes_beyond_the_waiting_request_stay_in_the_kernel(peer: Peer) -> None:
    peer.serve = lambda connection, frame: connection.wait()
    peer.send(framed(b"wait"))
    sent = 0
    try:
        while sent < 50 << 20:
            sent += peer.client.send(bytes(1 << 16))
            peer.turn(1)
    except BlockingIOError:
        pass
    assert 0 < sent < 50 << 20


def test_a_client_that_is_lost_while_it_waits_is_noticed(tcp_peer: Peer) -> None:
    abandoned = []
    tcp_peer.serve = lambda connection, frame: connection.wait(lambda: abandoned.append(frame))
    tcp_peer.send(framed(b"wait"))
    reset(tcp_peer.client)
    tcp_peer.turn()
    assert abandoned == [b"wait"]
    assert tcp_peer.was_closed


LEAVE: dict[str, Callable[[socket.socket], None]] = {
    "sends no more": lambda client: client.shutdown(socket.SHUT_WR),
    "closes": lambda client: client.close(),
    "resets": reset,
}


@pytest.mark.parametrize("leave", LEAVE.values(), ids=LEAVE.keys())
def test_all_that_a_client_sent_before_it_left_is_served(
    tcp_peer: Peer, leave: Callable[[socket.socket], None]
) -> None:
    """PRD-3: behind a request that waits, some of it read already and some of it not."""
    tcp_peer.serve = waits_if_told
    tcp_peer.send(framed(b"wait 1") + framed(b"read already"))
    tcp_peer.send(framed(b"not read") + framed(b"wait 2") + framed(b"last"))
    leave(tcp_peer.client)
    tcp_peer.turn()
    assert tcp_peer.frames == [b"wait 1"]
    for _ in range(2):
        assert not tcp_peer.was_closed
        tcp_peer.connection.finish([b"waited"])
        tcp_peer.turn()
    assert tcp_peer.frames == [b"wait 1", b"read already", b"not read", b"wait 2", b"last"]
    assert tcp_peer.was_closed


def test_a_half_closed_client_gets_all_its_answers(tcp_peer: Peer) -> None:
    tcp_peer.serve = waits_if_told
    tcp_peer.send(framed(b"wait") + framed(b"one"))
    tcp_peer.send(framed(b"two"))
    tcp_peer.client.shutdown(socket.SHUT_WR)
    tcp_peer.turn()
    tcp_peer.connection.finish([b"waited"])
    tcp_peer.turn()
    assert tcp_peer.received() == b"waitedonetwo"
    assert tcp_peer.was_closed


def test_a_lost_client_does_not_wake_the_loop_again(
    tcp_peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests behind one that waits keep its connection; the loop must not spin on it."""
    tcp_peer.serve = waits_if_told
    tcp_peer.send(framed(b"wait") + framed(b"next"))
    reset(tcp_peer.client)
    tcp_peer.turn()
    calls: list[int] = []
    monkeypatch.setattr(connection_module, "_has_lost_its_peer", calls.append)
    tcp_peer.turn(20)
    assert calls == []


def test_unreceived_answers_do_not_stop_the_requests_behind_them(tcp_peer: Peer) -> None:
    """The flush in the middle finds the peer gone."""
    frames = [b"request %d" % number for number in range(100)]
    tcp_peer.client.sendall(b"".join(map(framed, frames)))
    reset(tcp_peer.client)
    tcp_peer.turn()
    assert tcp_peer.frames == frames
    assert tcp_peer.was_closed


def test_a_slow_reader_is_not_read_from_until_it_has_its_answer(peer: Peer) -> None:
    answer = os.urandom(8 << 20)
    peer.serve = lambda connection, frame: connection.answer(answer if frame == b"big" else frame)
    peer.send(framed(b"big"))
    peer.send(framed(b"next"))
    assert peer.frames == [b"big"]
    assert peer.received() == answer + b"next"


class FileSlice:
    """A part of a file, as a log gives it."""

    def __init__(self, fd: int, position: int, size: int) -> None:
        self.fd, self.position, self.size = fd, position, size

    def fileno(self) -> int:
        return self.fd


def test_slices_of_files_are_sent_between_the_bytes(peer: Peer) -> None:
    content = os.urandom(5 << 20)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        fd = file.fileno()
        parts: list[Part] = [
            b"head",
            FileSlice(fd, 10, 3 << 20),
            b"middle",
            FileSlice(fd, 0, 7),
            b"end",
        ]
        peer.serve = lambda connection, frame: connection.answer_parts(parts)
        peer.send(framed(b"fetch"))
        expected = b"head" + content[10 : 10 + (3 << 20)] + b"middle" + content[:7] + b"end"
        assert peer.received() == expected


@pytest.mark.parametrize(
    "opening", [struct.pack(">i", -1), struct.pack(">i", 1 << 30), b"GET / HT"]
)
def test_an_impossible_size_closes_the_connection(peer: Peer, opening: bytes) -> None:
    peer.send(opening)
    assert peer.was_closed
    assert peer.frames == []


def test_a_half_closed_client_that_waits_for_nothing_is_closed(peer: Peer) -> None:
    peer.client.shutdown(socket.SHUT_WR)
    peer.turn()
    assert peer.was_closed


def test_gathered_answers_leave_together_behind_those_before_them(peer: Peer) -> None:
    def serve(connection: Connection, frame: bytes) -> None:
        if frame == b"now":
            connection.answer(b"now")
        else:
            connection.gathered += 1

    peer.serve = serve
    peer.send(framed(b"now") + framed(b"later") * 3)
    assert peer.received() == b"now"
    peer.connection.deliver(b"first")
    peer.connection.deliver(None)
    assert peer.received() == b""
    peer.connection.deliver(b"third")
    assert peer.received() == b"firstthird"


def test_bytes_kept_in_the_scratch_buffer_are_not_overwritten(peer: Peer) -> None:
    """Its bytes stay where they are until the round ends; the next client's go behind them."""
    kept: list[memoryview] = []

    def dispatch(connection: Connection, data: Frames, start: int, end: int) -> None:
        kept.append(memoryview(data)[start:end])
        connection.buffers.keep(end)

    peer.connection._dispatch = dispatch
    requests = [b"request %d" % number for number in range(5)]
    for request in requests:
        peer.send(framed(request)[:6])
        peer.send(framed(request)[6:])
    assert [bytes(frame) for frame in kept] == requests
    peer.connection.buffers.vacate()
    peer.send(framed(b"R"))
    assert bytes(kept[0]) == b"Request 0"


def test_a_gathered_answer_that_the_socket_does_not_take_is_sent_later(peer: Peer) -> None:
    peer.serve = lambda connection, frame: setattr(connection, "gathered", 1)
    peer.send(framed(b"big"))
    answer = os.urandom(8 << 20)
    peer.connection.deliver(answer)
    assert peer.received() == answer


def test_a_client_that_left_before_its_gathered_answer_is_closed(peer: Peer) -> None:
    peer.serve = lambda connection, frame: setattr(connection, "gathered", 2)
    peer.send(framed(b"one"))
    peer.client.close()
    peer.connection.deliver(b"one")
    peer.connection.deliver(b"two")
    peer.turn()
    assert peer.was_closed


class Ticking:
    """A clock by which every reading takes half a turn."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += connection_module._TURN_NS // 2
        return self.now_ns


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn is over after a few frames."""
    monkeypatch.setattr(connection_module, "perf_counter_ns", Ticking())


@pytest.mark.usefixtures("short_turns")
def test_clients_with_many_requests_are_served_by_turns(make_peer: MakePeer) -> None:
    served: list[bytes] = []
    peers = [make_peer(socket.socketpair()) for _ in range(3)]
    for name, peer in zip((b"a", b"b", b"c"), peers, strict=True):
        peer.serve = lambda connection, frame: served.append(frame)
        peer.client.send(framed(name) * (2 if name == b"c" else 12))
    peers[0].turn(20)
    assert sorted(served) == [b"a"] * 12 + [b"b"] * 12 + [b"c"] * 2
    turns = ["".join(run) for run in runs(served)]
    assert max(map(len, turns)) < 6
    assert served.index(b"c") < 12


def runs(served: list[bytes]) -> list[list[str]]:
    return [[one.decode() for one in run] for _, run in itertools.groupby(served)]


@pytest.mark.usefixtures("short_turns")
def test_requests_over_many_turns_are_answered_in_order(peer: Peer) -> None:
    peer.serve = waits_if_told
    bodies = [b"request %d" % n for n in range(200)]
    peer.client.sendall(b"".join(map(framed, bodies)) + framed(b"wait")[:6])
    peer.turn()
    peer.client.sendall(framed(b"wait")[6:] + framed(b"last"))
    peer.turn(300)
    peer.connection.finish([b"waited"])
    peer.turn()
    assert peer.received() == b"".join(bodies) + b"waitedlast"


@pytest.mark.usefixtures("short_turns")
@pytest.mark.parametrize("leave", LEAVE.values(), ids=LEAVE.keys())
def test_a_client_that_leaves_before_its_next_turn_is_served_to_the_end(
    tcp_peer: Peer, leave: Callable[[socket.socket], None]
) -> None:
    bodies = [b"request %d" % n for n in range(100)]
    tcp_peer.client.sendall(b"".join(map(framed, bodies)))
    tcp_peer.turn(2)
    leave(tcp_peer.client)
    tcp_peer.turn(200)
    assert tcp_peer.frames == bodies
    assert tcp_peer.was_closed


@pytest.mark.usefixtures("short_turns")
def test_a_client_that_reads_slowly_and_sends_much_loses_nothing(peer: Peer) -> None:
    """Its turn may come while its answers are stuck, and the other way round."""
    answer = os.urandom(100_000)
    peer.serve = lambda connection, frame: connection.answer(answer)
    peer.send(framed(b"x") * 60)
    peer.turn(30)
    assert len(peer.frames) < 60
    assert peer.received() == answer * 60


@pytest.mark.usefixtures("short_turns")
def test_a_closed_connection_has_no_more_turns(peer: Peer) -> None:
    peer.client.sendall(framed(b"x") * 60)
    peer.turn(2)
    peer.connection.close()
    served = len(peer.frames)
    peer.turn(50)
    assert len(peer.frames) == served < 60


class Rounds:
    """Notes when rounds begin and end."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def begin(self) -> None:
        self.events.append("begin")

    def end(self) -> None:
        self.events.append("end")


def ready_pair(count: int) -> list[tuple[socket.socket, socket.socket]]:
    pairs = [socket.socketpair() for _ in range(count)]
    for client, _server in pairs:
        client.send(b"x")
    return pairs


def test_all_ready_sockets_are_served_in_one_round() -> None:
    loop, rounds = asyncio.new_event_loop(), Rounds()
    ready, pairs = ReadySockets(loop, rounds), ready_pair(20)

    def read(server: socket.socket) -> None:
        server.recv(1)
        rounds.events.append("read")

    for _client, server in pairs:
        ready.add(server.fileno(), partial(read, server))
    for _ in range(5):
        loop.run_until_complete(asyncio.sleep(0))
    assert rounds.events == ["begin", *["read"] * 20, "end"]
    ready.close()
    loop.close()
    for one in itertools.chain(*pairs):
        one.close()


def test_a_socket_that_is_ready_alone_needs_no_round() -> None:
    loop, rounds = asyncio.new_event_loop(), Rounds()
    ready, pairs = ReadySockets(loop, rounds), ready_pair(1)
    ((client, server),) = pairs
    ready.add(server.fileno(), lambda: rounds.events.append(str(server.recv(9))))
    for _ in range(5):
        loop.run_until_complete(asyncio.sleep(0))
    assert rounds.events == [str(b"x")]
    ready.close()
    loop.close()
    client.close()
    server.close()


def test_a_socket_that_is_closed_by_another_of_its_round_is_left_alone() -> None:
    loop, rounds = asyncio.new_event_loop(), Rounds()
    ready, pairs = ReadySockets(loop, rounds), ready_pair(2)
    servers = {server.fileno(): server for _client, server in pairs}
    served: list[int] = []

    def close_both(fd: int) -> None:
        served.append(fd)
        for other in servers:
            ready.remove(other)
            servers[other].close()

    for fd in servers:
        ready.add(fd, partial(close_both, fd))
    for _ in range(5):
        loop.run_until_complete(asyncio.sleep(0))
    assert len(served) == 1
    ready.close()
    loop.close()
    for client, _server in pairs:
        client.close()
