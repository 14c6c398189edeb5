"""The loads of coordinators: commits, heartbeats, rebalances, transactions, and many groups."""

import selectors
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from confluent_kafka import Consumer, Producer
from kio.schema.errors import ErrorCode

from benchmarks.processes import CpuMeter, resident_megabytes, settle
from benchmarks.small_requests import Answered, check
from benchmarks.workloads import PARTITIONS, QUIET, Figure
from headrace.coordination.partitioning import partition_for
from tests.clients.librdkafka import SECONDS_MAX, create_topic, delete_topic, unique_name
from tests.clients.wire import SECOND, Connection, Fields, encode_request
from tests.processes.nodes import HOST, Node, eventually

CONNECTIONS = 20
MEMBERS = 50
SHARED_PARTITIONS = 500
RECORDS_PER_TRANSACTION = 100
GROUPS = 10_000
GROUPS_IN_FLIGHT = 100
OFFSETS_PARTITIONS = 50  # Kafka's default for `__consumer_offsets`.
REBALANCE_SECONDS_MAX = 120


def commits(node: Node, seconds: float) -> list[Figure]:
    """OffsetCommit for six partitions, by clients that manage their partitions themselves."""
    topic = create_topic(node, partitions=PARTITIONS)
    with Connection(node.port) as connection:
        groups = [unique_name("group") for _ in range(CONNECTIONS)]
        for group in groups:
            find_coordinator(connection, group)
    frames = [encode_request("offset_commit", 8, **commit_fields(group, topic)) for group in groups]
    cost = cpu_per_request(node, frames, seconds)
    delete_topic(node, topic)
    return [Figure("OffsetCommit, 6 partitions", "CPU µs", cost)]


def heartbeats(node: Node, seconds: float) -> list[Figure]:
    """Heartbeat of members whose groups are stable."""
    with ExitStack() as stack:
        members = [stack.enter_context(lone_member(node)) for _ in range(CONNECTIONS)]
        frames = [
            encode_request(
                "heartbeat",
                4,
                group_id=group,
                generation_id=generation,
                member_id=member_id,
                group_instance_id=None,
            )
            for group, generation, member_id in members
        ]
        cost = cpu_per_request(node, frames, seconds)
    return [Figure("Heartbeat", "CPU µs", cost)]


def rebalance(node: Node, _seconds: float, *, protocol: str) -> list[Figure]:
    """Fifty consumers subscribe at once, until each partition has its owner."""
    topic = create_topic(node, partitions=SHARED_PARTITIONS)
    group = unique_name("group")
    with Connection(node.port) as connection:
        find_coordinator(connection, group)
    settle(node.pid)
    consumers = [Consumer(reading(node, group, protocol)) for _ in range(MEMBERS)]
    began = time.perf_counter()
    with CpuMeter(node.pid) as cpu:
        for consumer in consumers:
            consumer.subscribe([topic])
        eventually(lambda: is_shared_out(consumers), seconds=REBALANCE_SECONDS_MAX)
    took = time.perf_counter() - began
    for consumer in consumers:
        consumer.close()
    delete_topic(node, topic)
    name = f"50 members share 500 partitions, {protocol} protocol"
    return [Figure(name, "s", took), Figure(name, "CPU s", cpu.seconds)]


def reading(node: Node, group: str, protocol: str) -> dict[str, object]:
    settings = {"bootstrap.servers": node.address, "group.id": group, "enable.auto.commit": False}
    return {**QUIET, **settings, "group.protocol": protocol}


