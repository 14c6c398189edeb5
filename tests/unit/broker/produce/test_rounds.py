"""Gathered requests are written once per partition and answered in the order of arrival."""

import errno
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.connection import Connection
from headrace.errors import InvalidTimestamp
from headrace.protocol.batches import records_of
from headrace.protocol.codec import decode
from headrace.protocol.schemas.produce import PartitionProduceResponse, ProduceResponse
from headrace.replication.metrics import TopicMetrics
from headrace.runtime import files
from tests.builders.failing_disk import failing_writes
from tests.builders.logs import NOW, batch_of
from tests.builders.produce_rounds import VERSION, ProduceNode, frame_of

STORAGE_ERROR, UNKNOWN_SERVER_ERROR = 56, -1


class Client:
    """Replaces a connection: decodes its answers as a client does."""

    def __init__(self) -> None:
        self.produce_shape: Any = None
        self.gathered = self.requests = self.spent_ns = 0
        self.stashed_ns = 0
        self.was_closed = False
        self.answers: list[tuple[int, PartitionProduceResponse]] = []
        self.silently = 0

    def deliver(self, answer: bytes | None) -> None:
        self.gathered -= 1
        if not answer:
            self.silently += 1
            return
        size, correlation_id = struct.unpack_from(">ii", answer)
        assert size == len(answer) - 4
        response = decode(ProduceResponse, VERSION, memoryview(answer)[9:])
        self.answers.append((correlation_id, response.responses[0].partition_responses[0]))

    def answer(self, data: bytes) -> None:
        """Take the answer to a request that was appended at once."""
        self.gathered += 1
        self.deliver(data)

    def close(self) -> None:
        self.was_closed = True

    @property
    def closed(self) -> bool:
        return self.was_closed

    fail = close

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Correlation id and base offset of every answer."""
        return [(number, answer.base_offset) for number, answer in self.answers]


@pytest.fixture
def node(tmp_path: Path) -> ProduceNode:
    return ProduceNode(tmp_path)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the writes that reached the disk."""
    sizes: list[int] = []
    real = files.pwrite

    def pwrite(fd: int, data: Any, position: int) -> int:
        sizes.append(len(data))
        return real(fd, data, position)

    monkeypatch.setattr(files, "pwrite", pwrite)
    return sizes


def test_a_round_writes_once_per_partition(node: ProduceNode, writes: list[int]) -> None:
    clients = [Client() for _ in range(30)]
    node.round.begin()
    for number, client in enumerate(clients):
        assert node.take(client, b"%d" % number, partition=number % 3)
    assert writes == []
    assert [client.answers for client in clients] == [[]] * 30
    node.round.end()
    assert len(writes) == 3
    assert node.values(1) == [b"%d" % number for number in range(1, 30, 3)]
    assert [client.offsets for client in clients] == [
        [(number + 1, number // 3 + 1)] for number in range(30)
    ]


def test_a_clients_answers_leave_in_its_order_across_partitions(node: ProduceNode) -> None:
    other, client = Client(), Client()
    node.round.begin()
    node.take(other, b"of another", partition=2)
    for partition in (0, 1, 2, 0):
        node.take(client, b"mine", partition=partition)
    node.round.end()
    assert client.offsets == [(2, 1), (3, 1), (4, 2), (5, 2)]
    assert client.gathered == other.gathered == 0


def test_a_record_is_invisible_until_it_is_written(node: ProduceNode) -> None:
    log = node.partitions[0].log
    assert log is not None
    node.round.begin()
    node.take(Client(), b"v")
    assert (log.log_end_offset, log.high_watermark) == (1, 1)
    node.round.end()
    assert (log.log_end_offset, log.high_watermark) == (2, 2)


def test_outside_a_round_a_request_is_appended_at_once(node: ProduceNode) -> None:
    client = Client()
    assert node.take(client, b"v")
    assert client.gathered == 0
    assert client.offsets == [(1, 1)]
    assert node.values() == [b"v"]


def test_more_or_less_than_one_frame_is_not_taken(node: ProduceNode) -> None:
    client = Client()
    node.round.begin()
    node.take(client, b"v")
    frame = frame_of(batch_of(b"v"), 0, 1, 5)
    for data in (frame + frame, frame + b"\0", frame[:-1]):
        shape = client.produce_shape
        assert not node.round.take(cast(Connection, client), shape, data, 0, len(data))


def test_a_length_in_more_bytes_than_needed_is_not_recognised(node: ProduceNode) -> None:
    """The frame is as long as one with a batch in it, and the batch would lie behind its end."""
    client = Client()
    node.round.begin()
    node.take(client, b"v")
    shape = client.produce_shape
    opening = bytes(frame_of(batch_of(b"v"), 0, 1, 5)[4 : 4 + shape.prefix_size])
    body = opening + b"\x82" + b"\x80" * 80 + b"\0" + b"." + b"\0\0\0"
    frame = bytearray(struct.pack(">i", len(body)) + body)
    assert not node.round.take(cast(Connection, client), shape, frame, 0, len(frame))


def test_requests_that_wait_for_records_are_woken_once(node: ProduceNode) -> None:
    waiting = node.partitions[0]
    waiting.waiters[cast(Any, object())] = None
    node.round.begin()
    for partition in (0, 1, 0):
        node.take(Client(), b"v", partition=partition)
    node.round.end()
    assert node.wake_ups.changes == [waiting]


def test_the_scratch_buffer_never_runs_out(node: ProduceNode) -> None:
    """The round is settled before the next connection finds too little room."""
    clients = [Client() for _ in range(200)]
    node.round.begin()
    for number, client in enumerate(clients):
        assert node.take(client, (b"%d" % number).ljust(4_000, b"."))
        assert len(node.buffers.vacant) >= 64 * 1024
    assert clients[0].offsets
    assert not clients[-1].offsets
    node.round.end()
    assert [value[:4].strip(b".") for value in node.values() if value is not None] == [
        b"%d" % number for number in range(200)
    ]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param(
            {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}, 0, id="idempotent"
        ),
        pytest.param({"timestamps": NOW + 10**9}, InvalidTimestamp.code, id="from the future"),
    ],
)
def test_a_batch_that_is_not_plain_is_answered_at_once(
    node: ProduceNode, fields: dict[str, Any], code: int
) -> None:
    client = Client()
    node.round.begin()
    assert node.take(client, b"v", **fields)
    assert client.gathered == 0
    assert [answer.error_code for _, answer in client.answers] == [code]


