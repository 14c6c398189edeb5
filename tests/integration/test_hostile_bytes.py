"""Hostile bytes end their own connection and leave all others undisturbed."""

import random
import resource
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from headrace.protocol.framing import SIZE_BYTES
from headrace.protocol.framing import encode_request as encode_request_of
from headrace.protocol.schemas.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from tests.builders.record_batches import UNTOUCHED_FROM, batch
from tests.clients.librdkafka import (
    AN_HOUR_AGO,
    Sent,
    create_topic,
    numbered,
    produce,
    read_values,
    values,
)
from tests.clients.wire import Connection, Fields, encode_request, fetch_fields, produce_fields
from tests.processes.nodes import Node, eventually

StartNode = Callable[..., Node]


@pytest.fixture
def connection(node: Node) -> Iterator[Connection]:
    with Connection(node.port) as opened:
        yield opened


def test_stored_bytes_equal_sent_bytes(node: Node, topic: str) -> None:
    """LOG-16, LOG-16(b): a batch is stored and sent unchanged."""
    headers = (("h", b"1"),)
    records = [Sent(b"value %d" % n, b"key", headers, AN_HOUR_AGO) for n in range(100)]
    sent = [batch(*records, codec=codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")]
    with Connection(node.port) as connection:
        for each in sent:
            assert connection.produce(topic, each).error_code == ErrorCode.none
        fetched = connection.fetch(topic).records
    stored = (node.data / f"{topic}-0" / f"{0:020}.log").read_bytes()
    assert fetched == stored[: len(fetched)]
    assert split(fetched) == [each[UNTOUCHED_FROM:] for each in sent]


@pytest.mark.parametrize("position", [17, 21, 30, 61, -1])
def test_a_damaged_batch_is_refused_and_not_stored(
    node: Node, topic: str, connection: Connection, position: int
) -> None:
    """LOG-4: the checksum covers attributes, timestamps and records."""
    damaged = bytearray(batch(Sent(b"value", b"key")))
    damaged[position] ^= 0x40
    answer = connection.produce(topic, bytes(damaged))
    assert answer.error_code == ErrorCode.corrupt_message
    produce(node, topic, values("sound"))
    assert read_values(node, topic) == [b"sound"]


def test_a_damaged_batch_harms_only_its_partition(node: Node) -> None:
    """LOG-4: others in the same request are stored."""
    topic = create_topic(node, partitions=2)
    sound = batch(*values("sound"))
    damaged = sound[:-1] + bytes([sound[-1] ^ 1])
    fields = produce_fields(topic, sound, partition=0)
    fields["topic_data"][0]["partition_data"].append({"index": 1, "records": damaged})
    with Connection(node.port) as connection:
        (answer,) = connection.call("produce", 9, **fields).responses
    codes = {part.index: part.error_code for part in answer.partition_responses}
    assert codes == {0: ErrorCode.none, 1: ErrorCode.corrupt_message}
    assert read_values(node, topic) == [b"sound"]


def test_a_batch_without_its_end_is_refused(node: Node, topic: str) -> None:
    """LOG-4: the length in its header is larger than the data."""
    with Connection(node.port) as connection:
        answer = connection.produce(topic, batch(Sent(b"value" * 100))[:-50])
    assert answer.error_code != ErrorCode.none
    assert read_values(node, topic) == []


GARBAGE = {
    "nothing but noise": random.Random(4).randbytes(500),
    "text of another protocol": b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
    "a size below zero": struct.pack(">i", -1) + b"xxxx",
    "a size beyond the limit": struct.pack(">i", 2**31 - 1) + b"xxxx",
    "an empty frame": struct.pack(">i", 0),
    "an unknown api": struct.pack(">ihhih", 10, 9_999, 0, 1, -1),
    "a header cut off": struct.pack(">ihh", 4, 3, 9),
    "a count beyond the frame": struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2**31 - 1),
    "a client id beyond the frame": struct.pack(">ihhih", 10, 3, 1, 1, 30_000),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_closes_its_connection_only(
    node: Node, topic: str, connection: Connection, garbage: bytes
) -> None:
    """OPS-1: another open connection is not affected."""
    with Connection(node.port) as hostile:
        hostile.socket.sendall(garbage)
        assert hostile.is_closed_by_peer()
    assert connection.produce(topic, batch(*values("fine"))).error_code == ErrorCode.none


@pytest.mark.parametrize("cut", [3, 4, 7, 12, 40, -1])
def test_a_request_cut_off_in_the_middle_leaves_nothing(
    node: Node, topic: str, connection: Connection, cut: int
) -> None:
    """OPS-1: the peer dies while it sends."""
    body = encode_request("produce", 9, **produce_fields(topic, batch(*values("half"))))
    frame = struct.pack(">i", len(body)) + body
    with Connection(node.port) as dying:
        dying.socket.sendall(frame[:cut])
    assert connection.produce(topic, batch(*values("whole"))).error_code == ErrorCode.none
    assert read_values(node, topic) == [b"whole"]


def test_a_body_that_ends_early_closes_the_connection(node: Node, connection: Connection) -> None:
    """OPS-1: the frame is whole, but the request in it is not."""
    body = encode_request("fetch", 12, **fetch_fields([("any", 0, 0)]))
    with Connection(node.port) as hostile:
        hostile.send_frame(body[:-10])
        assert hostile.is_closed_by_peer()
    assert connection.call("api_versions", 0).api_keys


def test_a_request_byte_by_byte_is_served_in_the_end(node: Node, topic: str) -> None:
    """OPS-1: a slow request is valid and delays no other."""
    body = encode_request("produce", 9, **produce_fields(topic, batch(*values("slow"))))
    frame = struct.pack(">i", len(body)) + body
    with ExitStack() as stack:
        slow = [stack.enter_context(Connection(node.port)) for _ in range(20)]
        for position in range(len(frame)):
            for each in slow:
                each.socket.sendall(frame[position : position + 1])
            if position % 50 == 0:
                produce(node, topic, values("fast"))
        for each in slow:
            assert each.receive("produce", 9).responses
    assert read_values(node, topic).count(b"slow") == 20


def test_a_half_closed_connection_is_closed(node: Node, topic: str) -> None:
    """OPS-1: its requests are answered if possible, and then the connection is closed."""
    produce(node, topic, numbered(10))
    with Connection(node.port) as half:
        half.send("fetch", 12, **fetch_fields([(topic, 0, 0)], max_wait_ms=500, min_bytes=10**6))
        half.socket.shutdown(socket.SHUT_WR)
        while not half.is_closed_by_peer():
            pass
    assert len(read_values(node, topic)) == 10


def test_a_peer_that_closes_in_the_middle_of_a_request_is_closed(node: Node, topic: str) -> None:
    """OPS-1: the rest will never come."""
    body = encode_request("produce", 9, **produce_fields(topic, batch(*values("half"))))
    with Connection(node.port) as half:
        half.socket.sendall(struct.pack(">i", len(body)) + body[:-5])
        half.socket.shutdown(socket.SHUT_WR)
        assert half.is_closed_by_peer()
    assert read_values(node, topic) == []


def test_idle_clients_are_disconnected(start_node: StartNode) -> None:
    """OPS-1: connections.max.idle.ms; active clients stay connected."""
    node = start_node(connections_max_idle_ms=1_000)
    with Connection(node.port) as idle, Connection(node.port) as busy:
        idle.socket.settimeout(0.05)
        eventually(lambda: busy.call("api_versions", 0).api_keys and is_closed(idle))
        assert busy.call("api_versions", 0).api_keys


@pytest.mark.usefixtures("only_headrace")
def test_clients_that_trickle_bytes_are_disconnected(start_node: StartNode) -> None:
    """OPS-1: bytes without a complete request do not keep a connection open."""
    node = start_node(connections_max_idle_ms=1_000)
    frame = struct.pack(">i", 10_000) + bytes(10_000)
    with Connection(node.port) as trickling:
        trickling.socket.settimeout(0.02)
        drops = iter(frame)
        eventually(lambda: is_closed(trickling, bytes([next(drops)])))


@pytest.mark.usefixtures("only_headrace")
def test_requests_that_were_only_announced_cost_no_memory(start_node: StartNode) -> None:
    """OPS-1: a hundred times ninety megabytes, of which a kilobyte came."""
    node = start_node()
    topic = create_topic(node)
    produce(node, topic, values("before"))
    before = resident_bytes(node)
    with ExitStack() as stack:
        for _ in range(100):
            half = stack.enter_context(Connection(node.port))
            half.socket.sendall(struct.pack(">i", 90_000_000) + bytes(1_000))
        produce(node, topic, values("after"))
        assert resident_bytes(node) - before < 30_000_000
    assert read_values(node, topic) == [b"before", b"after"]


def is_closed(connection: Connection, drop: bytes = b"") -> bool:
    """Return whether the broker has closed its end, after sending `drop` if it is given."""
    try:
        connection.socket.sendall(drop)
        return connection.socket.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def resident_bytes(node: Node) -> int:
    pages = int(Path(f"/proc/{node.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def many_names(count: int) -> bytes:
    names = [{"name": f"{number:x}"} for number in range(count)]
    fields: Fields = {"topics": names, "response_partition_limit": 10, "cursor": None}
    return encode_request("describe_topic_partitions", 0, **fields)


def many_partitions(count: int) -> bytes:
    return encode_request("fetch", 12, **fetch_fields([("t", 0, 0)] * count))


def many_shared_partitions(count: int) -> bytes:
    request = ShareFetchRequest(
        group_id="g",
        member_id="m",
        topics=[FetchTopic(bytes(16), [FetchPartition(index) for index in range(count)])],
    )
    return bytes(encode_request_of(request, 1, 1, "wire-test"))[SIZE_BYTES:]


def many_empty_batches(count: int) -> bytes:
    fields = produce_fields("t", b"")
    fields["topic_data"][0]["partition_data"] = [{"index": 0, "records": None}] * count
    return encode_request("produce", 9, **fields)


@pytest.mark.usefixtures("only_headrace")
@pytest.mark.parametrize(
    "many", [many_names, many_partitions, many_shared_partitions, many_empty_batches]
)
def test_a_request_for_too_much_at_once_is_refused(
    node: Node, connection: Connection, many: Callable[[int], bytes]
) -> None:
    """OPS-1: a megabyte of names would keep everyone waiting for seconds."""
    with Connection(node.port) as modest:
        modest.send_frame(many(2_000))
        assert modest.receive_frame()
    with Connection(node.port) as greedy:
        greedy.send_frame(many(60_000))
        assert greedy.is_closed_by_peer()
    assert "too many elements" in node.log
    assert connection.call("api_versions", 0).api_keys


def test_a_request_larger_than_allowed_is_not_read(start_node: StartNode) -> None:
    """OPS-1: socket.request.max.bytes."""
    node = start_node(socket_request_max_bytes=100_000)
    topic = create_topic(node)
    with Connection(node.port) as greedy:
        greedy.socket.sendall(struct.pack(">i", 100_001) + b"\0" * 1_000)
        assert greedy.is_closed_by_peer()
    produce(node, topic, values("small"))
    assert read_values(node, topic) == [b"small"]


def test_noise_on_many_connections_at_once(node: Node, topic: str) -> None:
    """OPS-1: valid requests with single bytes changed, beside a working client."""
    dice = random.Random(11)
    requests = [
        encode_request("fetch", 12, **fetch_fields([(topic, 0, 0)])),
        encode_request("produce", 9, **produce_fields(topic, batch(*values("noise")))),
        encode_request("api_versions", 3, client_software_name="x", client_software_version="1"),
    ]
    for _ in range(200):
        changed = bytearray(dice.choice(requests))
        for _ in range(dice.randint(1, 8)):
            changed[dice.randrange(8, len(changed))] = dice.randrange(256)
        with Connection(node.port) as hostile:
            hostile.send_frame(bytes(changed))
    produce(node, topic, values("sound"))
    assert read_values(node, topic)[-1] == b"sound"


def split(data: bytes) -> list[bytes]:
    """The batches of a record set, each from where a broker leaves it untouched."""
    found = []
    position = 0
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        found.append(data[position + UNTOUCHED_FROM : position + 12 + length])
        position += 12 + length
    return found