def is_shared_out(consumers: Sequence[Consumer]) -> bool:
    """Return whether every member reports an equal share."""
    shares = []
    for consumer in consumers:
        consumer.poll(0)
        shares.append({one.partition for one in consumer.assignment()})
    is_fair = all(len(share) == SHARED_PARTITIONS // MEMBERS for share in shares)
    return is_fair and len(set().union(*shares)) == SHARED_PARTITIONS


def transactions(node: Node, seconds: float) -> list[Figure]:
    """100 records over six partitions, then the commit, then the next."""
    topic = create_topic(node, partitions=PARTITIONS)
    client = Producer(
        {**QUIET, "bootstrap.servers": node.address, "transactional.id": unique_name("id")}
    )
    client.init_transactions(SECONDS_MAX)
    transact(client, topic)  # The first one finds leaders and coordinators.
    count = 0
    with CpuMeter(node.pid) as cpu:
        began = time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds:
            transact(client, topic)
            count += 1
    delete_topic(node, topic)
    name = "transaction, 100 records in 6 partitions"
    return [
        Figure(name, "ms", elapsed / count * 1e3),
        Figure(name, "CPU ms", cpu.seconds / count * 1e3),
    ]


def transact(client: Producer, topic: str) -> None:
    client.begin_transaction()
    for number in range(RECORDS_PER_TRANSACTION):
        client.produce(topic, b"x" * 100, partition=number % PARTITIONS)
    client.commit_transaction(SECONDS_MAX)


def many_groups(node: Node, _seconds: float) -> list[Figure]:
    """A start on the offsets of 10,000 groups, until every partition of them is served."""
    topic = create_topic(node)
    groups = [f"many-{number}" for number in range(GROUPS)]
    with Connection(node.port) as connection:
        find_coordinator(connection, groups[0])
        commit_all(connection, groups, topic)
    # The last one of every partition: a question about all of them would cost more than the load.
    last = {partition_for(group, OFFSETS_PARTITIONS): group for group in groups}
    node.stop()
    began = time.perf_counter()
    node.launch()
    eventually(lambda: knows_all(node, list(last.values())), seconds=REBALANCE_SECONDS_MAX)
    took = time.perf_counter() - began
    held = resident_megabytes(node.pid)
    delete_topic(node, topic)
    return [
        Figure("start with 10,000 groups, until their offsets are served", "s", took),
        Figure("memory with 10,000 groups", "MB RSS", held),
    ]


def commit_all(connection: Connection, groups: Sequence[str], topic: str) -> None:
    for start in range(0, len(groups), GROUPS_IN_FLIGHT):
        some = groups[start : start + GROUPS_IN_FLIGHT]
        for group in some:
            connection.send("offset_commit", 8, **commit_fields(group, topic, partitions=1))
        for _ in some:
            answer = connection.receive("offset_commit", 8)
            assert answer.topics[0].partitions[0].error_code is ErrorCode.none, answer


def knows_all(node: Node, groups: Sequence[str]) -> bool:
    """Return whether the coordinators have the offsets of all these groups."""
    asked = [{"group_id": group, "topics": None} for group in groups]
    try:
        with Connection(node.port) as connection:
            answer = connection.call("offset_fetch", 8, groups=asked, require_stable=False)
    except OSError:
        return False
    return all(group.error_code is ErrorCode.none and group.topics for group in answer.groups)


def find_coordinator(connection: Connection, group: str) -> None:
    """The internal topic is made when the first one asks, which takes a moment."""
    eventually(
        lambda: connection.call("find_coordinator", 3, key=group, key_type=0),
        expect=lambda answer: answer.error_code is ErrorCode.none,
    )
    eventually(
        lambda: connection.call(
            "offset_fetch", 7, group_id=group, topics=None, require_stable=True
        ),
        expect=lambda answer: answer.error_code is ErrorCode.none,
    )


def commit_fields(group: str, topic: str, partitions: int = PARTITIONS) -> Fields:
    places = [
        {
            "partition_index": index,
            "committed_offset": 5,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        for index in range(partitions)
    ]
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": [{"name": topic, "partitions": places}],
    }


@contextmanager
def lone_member(node: Node) -> Iterator[tuple[str, int, str]]:
    """A group of one in a stable state: its name, generation and member id."""
    group = unique_name("group")
    with Connection(node.port) as connection:
        find_coordinator(connection, group)
        joined = connection.call(
            "join_group",
            3,
            group_id=group,
            session_timeout=300 * SECOND,
            rebalance_timeout=300 * SECOND,
            member_id="",
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )
        connection.call(
            "sync_group",
            3,
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=None,
            assignments=[{"member_id": joined.member_id, "assignment": b""}],
        )
        yield group, joined.generation_id, joined.member_id
        member = {"member_id": joined.member_id, "group_instance_id": None}
        connection.call("leave_group", 3, group_id=group, members=[member])


def cpu_per_request(node: Node, frames: Sequence[bytes], seconds: float) -> float:
    """Microseconds of the broker for each request, with one in flight per frame."""
    settle(node.pid)
    with CpuMeter(node.pid) as cpu:
        done = exchange(node, frames, seconds)
    return cpu.seconds / done.requests * 1e6


def exchange(node: Node, frames: Sequence[bytes], seconds: float) -> Answered:
    """A connection for each frame, which is sent again as soon as it is answered."""
    requests = 0
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for frame in frames:
            sized = struct.pack(">i", len(frame)) + frame
            opened = stack.enter_context(socket.create_connection((HOST, node.port)))
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(opened, selectors.EVENT_READ, sized)
            opened.sendall(sized)
        began = time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds:
            for key, _events in selector.select(1):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                check(client.recv(4_096))
                client.sendall(key.data)
                requests += 1
    return Answered(requests, elapsed)
