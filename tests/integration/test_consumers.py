"""Consumers that assign partitions themselves: long polls, limits, slow readers."""

import resource
import socket
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.builders.record_batches import batch, values_in
from tests.builders.segment_files import headers_in
from tests.clients.librdkafka import (
    SECONDS_MAX,
    Sent,
    consumer,
    create_topic,
    numbered,
    produce,
    read_values,
    values,
)
from tests.clients.wire import Connection, fetch_fields
from tests.processes.nodes import HOST, Flavour, Node, free_port

StartNode = Callable[..., Node]
LONG_MS = SECONDS_MAX * 1000


def test_one_consumer_reads_many_topics_and_partitions(node: Node) -> None:
    """CON-1: all that were assigned, each in its order."""
    topics = [create_topic(node, partitions=2) for _ in range(3)]
    places = [TopicPartition(topic, partition, 0) for topic in topics for partition in range(2)]
    for place in places:
        produce(node, place.topic, numbered(100), partition=place.partition)
    seen: dict[tuple[object, object], list[bytes | None]] = {}
    with consumer(node, enable_partition_eof=False) as client:
        client.assign(places)
        for _ in range(100 * len(places)):
            message = client.poll(SECONDS_MAX)
            assert message is not None
            seen.setdefault((message.topic(), message.partition()), []).append(message.value())
    expected = [record.value for record in numbered(100)]
    assert seen == {(place.topic, place.partition): expected for place in places}


def test_reading_deletes_nothing(node: Node, topic: str) -> None:
    """CON-2(b): a consumer that comes later gets the same."""
    produce(node, topic, numbered(50))
    assert read_values(node, topic) == read_values(node, topic)


def test_a_poll_returns_as_soon_as_a_record_is_there(node: Node, topic: str) -> None:
    """CON-8, CON-9: the long poll is answered by the append, not by the end of its wait."""
    with Connection(node.port) as reader:
        places = [(topic, 0, 0)]
        reader.send("fetch", 12, **fetch_fields(places, max_wait_ms=LONG_MS))
        produce(node, topic, values("news"))
        answer = reader.receive("fetch", 12).responses[0].partitions[0]
    assert values_in(answer.records) == [b"news"]


def test_a_poll_without_data_ends_with_its_timeout(node: Node, topic: str) -> None:
    """CON-8: the next poll works as usual."""
    with consumer(node, enable_partition_eof=False) as client:
        client.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert client.poll(0.2) is None
        produce(node, topic, values("later"))
        assert next_value(client) == b"later"


def test_a_poll_is_bounded_without_any_broker() -> None:
    """CON-8(b): nothing listens at the address."""
    client = Consumer(
        {"bootstrap.servers": f"{HOST}:{free_port()}", "group.id": "alone", "log_level": 0}
    )
    client.assign([TopicPartition("any", 0, 0)])
    assert client.poll(0.2) is None
    client.close()


def test_a_fetch_waits_until_enough_bytes_are_there(node: Node, topic: str) -> None:
    """CON-9: fetch.min.bytes; the first record alone is not enough."""
    with Connection(node.port) as reader:
        limits = {"max_wait_ms": LONG_MS, "min_bytes": 2_000}
        reader.send("fetch", 12, **fetch_fields([(topic, 0, 0)], **limits))
        for _ in range(3):
            produce(node, topic, [Sent(b"x" * 900)])
        answer = reader.receive("fetch", 12).responses[0].partitions[0]
    assert len(headers_in(answer.records)) == 3


def test_a_fetch_that_waited_long_enough_returns_the_records_so_far(node: Node, topic: str) -> None:
    """CON-9: fetch.max.wait.ms ends the wait for fetch.min.bytes."""
    produce(node, topic, values("little"))
    with Connection(node.port) as reader:
        answer = reader.fetch(topic, max_wait_ms=100, min_bytes=1_000_000)
        assert values_in(answer.records) == [b"little"]
        nothing = reader.fetch(topic, 1, max_wait_ms=100, min_bytes=1)
        assert not nothing.records


def test_a_record_larger_than_the_limit_still_arrives(node: Node, topic: str) -> None:
    """CON-9: at least one whole batch, whatever the limits say."""
    produce(node, topic, [Sent(b"x" * 500_000), Sent(b"after")], batch_num_messages=1)
    with Connection(node.port) as reader:
        answer = reader.fetch(topic, partition_max_bytes=10, max_bytes=10)
        assert values_in(answer.records) == [b"x" * 500_000]
        answer = reader.fetch(topic, 1, partition_max_bytes=10, max_bytes=10)
        assert values_in(answer.records) == [b"after"]


