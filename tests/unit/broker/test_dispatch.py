"""Rounds of gathered requests over real connections: who is answered, and what is not served."""

import asyncio
import errno
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.broker.client_quotas import ClientQuotas
from headrace.broker.connection import Connection
from headrace.broker.dispatch import Dispatcher
from headrace.broker.frame_buffers import Frames
from headrace.broker.produce.shapes import EVERYBODY
from headrace.broker.ready_sockets import ReadySockets
from headrace.errors import OutOfOrderSequenceNumber
from headrace.metadata.image import EMPTY
from headrace.protocol.codec import decode
from headrace.protocol.schemas.produce import PartitionProduceResponse, ProduceResponse
from headrace.quotas.rates import Windows
from headrace.runtime import files
from headrace.security.principals import Principal
from tests.builders.produce_rounds import VERSION, ProduceNode

SECONDS_MAX = 20
LARGE = b"v" * 10_000  # Not worth gathering, so served where it is read.


class Served:
    """The dispatcher of a broker that does nothing but Produce, and its connections."""

    def __init__(self, node: ProduceNode) -> None:
        self.node = node
        broker = SimpleNamespace(
            authorizer=None,
            metrics=node.metrics,
            produce_shapes=node.shapes,
            wake_ups=node.wake_ups,
            clock=node.clock,
            partitions=node.hosted,
            image=EMPTY,
        )
        self.loop = asyncio.get_running_loop()
        self.dispatch: Callable[[Connection, Frames, int, int], None] = Dispatcher(
            cast(Any, broker), node.round
        )
        self.ready = ReadySockets(self.loop, node.round)
        self.clients: list[Client] = []

    def client(self) -> "Client":
        self.clients.append(Client(self))
        return self.clients[-1]

    async def round(self) -> None:
        """Let all that was sent be read, in one round."""
        await asyncio.sleep(0)
        self.ready._serve()

    def close(self) -> None:
        for client in self.clients:
            client.connection.close()
            client.peer.close()
        self.ready.close()


class Client:
    def __init__(self, served: Served) -> None:
        ours, self.peer = socket.socketpair()
        ours.setblocking(False)
        self.peer.settimeout(SECONDS_MAX)
        self._node = served.node
        self.connection = Connection(
            ours,
            ("10.0.0.7", 40_000),
            "PLAINTEXT",
            loop=served.loop,
            ready=served.ready,
            buffers=served.node.buffers,
            take=served.node.round.take,
            dispatch=lambda *frame: served.dispatch(*frame),
            on_close=lambda connection: None,
        )

    def send(self, *values: bytes, acks: int = 1, **fields: Any) -> None:
        frames = [self._node.frame(self.connection, value, acks=acks, **fields) for value in values]
        self.peer.sendall(b"".join(frames))

    def response(self) -> ProduceResponse:
        """Read the next answer as a whole."""
        size = int.from_bytes(self.peer.recv(4, socket.MSG_WAITALL))
        answer = self.peer.recv(size, socket.MSG_WAITALL)
        return decode(ProduceResponse, VERSION, memoryview(answer)[5:])

    def offsets(self, count: int) -> list[int]:
        return [answer.base_offset for answer in self.answers(count)]

    def answers(self, count: int) -> list[PartitionProduceResponse]:
        """Read the next answers; they are sent already, so the read does not block."""
        return [self.response().responses[0].partition_responses[0] for _ in range(count)]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    made = Served(ProduceNode(tmp_path))
    yield made
    made.close()


async def test_gathered_requests_are_answered_when_the_round_ends(served: Served) -> None:
    clients = [served.client() for _ in range(3)]
    for client in clients:
        client.send(b"one", b"two")
    await served.round()
    assert sorted(offset for client in clients for offset in client.offsets(2)) == [*range(1, 7)]
    assert all(client.connection.gathered == 0 for client in clients)


async def test_a_request_that_is_not_gathered_waits_for_earlier_ones(served: Served) -> None:
    clients = [served.client() for _ in range(2)]
    clients[0].send(b"small", LARGE, b"small again")
    clients[1].send(b"of another")
    await served.round()
    stored = served.node.values()
    assert [stored[offset - 1] for offset in clients[0].offsets(3)] == [
        b"small",
        LARGE,
        b"small again",
    ]


async def test_a_client_that_disconnects_does_not_delay_others(served: Served) -> None:
    gone, there = served.client(), served.client()
    gone.send(b"farewell")
    there.send(b"stays")
    gone.peer.close()
    await served.round()
    assert there.offsets(1)
    assert sorted(map(str, served.node.values())) == sorted(map(str, [b"farewell", b"stays"]))
    await served.round()
    assert gone.connection.closed


async def test_a_connection_that_is_closed_when_its_round_is_settled_is_served_no_further(
    served: Served,
) -> None:
    """The close reports an error to acks=0; requests after the error must not be stored."""
    client, other = served.client(), served.client()
    client.send(b"refused", LARGE, acks=0)
    other.send(b"later")
    with disk_that_refuses(b"refused"):
        await served.round()
    assert client.connection.closed
    assert other.offsets(1) == [1]
    assert served.node.values() == [b"later"]


@contextmanager
def disk_that_refuses(value: bytes) -> Iterator[None]:
    real = files.pwrite

    def pwrite(fd: int, data: Any, position: int) -> int:
        if value in bytes(data):
            raise OSError(errno.ENOSPC, "the disk refuses")
        return real(fd, data, position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "pwrite", pwrite)
        yield


