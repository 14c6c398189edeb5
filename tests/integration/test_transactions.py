"""Transactions with real clients: all records or none, and none of a fenced producer."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import aiokafka
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from tests.clients.librdkafka import (
    SECONDS_MAX,
    consumer,
    create_topic,
    producer,
    read_values,
    unique_name,
)
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Node, eventually

StartNode = Callable[..., Node]

COMMITTED = {"isolation_level": "read_committed"}
UNCOMMITTED = {"isolation_level": "read_uncommitted"}


@contextmanager
def transactional(node: Node, name: str = "", **config: object) -> Iterator[Producer]:
    """A producer that owns its transactional id."""
    name = name or unique_name("transactional-id")
    # A transaction that a test leaves open is dropped, rather than waited for.
    client = producer(node, transactional_id=name, **config)
    client.init_transactions(SECONDS_MAX)
    yield client
    client.purge()


def send(client: Producer, topic: str, *texts: str, partition: int = 0) -> None:
    """Produce within a transaction and wait until the broker has it."""
    for text in texts:
        client.produce(topic, text.encode(), partition=partition)
    assert client.flush(SECONDS_MAX) == 0


def texts(node: Node, topic: str, **options: object) -> list[str]:
    return [(value or b"").decode() for value in read_values(node, topic, **options)]


def test_a_transaction_appears_as_a_whole(node: Node) -> None:
    """PRD-16, DEL-5: over several partitions, when it is committed and not before."""
    topic = create_topic(node, partitions=3)
    with transactional(node) as client:
        client.begin_transaction()
        for partition in range(3):
            send(client, topic, f"in {partition}", partition=partition)
        for partition in range(3):
            assert texts(node, topic, partition=partition, **COMMITTED) == []
            assert texts(node, topic, partition=partition, **UNCOMMITTED) == [f"in {partition}"]
        client.commit_transaction(SECONDS_MAX)
    for partition in range(3):
        found = eventually(partial(texts, node, topic, partition=partition, **COMMITTED))
        assert found == [f"in {partition}"]


def test_transactions_follow_each_other_where_the_broker_sets_the_time(node: Node) -> None:
    """PRD-16: a rewritten batch is still recognised as the producer's."""
    topic = create_topic(node, message_timestamp_type="LogAppendTime")
    with transactional(node) as client:
        for number in range(3):
            client.begin_transaction()
            send(client, topic, f"{number} first")
            send(client, topic, f"{number} second")
            client.commit_transaction(SECONDS_MAX)
    expected = [f"{number} {part}" for number in range(3) for part in ("first", "second")]
    eventually(lambda: texts(node, topic, **COMMITTED), expect=lambda found: found == expected)


def test_an_aborted_transaction_is_never_seen(node: Node, topic: str) -> None:
    """PRD-16, DEL-5"""
    with transactional(node) as client:
        client.begin_transaction()
        send(client, topic, "dropped")
        client.abort_transaction(SECONDS_MAX)
        client.begin_transaction()
        send(client, topic, "kept")
        client.commit_transaction(SECONDS_MAX)
    eventually(lambda: texts(node, topic, **COMMITTED), expect=lambda found: found == ["kept"])
    assert texts(node, topic, **UNCOMMITTED) == ["dropped", "kept"]


def test_records_of_others_wait_for_an_open_transaction(node: Node, topic: str) -> None:
    """DEL-5: a careful reader stops at the first record whose fate is not known."""
    with transactional(node) as client:
        client.begin_transaction()
        send(client, topic, "in doubt")
        send(producer(node), topic, "plain")
        assert texts(node, topic, **COMMITTED) == []
        client.abort_transaction(SECONDS_MAX)
    eventually(lambda: texts(node, topic, **COMMITTED), expect=lambda found: found == ["plain"])