def test_a_large_batch_is_not_worth_copying(node: ProduceNode) -> None:
    client = Client()
    node.round.begin()
    assert node.take(client, b"v" * 10_000)
    assert client.offsets == [(1, 1)]


def test_a_request_that_is_appended_at_once_does_not_overtake(node: ProduceNode) -> None:
    client = Client()
    node.round.begin()
    node.take(client, b"small")
    node.take(client, b"v" * 10_000)
    assert client.offsets == [(1, 1), (2, 2)]
    assert node.values() == [b"small", b"v" * 10_000]


def test_a_request_of_another_shape_is_recognised_or_left(node: ProduceNode) -> None:
    """A client that writes to several partitions by turns is known by each of its shapes."""
    client = Client()
    node.round.begin()
    node.take(client, b"zero", partition=0)
    first = client.produce_shape
    node.take(client, b"one", partition=1)
    frame = frame_of(batch_of(b"again"), 1, 1, 77)
    taken = node.round.take(cast(Connection, client), first, frame, 0, len(frame))
    assert taken
    assert client.produce_shape.partition is node.partitions[1]
    unknown = frame_of(batch_of(b"never seen"), 2, 1, 78)
    assert not node.round.take(cast(Connection, client), first, unknown, 0, len(unknown))


@pytest.mark.parametrize("size", range(0, 110, 7))
def test_a_frame_that_is_cut_off_is_left(node: ProduceNode, size: int) -> None:
    client = Client()
    node.round.begin()
    node.take(client, b"v")
    frame = frame_of(batch_of(b"v"), 0, 1, 5)[:size]
    assert not node.round.take(cast(Connection, client), client.produce_shape, frame, 0, len(frame))


def test_gathered_requests_are_settled_before_shapes_are_forgotten(node: ProduceNode) -> None:
    client = Client()
    node.round.begin()
    node.take(client, b"before the change")
    node.round.forget()
    assert client.offsets == [(1, 1)]
    frame = frame_of(batch_of(b"after"), 0, 1, 5)
    assert not node.round.take(cast(Connection, client), client.produce_shape, frame, 0, len(frame))


def test_without_acknowledgement_nothing_is_answered(node: ProduceNode) -> None:
    client = Client()
    node.round.begin()
    node.take(client, b"quiet", acks=0)
    node.take(client, b"loud")
    node.round.end()
    assert (client.silently, client.offsets) == (1, [(2, 2)])
    assert node.values() == [b"quiet", b"loud"]


def gathered(node: ProduceNode, *clients: Client, acks: int = 1) -> None:
    node.round.begin()
    for number, client in enumerate(clients):
        node.take(client, b"%d" % number, acks=acks)


def test_a_disk_with_room_for_some_takes_some(node: ProduceNode) -> None:
    """LOG-19: a record is stored if and only if its answer has no error."""
    clients = [Client() for _ in range(4)]
    gathered(node, *clients)
    size = len(batch_of(b"0"))
    with failing_writes(after_bytes=0):
        node.round.end()
    assert [client.answers[0][1].error_code for client in clients] == [STORAGE_ERROR] * 4
    assert node.values() == []
    gathered(node, *clients)
    with disk_with_room(2 * size):
        node.round.end()
    codes = [client.answers[1][1].error_code for client in clients]
    assert codes == [0, 0, STORAGE_ERROR, STORAGE_ERROR]
    assert node.values() == [b"0", b"1"]
    assert node.metrics.topic("orders").failed_produce_requests == 6


