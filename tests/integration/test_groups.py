"""Classic consumer groups with real clients: librdkafka, aiokafka, kafka-python and Java."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPlace
from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, TopicPartition
from confluent_kafka import KafkaError as Codes
from confluent_kafka.admin import ConsumerGroupDescription
from kafka import KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as PythonPlace
from kafka.errors import CommitFailedError

from tests.clients.librdkafka import (
    SECONDS_MAX,
    admin,
    consumer,
    create_topic,
    numbered,
    produce,
    read,
    set_topic_config,
    unique_name,
)
from tests.clients.wire import Connection
from tests.integration.cli.commands import headrace, ok
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Node, eventually

EARLIEST = {"auto_offset_reset": "earliest"}


def spread(node: Node, topic: str, partitions: int, each: int) -> None:
    for partition in range(partitions):
        produce(node, topic, numbered(each), partition=partition)


def described(node: Node, group: str) -> ConsumerGroupDescription:
    client = admin(node)
    found = client.describe_consumer_groups([group])[group].result(SECONDS_MAX)
    assert isinstance(found, ConsumerGroupDescription)
    return found


def committed(node: Node, group: str, topic: str, partition: int = 0) -> int:
    with consumer(node, group_id=group) as client:
        (found,) = client.committed([TopicPartition(topic, partition)], SECONDS_MAX)
    offset: int = found.offset
    return offset


def polled_until(clients: list[Consumer], is_done: Callable[[], bool]) -> list[bytes]:
    """Poll all clients by turns; the values they got meanwhile."""
    values: list[bytes] = []

    def step() -> bool:
        for client in clients:
            message = client.poll(0.05)
            if message is not None and message.error() is None:
                values.append(message.value() or b"")
        return is_done()

    eventually(step, seconds=60)
    return values


# librdkafka


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_the_partitions(node: Node, strategy: str) -> None:
    """CON-1, CON-2, CON-3: eager and cooperative."""
    topic, group = create_topic(node, partitions=6), unique_name("group")
    config = {**EARLIEST, "partition_assignment_strategy": strategy}
    with ExitStack() as stack:
        clients = [stack.enter_context(consumer(node, group_id=group, **config)) for _ in range(3)]
        for client in clients:
            client.subscribe([topic])
        polled_until(clients, lambda: [len(one.assignment()) for one in clients] == [2, 2, 2])
        found = described(node, group)
        assert found.state == ConsumerGroupState.STABLE
        assert found.partition_assignor == strategy
        owned = [p.partition for m in found.members for p in m.assignment.topic_partitions]
        assert sorted(owned) == list(range(6))
        clients.pop().close()
        polled_until(clients, lambda: [len(one.assignment()) for one in clients] == [3, 3])


def test_a_group_continues_at_its_committed_offset(node: Node) -> None:
    """CON-6: offsets committed at close."""
    topic, group = create_topic(node, partitions=2), unique_name("group")
    spread(node, topic, 2, 50)
    seen: list[bytes] = []
    for more in (0, 10):
        if more:
            spread(node, topic, 2, more)
        with consumer(node, group_id=group, enable_auto_commit=True, **EARLIEST) as client:
            client.subscribe([topic])
            wanted = 2 * (more or 50)
            new: list[bytes] = []
            while len(new) < wanted:
                new += polled_until([client], lambda: True)
            seen += new
    assert len(seen) == 120
    assert [committed(node, group, topic, p) for p in range(2)] == [60, 60]


def test_a_member_that_dies_is_replaced(node: Node) -> None:
    """CON-5: its session ends, and another takes over its partitions."""
    topic, group = create_topic(node, partitions=2), unique_name("group")
    config = {**EARLIEST, "session_timeout_ms": 6000, "heartbeat_interval_ms": 500}
    with Connection(node.port) as ghost, consumer(node, group_id=group, **config) as client:
        joined = join(ghost, group)
        sync(ghost, group, joined)
        client.subscribe([topic])
        polled_until([client], lambda: len(client.assignment()) == 2)
    assert joined.error_code.value == 0


def test_groups_that_join_one_after_another_all_get_their_share(
    start_node: Callable[..., Node],
) -> None:
    """CON-3: each group waits for more members, without affecting the others."""
    node = start_node(group_initial_rebalance_delay_ms="1000")
    topic = create_topic(node)
    with ExitStack() as stack:
        clients = [stack.enter_context(consumer(node, **EARLIEST)) for _ in range(3)]
        for client in clients:
            client.subscribe([topic])
            client.poll(0.3)
        polled_until(clients, lambda: [len(one.assignment()) for one in clients] == [1, 1, 1])


def test_a_static_member_keeps_its_partitions(node: Node) -> None:
    """CON-4: no rebalance when it is back within its session timeout."""
    topic, group = create_topic(node, partitions=4), unique_name("group")
    config = {**EARLIEST, "session_timeout_ms": 30_000}
    with consumer(node, group_id=group, group_instance_id="a", **config) as first:
        first.subscribe([topic])
        second = Consumer(
            {
                "bootstrap.servers": node.address,
                "group.id": group,
                "group.instance.id": "b",
                "session.timeout.ms": 30_000,
            }
        )
        second.subscribe([topic])
        polled_until(
            [first, second], lambda: len(second.assignment()) == 2 == len(first.assignment())
        )
        before = sorted(place.partition for place in second.assignment())
        second.close()
        assert len(described(node, group).members) == 2
        with consumer(node, group_id=group, group_instance_id="b", **config) as again:
            again.subscribe([topic])
            polled_until([again], lambda: len(again.assignment()) > 0)
            assert sorted(place.partition for place in again.assignment()) == before
        first.poll(0)
        assert len(first.assignment()) == 2


def test_a_consumer_that_only_assigns_has_a_coordinator(node: Node, topic: str) -> None:
    """CON-1: so that it can commit, and need not wait for one when it closes."""
    produce(node, topic, numbered(1))
    group = unique_name("group")
    with consumer(node, group_id=group) as client:
        client.assign([TopicPartition(topic, 0, 0)])
        polled_until([client], lambda: client.position([TopicPartition(topic, 0)])[0].offset == 1)
        client.commit(asynchronous=False)
    assert committed(node, group, topic) == 1


def test_offsets_survive_a_crash(start_node: Callable[..., Node]) -> None:
    """CON-12, DEL-2: what was acknowledged is there after kill -9."""
    node = start_node(group_initial_rebalance_delay_ms="0")
    topic, group = create_topic(node, partitions=3), unique_name("group")
    with consumer(node, group_id=group) as client:
        for number in range(20):
            places = [TopicPartition(topic, p, number * (p + 1)) for p in range(3)]
            client.commit(offsets=places, asynchronous=False)
    node.kill()
    node.start()
    assert [committed(node, group, topic, p) for p in range(3)] == [19, 38, 57]


def test_offsets_survive_the_compaction_of_their_log(start_node: Callable[..., Node]) -> None:
    """CON-12, RET-4: it runs while a member commits, and a crash comes right after."""
    node = start_node(offsets_topic_num_partitions=1, log_cleaner_min_cleanable_ratio=0.01)
    topic, group = create_topic(node, partitions=3), unique_name("group")
    with consumer(node, group_id=group, **EARLIEST) as client:
        client.subscribe([topic])
        polled_until([client], lambda: len(client.assignment()) == 3)
        set_topic_config(node, "__consumer_offsets", "segment.ms", "100")
        number = 0

        def commit_until_compacted() -> bool:
            nonlocal number
            for _ in range(50):
                number += 1
                places = [TopicPartition(topic, p, number * (p + 1)) for p in range(3)]
                client.commit(offsets=places, asynchronous=False)
            return len(read(node, "__consumer_offsets")) < number

        eventually(commit_until_compacted, seconds=60)
        node.kill()
        node.start()
        assert [committed(node, group, topic, p) for p in range(3)] == [
            number * (p + 1) for p in range(3)
        ]
        assert len(described(node, group).members) == 1


def test_members_continue_after_a_crash_of_the_broker(start_node: Callable[..., Node]) -> None:
    """CON-12: the group is still there, in its generation."""
    node = start_node(group_initial_rebalance_delay_ms="0")
    topic, group = create_topic(node, partitions=2), unique_name("group")
    with consumer(node, group_id=group, **EARLIEST) as client:
        client.subscribe([topic])
        polled_until([client], lambda: len(client.assignment()) == 2)
        before = described(node, group).members[0].member_id
        node.kill()
        node.start()
        produce(node, topic, numbered(1))
        values: list[bytes] = []
        while not values:
            values = polled_until([client], lambda: True)
        assert described(node, group).members[0].member_id == before


def test_a_broker_stops_while_members_wait(start_node: Callable[..., Node]) -> None:
    """OPS-1: a join that waits for others is sent away, not waited for."""
    node = start_node(group_initial_rebalance_delay_ms="60000")
    with Connection(node.port) as connection:
        find(connection, "g")
        fields = {
            "group_id": "g",
            "session_timeout": seconds(6),
            "rebalance_timeout": seconds(100),
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        connection.send("join_group", 3, **fields)
        other = admin(node)
        eventually(lambda: other.list_consumer_groups().result(SECONDS_MAX).valid)
        assert node.stop() == 0


def test_groups_are_listed_and_deleted(node: Node, topic: str) -> None:
    """CON-13"""
    group, client = unique_name("group"), admin(node)
    with consumer(node, group_id=group, **EARLIEST) as reader:
        reader.subscribe([topic])
        polled_until([reader], lambda: len(reader.assignment()) == 1)
        listed = client.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(SECONDS_MAX)
        assert group in {one.group_id for one in listed.valid}
        with pytest.raises(KafkaException) as refused:
            client.delete_consumer_groups([group])[group].result(SECONDS_MAX)
        assert refused.value.args[0].code() == Codes.NON_EMPTY_GROUP
    client.delete_consumer_groups([group])[group].result(SECONDS_MAX)
    listed = client.list_consumer_groups().result(SECONDS_MAX)
    assert group not in {one.group_id for one in listed.valid}


# aiokafka and kafka-python


async def test_aiokafka(node: Node) -> None:
    """CON-1, CON-6"""
    topic, group = create_topic(node, partitions=2), unique_name("group")
    spread(node, topic, 2, 10)
    options: dict[str, Any] = {
        "bootstrap_servers": node.address,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    clients = [AIOKafkaConsumer(topic, **options) for _ in range(2)]
    for client in clients:
        await client.start()
    try:
        got = 0
        while got < 20:
            for client in clients:
                batches = await client.getmany(timeout_ms=100)
                got += sum(map(len, batches.values()))
        for client in clients:
            await client.commit()
    finally:
        for client in clients:
            await client.stop()
    again = AIOKafkaConsumer(**options)
    await again.start()
    try:
        assert [await again.committed(AioPlace(topic, p)) for p in range(2)] == [10, 10]
    finally:
        await again.stop()


def test_kafka_python(node: Node) -> None:
    """CON-1, CON-6, CON-13"""
    topic, group = create_topic(node, partitions=2), unique_name("group")
    spread(node, topic, 2, 10)
    client = KafkaConsumer(
        topic,
        bootstrap_servers=node.address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=500,  # It may join before it has the topic's partitions.
    )
    try:
        got: set[tuple[int, int]] = set()
        places = [PythonPlace(topic, partition) for partition in range(2)]

        def all_is_read_and_committed() -> bool:
            """It may have to join again, and then continues at the committed offsets."""
            for place, records in client.poll(100).items():
                got.update((place.partition, record.offset) for record in records)
            if len(got) < 20:
                return False
            try:
                client.commit()
            except CommitFailedError:
                return False
            return [client.committed(place) for place in places] == [10, 10]

        eventually(all_is_read_and_committed)
        assert got == {(partition, offset) for partition in range(2) for offset in range(10)}
    finally:
        client.close()
    tool = KafkaAdminClient(bootstrap_servers=node.address)
    try:
        offsets = tool.list_group_offsets(group)[group]
        assert sorted(one.offset for one in offsets.values()) == [10, 10]
        assert group in str(tool.list_groups())
    finally:
        tool.close()


# Java


@pytest.fixture
def tool(kafka_release: KafkaRelease, node: Node) -> partial[str]:
    def run(script: str, *arguments: str) -> str:
        return kafka_release.run(script, "--bootstrap-server", node.address, *arguments)

    return partial(run)


def test_javas_console_consumer_and_group_tool(tool: partial[str], node: Node) -> None:
    """CON-1, CON-13, OPS-1"""
    topic, group = create_topic(node, partitions=2), unique_name("group")
    spread(node, topic, 2, 10)
    limits = ("--max-messages", "20", "--timeout-ms", "30000", "--from-beginning")
    seen = tool("kafka-console-consumer", "--topic", topic, "--group", group, *limits)
    assert len(seen.split()) == 20
    rows = tool("kafka-consumer-groups", "--describe", "--group", group)
    lines = [line.split() for line in rows.splitlines() if line.startswith(group)]
    assert sorted(line[2:6] for line in lines) == [["0", "10", "10", "0"], ["1", "10", "10", "0"]]
    assert group in tool("kafka-consumer-groups", "--list", "--state", "Empty")
    change = ("--reset-offsets", "--to-offset", "3", "--topic", topic, "--execute")
    tool("kafka-consumer-groups", "--group", group, *change)
    assert [committed(node, group, topic, p) for p in range(2)] == [3, 3]
    tool("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    assert [committed(node, group, topic, p) for p in range(2)] == [3, -1001]
    tool("kafka-consumer-groups", "--delete", "--group", group)
    assert committed(node, group, topic) == -1001


# headrace groups


def test_our_own_tool(node: Node) -> None:
    """CON-13: lag in records and in seconds, resets with a dry run."""
    topic, group = create_topic(node, partitions=2), unique_name("group")
    spread(node, topic, 2, 10)
    with consumer(node, group_id=group) as client:
        client.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    assert group in ok(node, "groups", "list").out
    (found,) = ok(node, "groups", "describe", group, "--json").document
    (row,) = found["partitions"]
    assert (row["committed"], row["end"], row["lag"]) == (4, 10, 6)
    assert 0 < row["lag_seconds"] < 600
    target = ("groups", "reset", group, "--topic", topic, "--to-latest", "--json")
    planned = ok(node, *target, "--dry-run").document
    assert [(one["before"], one["after"]) for one in planned] == [(4, 10), (None, 10)]
    assert committed(node, group, topic) == 4
    ok(node, *target)
    assert [committed(node, group, topic, p) for p in range(2)] == [10, 10]
    (found,) = ok(node, "groups", "describe", group, "--json").document
    assert [(one["lag"], one["lag_seconds"]) for one in found["partitions"]] == [(0, 0.0)] * 2
    assert ok(node, "groups", "delete", group, "--yes").out == f"{group} deleted\n"
    gone = headrace(node, "groups", "describe", group)
    assert gone.code == 1
    assert json.dumps(group)[1:-1] in gone.err


def test_a_group_with_members_is_not_reset(node: Node, topic: str) -> None:
    group = unique_name("group")
    with consumer(node, group_id=group, **EARLIEST) as client:
        client.subscribe([topic])
        polled_until([client], lambda: len(client.assignment()) == 1)
        done = headrace(node, "groups", "reset", group, "--topic", topic, "--to-earliest")
        assert done.code == 1
        assert "stop its consumers first" in done.err
        shown = ok(node, "groups", "describe", group, "--members").out
        assert f"{topic}[0]" in shown


# Bad input


def join(connection: Connection, group: str, member_id: str = "", **changes: Any) -> Any:
    fields = {
        "group_id": group,
        "session_timeout": seconds(changes.pop("session_s", 6)),
        "rebalance_timeout": seconds(10),
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\x00\x00\x00\x00\x00\x00"}],
    }
    find(connection, group)
    return connection.call("join_group", 3, **{**fields, **changes})


def seconds(number: float) -> Any:
    import datetime

    return datetime.timedelta(seconds=number)


def find(connection: Connection, group: str) -> None:
    eventually(
        lambda: connection.call("find_coordinator", 2, key=group, key_type=0),
        expect=lambda answer: answer.error_code.value == 0,
    )


def sync(connection: Connection, group: str, joined: Any) -> Any:
    return connection.call(
        "sync_group",
        2,
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[{"member_id": joined.member_id, "assignment": b""}],
    )


def test_bad_requests_get_kafkas_codes(node: Node, topic: str) -> None:
    """CON-3: unknown members, stale generations, empty names, odd timeouts."""
    group = unique_name("group")
    with Connection(node.port) as connection:
        assert join(connection, group, "ghost").error_code.name == "unknown_member_id"
        assert join(connection, group, session_s=1).error_code.name == "invalid_session_timeout"
        joined = join(connection, group)
        assert sync(connection, group, joined).error_code.name == "none"
        other = join(connection, group, protocols=[{"name": "odd", "metadata": b""}])
        assert other.error_code.name == "inconsistent_group_protocol"
        for member, generation, code in (
            (joined.member_id, joined.generation_id, "none"),
            (joined.member_id, 99, "illegal_generation"),
            ("ghost", joined.generation_id, "unknown_member_id"),
        ):
            beat = connection.call(
                "heartbeat", 0, group_id=group, generation_id=generation, member_id=member
            )
            assert beat.error_code.name == code
        left = connection.call("leave_group", 0, group_id=group, member_id="ghost")
        assert left.error_code.name == "unknown_member_id"
        left = connection.call("leave_group", 0, group_id=group, member_id=joined.member_id)
        assert left.error_code.name == "none"


def test_bad_commits_get_kafkas_codes(node: Node, topic: str) -> None:
    """CON-6: unknown partitions, long metadata, foreign groups."""
    group = unique_name("group")
    with Connection(node.port) as connection:
        find(connection, group)

        def commit(place: str, partition: int, metadata: str = "", **changes: Any) -> str:
            answer = connection.call(
                "offset_commit",
                7,
                group_id=group,
                topics=[
                    {
                        "name": place,
                        "partitions": [
                            {
                                "partition_index": partition,
                                "committed_offset": 1,
                                "committed_metadata": metadata,
                            }
                        ],
                    }
                ],
                **{"generation_id_or_member_epoch": -1, "member_id": "", **changes},
            )
            name: str = answer.topics[0].partitions[0].error_code.name
            return name

        assert commit(topic, 0) == "none"
        assert commit(topic, 9) == "unknown_topic_or_partition"
        assert commit("nowhere", 0) == "unknown_topic_or_partition"
        assert commit(topic, 0, "x" * 5000) == "offset_metadata_too_large"
        foreign: Any = {"generation_id_or_member_epoch": 3, "member_id": "ghost"}
        assert commit(topic, 0, **foreign) == "unknown_member_id"


def test_a_group_without_a_name_keeps_offsets_as_of_old(node: Node, topic: str) -> None:
    """CON-6: clients from before there were members commit so; only members need a name."""
    place = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    with Connection(node.port) as connection:
        find(connection, "")
        fields = {"generation_id_or_member_epoch": -1, "member_id": ""}
        commit = {"group_id": "", "topics": [{"name": topic, "partitions": [place]}], **fields}
        eventually(
            lambda: connection.call("offset_commit", 7, **commit).topics[0].partitions[0],
            expect=lambda answer: answer.error_code.name == "none",
        )
        asked = [{"name": topic, "partition_indexes": [0]}]
        fetched = connection.call("offset_fetch", 5, group_id="", topics=asked)
        assert fetched.topics[0].partitions[0].committed_offset == 7
        assert join(connection, "").error_code.name == "invalid_group_id"
        gone = connection.call("delete_groups", 1, groups_names=[""])
        assert gone.results[0].error_code.name == "none"