def test_many_transactions_of_many_producers(node: Node) -> None:
    """DEL-5: interleaved in one partition, committed and aborted at random."""
    topic = create_topic(node)
    dice = random.Random(7)
    expected = []
    with transactional(node) as one, transactional(node) as two, transactional(node) as three:
        for turn in range(40):
            clients = dice.sample([one, two, three], 3)
            for client in clients:
                client.begin_transaction()
            for client in clients:
                send(client, topic, *(f"{turn} {id(client)} {n} {'x' * 50}" for n in range(5)))
            for client in clients:
                if dice.random() < 0.5:
                    client.commit_transaction(SECONDS_MAX)
                    expected += [f"{turn} {id(client)} {n} {'x' * 50}" for n in range(5)]
                else:
                    client.abort_transaction(SECONDS_MAX)
    found = eventually(
        lambda: texts(node, topic, **COMMITTED), expect=lambda found: len(found) == len(expected)
    )
    assert sorted(found) == sorted(expected)
    # In small slices too, each with the aborts that it needs.
    sliced = texts(node, topic, max_partition_fetch_bytes=1000, **COMMITTED)
    assert sliced == found


def test_the_last_owner_of_an_id_is_locked_out(node: Node, topic: str) -> None:
    """PRD-16, PUL-7: the newer producer wins, and what the older had open is aborted."""
    name = unique_name("fenced")
    with transactional(node, name) as old:
        old.begin_transaction()
        send(old, topic, "of the old one")
        with transactional(node, name) as new:
            new.begin_transaction()
            send(new, topic, "of the new one")
            new.commit_transaction(SECONDS_MAX)
        with pytest.raises(KafkaException) as refused:
            old.commit_transaction(SECONDS_MAX)
        assert refused.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    assert texts(node, topic, **COMMITTED) == ["of the new one"]


def test_a_transaction_that_lasts_too_long_is_aborted(start_node: StartNode) -> None:
    """DEL-5: its readers do not wait for a producer that is gone."""
    node = start_node(transaction_abort_timed_out_transaction_cleanup_interval_ms=100)
    topic = create_topic(node)
    with transactional(node, transaction_timeout_ms=1000, message_timeout_ms=1000) as client:
        client.begin_transaction()
        send(client, topic, "too slow")
        send(producer(node), topic, "plain")
        eventually(lambda: texts(node, topic, **COMMITTED), expect=lambda found: found == ["plain"])
        with pytest.raises(KafkaException):
            client.commit_transaction(SECONDS_MAX)
    assert texts(node, topic, **COMMITTED) == ["plain"]


def test_offsets_are_committed_with_their_results(node: Node) -> None:
    """DEL-4: consume, process, produce, in one transaction."""
    source, target = create_topic(node), create_topic(node)
    send(producer(node), source, "1", "2", "3")
    place = TopicPartition(source, 0)

    def transfer(client: Producer, *, is_commit: bool) -> list[str]:
        """Move everything that is not moved yet."""
        with consumer(node, group_id=f"of {source}") as reader:
            (committed,) = reader.committed([place], SECONDS_MAX)
            reader.assign([TopicPartition(source, 0, max(committed.offset, 0))])
            client.begin_transaction()
            moved = []
            while (message := reader.poll(SECONDS_MAX)) is not None and message.error() is None:
                moved.append((message.value() or b"").decode())
                client.produce(target, f"{moved[-1]}!".encode(), partition=0)
            offsets = reader.position(reader.assignment())
            client.send_offsets_to_transaction(
                offsets, reader.consumer_group_metadata(), SECONDS_MAX
            )
            if is_commit:
                client.commit_transaction(SECONDS_MAX)
            else:
                client.abort_transaction(SECONDS_MAX)
        return moved

    with transactional(node) as client:
        assert transfer(client, is_commit=False) == ["1", "2", "3"]
        assert transfer(client, is_commit=True) == ["1", "2", "3"]
        send(producer(node), source, "4")
        assert transfer(client, is_commit=True) == ["4"]
    eventually(
        lambda: texts(node, target, **COMMITTED),
        expect=lambda found: found == ["1!", "2!", "3!", "4!"],
    )