@contextmanager
def disk_with_room(room_bytes: int) -> Iterator[None]:
    """A disk that refuses what does not fit as a whole."""
    real, left = files.pwrite, room_bytes

    def pwrite(fd: int, data: Any, position: int) -> int:
        nonlocal left
        if len(data) > left:
            raise OSError(errno.ENOSPC, "the disk refuses")
        left -= len(data)
        return real(fd, data, position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "pwrite", pwrite)
        yield


def test_a_refused_request_without_acknowledgement_closes_its_connection(node: ProduceNode) -> None:
    client = Client()
    gathered(node, client, acks=0)
    with failing_writes():
        node.round.end()
    assert client.was_closed


def test_a_log_that_went_offline_meanwhile_refuses(node: ProduceNode) -> None:
    client = Client()
    gathered(node, client)
    node.partitions[0].log = None
    node.round.end()
    assert [answer.error_code for _, answer in client.answers] == [STORAGE_ERROR]


def test_an_internal_error_is_answered_and_affects_no_other_request(
    node: ProduceNode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    unlucky, lucky = Client(), Client()
    node.round.begin()
    node.take(unlucky, b"v", partition=0)
    node.take(lucky, b"v", partition=1)
    log = node.partitions[0].log
    assert log is not None
    monkeypatch.setattr(type(log.segments[-1]), "note_run", broken_once())
    node.round.end()
    assert [answer.error_code for _, answer in unlucky.answers] == [UNKNOWN_SERVER_ERROR]
    assert lucky.offsets == [(2, 1)]
    logged = vars(caplog.records[0])
    assert (logged["topic"], logged["partition"]) == ("orders", 0)


def test_an_internal_error_does_not_reject_stored_batches(
    node: ProduceNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-19: a producer repeats a batch after an error, and would store it twice."""
    first, unlucky, quiet, last = clients = [Client() for _ in range(4)]
    node.round.begin()
    for number, client in enumerate(clients):
        node.take(client, b"%d" % number, acks=0 if client is quiet else 1)
    real = type(node.partitions[0]).append

    def append(partition: Any, records: memoryview, now_ms: int) -> Any:
        if values_in(records) == [b"1"]:
            raise ZeroDivisionError
        return real(partition, records, now_ms)

    monkeypatch.setattr(type(node.partitions[0]), "append", append)
    monkeypatch.setattr(type(node.partitions[0]), "append_run", lambda *_: False)
    node.round.end()
    assert node.values() == [b"0", b"2", b"3"]
    assert [answer.error_code for _, answer in unlucky.answers] == [UNKNOWN_SERVER_ERROR]
    assert (first.offsets, last.offsets) == ([(1, 1)], [(4, 3)])
    assert (quiet.silently, quiet.was_closed) == (1, False)


def values_in(records: memoryview) -> list[bytes | None]:
    return [record.value for record in records_of(bytes(records))]


def test_a_fault_after_the_write_does_not_refuse_requests(
    node: ProduceNode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loud, quiet = Client(), Client()
    node.round.begin()
    node.take(loud, b"loud")
    node.take(quiet, b"quiet", acks=0)
    monkeypatch.setattr(TopicMetrics, "count_produced", lambda *_: 1 / 0)
    node.round.end()
    assert node.values() == [b"loud", b"quiet"]
    assert loud.offsets == [(1, 1)]
    assert (quiet.silently, quiet.was_closed) == (1, False)
    assert "ZeroDivisionError" in caplog.text


def test_an_answer_that_fails_does_not_delay_others(node: ProduceNode) -> None:
    bad, good = Client(), Client()
    gathered(node, bad, good)
    cast(Any, bad).deliver = lambda _: 1 / 0
    node.round.end()
    assert bad.was_closed
    assert good.offsets == [(2, 2)]


def broken_once() -> Callable[..., None]:
    calls = iter((True, False))

    def note_run(*_: object) -> None:
        if next(calls):
            raise ZeroDivisionError

    return note_run


def test_a_full_segment_is_rolled_in_the_middle_of_a_run(node: ProduceNode) -> None:
    clients = [Client() for _ in range(20)]
    log = node.partitions[0].log
    assert log is not None
    config = {name: getattr(log.config, name) for name in log.config.__struct_fields__}
    log.reconfigure(type(log.config)(**{**config, "segment_bytes": 600}))
    gathered(node, *clients)
    node.round.end()
    assert [client.offsets for client in clients] == [[(n + 1, n + 1)] for n in range(20)]
    assert len(log.segments) > 1


def test_requests_are_counted(node: ProduceNode) -> None:
    gathered(node, *(Client() for _ in range(5)))
    node.round.end()
    topic = node.metrics.topic("orders")
    assert (topic.produce_requests, topic.messages_in) == (5, 5)
    assert topic.bytes_in == 5 * len(batch_of(b"0"))
    api = node.metrics.requests.api(0)
    assert api.versions == {VERSION: 5}
    assert api.at_once.count == 5