def test_limits_bound_an_answer(node: Node) -> None:
    """CON-9: per partition and per request; what did not fit comes with the next fetch."""
    topic = create_topic(node, partitions=4)
    for partition in range(4):
        for _ in range(20):
            produce_batch(node, topic, partition, b"x" * 1_000)
    places = [(topic, partition, 0) for partition in range(4)]
    with Connection(node.port) as reader:
        small = reader.call("fetch", 12, **fetch_fields(places, partition_max_bytes=5_000))
        sizes = [len(answer.partitions[0].records or b"") for answer in small.responses]
        assert all(0 < size <= 5_000 for size in sizes), sizes
        capped = reader.call("fetch", 12, **fetch_fields(places, max_bytes=30_000))
        sizes = [len(answer.partitions[0].records or b"") for answer in capped.responses]
        assert 0 < sum(sizes) <= 30_000


def test_an_incremental_fetch_session_returns_only_changes(node: Node) -> None:
    """CON-9: later requests of a session name no partitions and receive only changes."""
    topic = create_topic(node, partitions=2)
    everything = fetch_fields([(topic, 0, 0), (topic, 1, 0)])
    with Connection(node.port) as reader:
        first = reader.call("fetch", 12, **everything, session_id=0, session_epoch=0)
        assert first.session_id > 0
        assert sum(len(answer.partitions) for answer in first.responses) == 2
        session = {"session_id": first.session_id}
        reader.call("fetch", 12, **fetch_fields([]), **session, session_epoch=1)
        produce(node, topic, values("news"), partition=1)
        later = fetch_fields([], max_wait_ms=LONG_MS)
        (answer,) = reader.call("fetch", 12, **later, **session, session_epoch=2).responses
    assert [part.partition_index for part in answer.partitions] == [1]
    assert values_in(answer.partitions[0].records) == [b"news"]


def test_a_slow_consumer_slows_no_other_client_and_catches_up(node: Node, topic: str) -> None:
    """CON-13, PRD-17: it requests all records and reads none, which delays no other client."""
    produce(node, topic, numbered(20_000, size=1_000), compression_type="none")
    with Connection(node.port) as slow:
        for _ in range(20):
            slow.send("fetch", 12, **fetch_fields([(topic, 0, 0)], partition_max_bytes=10**7))
        produce(node, topic, values("still going"))
        assert len(read_values(node, topic)) == 20_001
        for _ in range(20):
            answer = slow.receive("fetch", 12).responses[0].partitions[0]
            assert headers_in(answer.records)[0].base_offset == 0


@pytest.mark.usefixtures("only_headrace")
def test_many_slow_consumers_do_not_grow_memory(start_node: StartNode) -> None:
    """CON-13: outgoing bytes are bounded per connection, so memory does not follow the backlog."""
    node = start_node()
    topic = create_topic(node)
    produce(node, topic, numbered(20_000, size=1_000), compression_type="none")
    before = resident_bytes(node.pid)
    with ExitStack() as stack:
        readers = [stack.enter_context(small_window(node)) for _ in range(50)]
        for _ in range(10):
            for reader in readers:
                fields = fetch_fields([(topic, 0, 0)], partition_max_bytes=10**7)
                reader.send("fetch", 12, **fields)
        assert len(read_values(node, topic)) == 20_000
        assert resident_bytes(node.pid) - before < 100_000_000


def test_thousands_of_idle_connections_do_not_slow_others(node: Node, flavour: Flavour) -> None:
    """CON-13, OPS-1: each costs little, and all of them are served when they speak."""
    count = 2_000 if flavour.name == "headrace" else 500
    allow_open_files(count + 500)
    topic = create_topic(node)
    with ExitStack() as stack:
        idle = [stack.enter_context(Connection(node.port)) for _ in range(count)]
        for connection in idle[::100]:
            assert connection.call("api_versions", 0).api_keys
        produce(node, topic, numbered(1_000))
        assert len(read_values(node, topic)) == 1_000
        assert idle[-1].call("api_versions", 0).api_keys
    produce(node, topic, values("after"))
    assert read_values(node, topic)[-1] == b"after"


def next_value(client: Consumer) -> bytes | None:
    message = client.poll(SECONDS_MAX)
    assert message is not None
    return message.value()


def produce_batch(node: Node, topic: str, partition: int, value: bytes) -> None:
    with Connection(node.port) as connection:
        answer = connection.produce(topic, batch(Sent(value)), partition=partition)
        assert answer.error_code == 0


def small_window(node: Node) -> Connection:
    """A connection whose kernel buffers hold little, so that bytes wait at the sender."""
    connection = Connection(node.port)
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
    return connection


def resident_bytes(pid: int) -> int:
    """Memory that the process holds for itself; pages of files do not count."""
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon in /proc")


def allow_open_files(count: int) -> None:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"this machine allows {hard} open files, and {count} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(_soft, count), hard))