@pytest.mark.parametrize("ending", [Node.stop, Node.kill], ids=["stop", "kill"])
@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_an_open_transaction_outlives_the_broker(
    start_node: StartNode, ending: Callable[[Node], int], is_commit: bool
) -> None:
    """LOG-11, DEL-5: it continues unchanged, in the log and in the coordinator."""
    node = start_node()
    topic = create_topic(node)
    with transactional(node) as client:
        client.begin_transaction()
        send(client, topic, "before")
        ending(node)
        node.start()
        assert texts(node, topic, **COMMITTED) == []
        send(client, topic, "after")
        if is_commit:
            client.commit_transaction(SECONDS_MAX)
        else:
            client.abort_transaction(SECONDS_MAX)
    expected = ["before", "after"] if is_commit else []
    send(producer(node), topic, "plain")
    eventually(
        lambda: texts(node, topic, **COMMITTED),
        expect=lambda found: found == [*expected, "plain"],
    )


def test_a_committed_transaction_is_whole_after_a_crash(start_node: StartNode) -> None:
    """DEL-5: an acknowledged commit holds in every partition."""
    node = start_node()
    topic = create_topic(node, partitions=6)
    with transactional(node) as client:
        for turn in range(5):
            client.begin_transaction()
            for partition in range(6):
                client.produce(topic, b"%d" % turn, partition=partition)
            client.commit_transaction(SECONDS_MAX)
            node.kill()
            node.start()
    for partition in range(6):
        eventually(
            partial(texts, node, topic, partition=partition, **COMMITTED),
            expect=lambda found: found == ["0", "1", "2", "3", "4"],
        )


async def test_aiokafka(node: Node, topic: str) -> None:
    """PRD-16"""
    client = aiokafka.AIOKafkaProducer(
        bootstrap_servers=node.address, transactional_id=unique_name("aiokafka")
    )
    await client.start()
    try:
        async with client.transaction():
            await client.send_and_wait(topic, b"kept", partition=0)
        await client.begin_transaction()
        await client.send_and_wait(topic, b"dropped", partition=0)
        await client.abort_transaction()
        async with client.transaction():
            await client.send_and_wait(topic, b"kept too", partition=0)
            offsets = {aiokafka.TopicPartition(topic, 0): 2}
            await client.send_offsets_to_transaction(offsets, f"of {topic}")
    finally:
        await client.stop()
    eventually(
        lambda: texts(node, topic, **COMMITTED), expect=lambda found: found == ["kept", "kept too"]
    )


def test_java_producers_and_tools(kafka_release: KafkaRelease, node: Node, topic: str) -> None:
    """PRD-16, OPS-1: a client of transaction.version 2, and kafka-transactions."""
    name = unique_name("java")
    kafka_release.run(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "2000", "--record-size", "100"),
        *("--throughput", "4000", "--transactional-id", name, "--transaction-duration-ms", "20"),
        *("--bootstrap-server", node.address),
    )
    with consumer(node, **COMMITTED) as reader:
        reader.assign([TopicPartition(topic, 0, 0)])
        read = 0
        while (message := reader.poll(SECONDS_MAX)) is not None and message.error() is None:
            read += 1
    assert read == 2000
    tool = partial(kafka_release.run, "kafka-transactions", "--bootstrap-server", node.address)
    assert name in tool("list")
    described = tool("describe", "--transactional-id", name)
    assert "CompleteCommit" in described
    assert int(described.splitlines()[1].split()[3]) > 1, "each transaction has its own epoch"


def test_a_hanging_transaction_is_aborted_by_hand(
    kafka_release: KafkaRelease, node: Node, topic: str
) -> None:
    """OPS-1: in the partition, whatever the coordinator thinks."""
    with transactional(node, transaction_timeout_ms=600_000) as client:
        client.begin_transaction()
        send(client, topic, "hangs")
        kafka_release.run(
            "kafka-transactions",
            *("--bootstrap-server", node.address, "abort"),
            *("--topic", topic, "--partition", "0", "--start-offset", "0"),
        )
        send(producer(node), topic, "plain")
        assert texts(node, topic, **COMMITTED) == ["plain"]