UNREADABLE = {
    "METADATA v9 cannot be read: it ended too early": struct.pack(">hhihB", 3, 9, 1, -1, 0),
    "METADATA v1 cannot be read: it ended too early": struct.pack(">hhihh", 3, 1, 1, -1, 0),
    "METADATA v1 cannot be read: a text in it is not UTF-8": (
        struct.pack(">hhihih", 3, 1, 1, -1, 1, 1) + b"\xff"
    ),
    "PRODUCE v9 cannot be read: it ended too early": struct.pack(">hhihBB", 0, 9, 1, -1, 0, 0),
    "METADATA v9 cannot be read: a client id of 99 bytes is announced and not there": struct.pack(
        ">hhih", 3, 9, 1, 99
    ),
    "FETCH v12 cannot be read: it ended too early": struct.pack(">hhi", 1, 12, 1),
    "API 9999 v0 is not served here": struct.pack(">hhih", 9_999, 0, 1, -1),
    "a request of 3 bytes cannot be read: it ended too early": bytes(3),
}


@pytest.mark.parametrize("told", UNREADABLE)
async def test_the_log_contains_the_client_the_request_and_the_error(
    served: Served, caplog: pytest.LogCaptureFixture, told: str
) -> None:
    """OPS-1: by host and port, for many clients may share a host."""
    client = served.client()
    client.peer.sendall(struct.pack(">i", len(UNREADABLE[told])) + UNREADABLE[told])
    await served.round()
    assert client.connection.closed
    (record,) = caplog.records
    assert record.getMessage() == "invalid request, connection closed"
    assert vars(record)["connection"] == "10.0.0.7:40000"
    assert vars(record)["error"] == told


async def test_a_fault_in_one_connection_leaves_the_round_to_the_others(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    clients = [served.client() for _ in range(5)]
    for client in clients:
        client.send(b"v")
    bad = clients[2].connection
    bad._take = lambda *_: 1 // 0 > 0  # As a bug of ours would do it.
    await served.round()
    assert bad.closed
    answered = [client.offsets(1)[0] for client in clients if client.connection is not bad]
    assert sorted(answered) == [1, 2, 3, 4]
    assert "ZeroDivisionError" in caplog.text


async def test_an_idempotent_producer_is_served_by_its_shape(served: Served) -> None:
    """A batch out of order is refused where it is, and the ones after it are served."""
    client = served.client()
    codes = []
    for sequence in (0, 5, 1, 1):
        client.send(b"%d" % sequence, producer_id=7, producer_epoch=0, base_sequence=sequence)
        await served.round()
        (answer,) = client.answers(1)
        codes.append((answer.error_code, answer.base_offset))
    assert codes == [(0, 1), (OutOfOrderSequenceNumber.code, -1), (0, 2), (0, 2)]
    assert served.node.values() == [b"0", b"1"]


async def test_a_refusal_without_acknowledgement_closes_the_connection(served: Served) -> None:
    client = served.client()
    client.send(b"v", acks=0, producer_id=7, producer_epoch=0, base_sequence=5)
    await served.round()
    assert not client.connection.closed  # A producer that is new here may begin anywhere.
    client.send(b"v", acks=0, producer_id=7, producer_epoch=0, base_sequence=9)
    await served.round()
    assert client.connection.closed


def quotas_of(served: Served, rate: float) -> ClientQuotas:
    """Quotas of every user, on a clock that does not advance."""
    quotas = ClientQuotas(served.node.clock, Windows())
    quotas.follow({(("user", None),): {"producer_byte_rate": rate}})
    cast(Dispatcher, served.dispatch).quotas = quotas
    return quotas


async def test_a_client_with_a_quota_is_throttled_and_muted(served: Served) -> None:
    """QUO-1."""
    quotas_of(served, rate=1.0)
    client = served.client()
    client.send(b"one")
    client.connection.produce_shape = None  # As after a change of quotas.
    await served.round()
    assert client.response().throttle_time_ms > 60_000
    assert client.connection.is_waiting
    assert client.connection.produce_shape is None


async def test_a_client_with_a_quota_is_served_without_shapes(served: Served) -> None:
    """Or its bytes would not be counted."""
    quotas_of(served, rate=1e9)
    client = served.client()
    client.send(b"one")
    client.connection.produce_shape = None
    await served.round()
    assert client.response().throttle_time_ms == 0
    assert client.connection.produce_shape is None


async def test_users_have_shapes_of_their_own(served: Served) -> None:
    """Or a user with a quota would be served by the shape of one without."""
    callers = set()
    for name in ("ada", "bob"):
        client = served.client()
        client.connection.principal = Principal("User", name)
        client.send(b"one")
        client.connection.produce_shape = None
        await served.round()
        callers.add(cast(Any, client.connection).produce_shape.caller)
    assert len(callers - {EVERYBODY}) == 2


async def test_a_client_without_acks_is_muted_without_an_answer(served: Served) -> None:
    quotas = quotas_of(served, rate=1.0)
    client = served.client()
    client.send(b"one", acks=0)
    client.connection.produce_shape = None
    await served.round()
    assert client.connection.is_waiting
    (figures,) = quotas.produce.figures(served.node.clock.monotonic_ms(), 10)
    assert figures.throttle_ms > 60_000
