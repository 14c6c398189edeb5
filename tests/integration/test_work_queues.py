"""Share groups as work queues: real clients, crashes, dead letters, transactions."""

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import headrace
from headrace.client.descriptions import ConfigChange
from tests.clients.librdkafka import (
    Sent,
    admin,
    create_topic,
    numbered,
    produce,
    producer,
    read,
    set_topic_config,
    unique_name,
)
from tests.clients.share_members import ACCEPT, REJECT, RELEASE, SETTINGS, Given, ShareMember
from tests.integration.conftest import StartNode
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Flavour, Node, eventually

KILLS = int(os.environ.get("HEADRACE_KILLS", "3"))
LETTERS = {"errors.deadletterqueue.auto.create.topics.enable": "true"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, flavour: Flavour) -> Iterator[Node]:
    letters = LETTERS if flavour.name == "headrace" else {}
    own = Node(flavour, tmp_path_factory.mktemp("queues"), SETTINGS | letters)
    own.start()
    yield own
    if own.is_running:
        own.stop()


def group_with(node: Node, **configs: object) -> str:
    """A share group that begins at the first record; configs have underscores for dots."""
    name = unique_name("queue")
    given = {"share.auto.offset.reset": "earliest"}
    given |= {key.replace("_", "."): str(value) for key, value in configs.items()}
    changes = [ConfigChange(name=key, operation="set", value=value) for key, value in given.items()]
    with headrace.Admin(node.address) as client:
        assert client.configs.alter("group", name, changes).error is None
    return name


def worker(node: Node, group: str, **more: object) -> headrace.ShareConsumer:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return headrace.ShareConsumer(
        {"bootstrap.servers": node.address, "group.id": group, "log_level": 0, **given}
    )


# --- clients --------------------------------------------------------------------------------------


def test_the_java_console_share_consumer(kafka_release: KafkaRelease, node: Node) -> None:
    """PUL-3: Kafka's own share consumer takes every record once."""
    topic, group = create_topic(node, partitions=3), group_with(node)
    for partition in range(3):
        produce(node, topic, numbered(20), partition=partition)
    options = ("--topic", topic, "--group", group, "--max-messages", "60", "--timeout-ms", "20000")
    told = kafka_release.run(
        "kafka-console-share-consumer", "--bootstrap-server", node.address, *options
    )
    lines = [line for line in told.splitlines() if line.isdecimal()]
    assert Counter(lines) == Counter(str(number) for number in range(20) for _ in range(3))


def test_records_that_java_rejects_are_not_delivered_again(
    kafka_release: KafkaRelease, node: Node
) -> None:
    topic, group = create_topic(node), group_with(node)
    produce(node, topic, numbered(5))
    options = ("--topic", topic, "--group", group, "--max-messages", "5", "--timeout-ms", "20000")
    kafka_release.run(
        "kafka-console-share-consumer",
        "--bootstrap-server",
        node.address,
        *options,
        "--reject",
    )
    produce(node, topic, [Sent(b"later")])
    with worker(node, group) as consumer:
        consumer.subscribe(topic)
        found = eventually(lambda: consumer.poll(0.5))
        assert [message.value() for message in found] == [b"later"]


def test_many_workers_do_each_task_once(node: Node) -> None:
    """RMQ-1: four workers on two partitions, one of which dies with its work undone."""
    topic, group = create_topic(node, partitions=2), group_with(node)
    for partition in range(2):
        produce(node, topic, numbered(100), partition=partition)
    dying = ShareMember(node, group, topic).join()
    dying.take(max_records=10, share_acquire_mode=1)
    done: Counter[tuple[int | None, bytes | None]] = Counter()
    lock = threading.Lock()

    def work() -> None:
        with worker(node, group, max_poll_records=7) as consumer:
            consumer.subscribe(topic)
            while sum(done.values()) < 200:
                for message in consumer.poll(0.2):
                    with lock:
                        done[message.partition(), message.value()] += 1
            consumer.commit()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    dying.connection.socket.close()
    for thread in threads:
        thread.join(60)
    assert done == Counter((p, b"%d" % n) for p in range(2) for n in range(100))


# --- crashes --------------------------------------------------------------------------------------


def test_a_crash_of_the_broker_loses_no_acknowledgement(start_node: StartNode) -> None:
    """RMQ-1, PUL-4: what was accepted is not delivered again, everything else is."""
    node = start_node(**{name.replace(".", "_"): value for name, value in SETTINGS.items()})
    topic = create_topic(node)
    produce(node, topic, numbered(20), linger_ms=100)
    group = group_with(node)
    with ShareMember(node, group, topic).join() as ada:
        assert ada.take() == [Given(0, 19, 1)]
        types = [ACCEPT] * 5 + [RELEASE] * 5 + [REJECT] * 5
        assert ada.acknowledge((0, 14, types)) == (0, 0)
        node.kill()
    node.start()
    with ShareMember(node, group, topic).join() as bob:
        given = bob.take()
        assert given == [Given(5, 9, 2), Given(15, 19, 1)]


def test_kills_at_any_moment_neither_lose_nor_repeat_accepted_work(start_node: StartNode) -> None:
    """RMQ-1: `HEADRACE_KILLS` sets the number; the last kill comes right after an answer."""
    node = start_node(**{name.replace(".", "_"): value for name, value in SETTINGS.items()})
    topic = create_topic(node)
    for _ in range(20):
        produce(node, topic, numbered(10), linger_ms=20)
    group = group_with(node, share_delivery_count_limit=10)
    chance = random.Random(11)
    accepted: set[int] = set()
    for _ in range(KILLS):
        with ShareMember(node, group, topic).join() as worker_:
            for _ in range(chance.randint(1, 4)):
                accepted |= work_some(worker_, chance, accepted)
            node.kill()
        node.start()
    with ShareMember(node, group, topic).join() as last:
        while len(accepted) < 200:
            accepted |= work_some(last, None, accepted)
        assert last.fetch(max_wait_ms=300).given == []
    assert accepted == set(range(200))


def work_some(member: ShareMember, chance: random.Random | None, accepted: set[int]) -> set[int]:
    """Take some tasks, and accept all or a random half; which ones the broker has as accepted."""
    done: set[int] = set()
    given = member.take(max_records=30, share_acquire_mode=1)
    said = []
    for first, last, _count in given:
        offsets = range(first, last + 1)
        assert not accepted & set(offsets), "accepted work came again"
        kinds = [RELEASE if chance and chance.random() < 0.5 else ACCEPT for _ in offsets]
        said.append((first, last, kinds))
        done |= {offset for offset, kind in zip(offsets, kinds, strict=True) if kind == ACCEPT}
    assert member.acknowledge(*said) == (0, 0)
    return done


def test_the_start_of_a_group_survives_a_crash(start_node: StartNode, only_headrace: None) -> None:
    """Kafka forgets it if nothing was acknowledged, and begins at the new end."""
    node = start_node(**{name.replace(".", "_"): value for name, value in SETTINGS.items()})
    topic = create_topic(node)
    produce(node, topic, numbered(3))
    group = unique_name("queue")
    with ShareMember(node, group, topic).join() as ada:
        assert ada.fetch().given == []
        produce(node, topic, numbered(2), linger_ms=100)
        node.kill()
    node.start()
    with ShareMember(node, group, topic).join() as bob:
        assert bob.take()[0].first == 3


# --- transactions ---------------------------------------------------------------------------------


def transact(node: Node, topic: str, value: bytes, *, commits: bool) -> None:
    client = producer(node, transactional_id=unique_name("tx"))
    client.init_transactions()
    client.begin_transaction()
    client.produce(topic, value, partition=0)
    client.flush(30)
    if commits:
        client.commit_transaction()
    else:
        client.abort_transaction()


def test_a_group_may_want_committed_records_only(node: Node) -> None:
    """DEL-4"""
    topic = create_topic(node)
    for value in (b"a", b"b", b"c", b"d"):
        transact(node, topic, value, commits=value in b"bd")
    group = group_with(node, share_isolation_level="read_committed")
    seen: list[bytes | None] = []
    with worker(node, group) as consumer:
        consumer.subscribe(topic)

        def grown() -> bool:
            seen.extend(message.value() for message in consumer.poll(0.2))
            return len(seen) >= 2

        eventually(grown)
        seen.extend(message.value() for message in consumer.poll(0.5))
    assert seen == [b"b", b"d"]


# --- dead letters ---------------------------------------------------------------------------------


def letters_of(node: Node, topic: str, count: int) -> list[dict[str, Any]]:
    """The headers of so many dead letters, once they are there."""
    client = admin(node)
    eventually(lambda: topic in client.list_topics(timeout=10).topics)
    found = eventually(lambda: read(node, topic), expect=lambda some: len(some) >= count)
    return [dict(message.headers() or ()) for message in found]


def test_rejected_and_exhausted_records_become_dead_letters(
    node: Node, only_headrace: None
) -> None:
    """PUL-6: with a copy, and with headers for group, offset, deliveries and reason."""
    topic, target = create_topic(node), f"dlq.{unique_name()}"
    produce(node, topic, [Sent(b"bad", b"k", (("trace", b"7"),)), Sent(b"worse")], linger_ms=100)
    group = group_with(
        node,
        share_delivery_count_limit=2,
        errors_deadletterqueue_topic_name=target,
        errors_deadletterqueue_copy_record_enable="true",
    )
    with ShareMember(node, group, topic).join() as ada:
        assert ada.take() == [Given(0, 1, 1)]
        assert ada.acknowledge((0, 0, [REJECT]), (1, 1, [RELEASE])) == (0, 0)
        assert ada.take() == [Given(1, 1, 2)]
        assert ada.acknowledge((1, 1, [RELEASE])) == (0, 0)
        first, second = letters_of(node, target, 2)
        assert ada.fetch(max_wait_ms=300).given == []
    origin = {
        "__dlq.errors.topic": topic.encode(),
        "__dlq.errors.partition": b"0",
        "__dlq.errors.group": group.encode(),
    }
    assert first.pop("__dlq.errors.message") != second.pop("__dlq.errors.message")
    expected = {"__dlq.errors.offset": b"0", "__dlq.errors.delivery.count": b"1", "trace": b"7"}
    assert first == origin | expected
    assert second == origin | {"__dlq.errors.offset": b"1", "__dlq.errors.delivery.count": b"2"}
    copies = [(one.key(), one.value()) for one in read(node, target)]
    assert copies == [(b"k", b"bad"), (None, b"worse")]


def test_a_dead_letter_points_at_its_record_unless_copies_are_wanted(
    node: Node, only_headrace: None
) -> None:
    topic, target = create_topic(node), f"dlq.{unique_name()}"
    produce(node, topic, numbered(3), linger_ms=100)
    group = group_with(node, errors_deadletterqueue_topic_name=target)
    with ShareMember(node, group, topic).join() as ada:
        ada.take()
        assert ada.acknowledge((0, 2, [REJECT])) == (0, 0)
        letters = letters_of(node, target, 3)
    assert [one["__dlq.errors.offset"] for one in letters] == [b"0", b"1", b"2"]
    assert [message.value() for message in read(node, target)] == [None, None, None]


def test_a_topic_must_admit_dead_letters(node: Node, only_headrace: None) -> None:
    """A share group must not serve to write to a topic of other users."""
    topic = create_topic(node)
    target = create_topic(node, name=f"dlq.{unique_name()}")
    produce(node, topic, numbered(1))
    group = group_with(node, errors_deadletterqueue_topic_name=target)
    with ShareMember(node, group, topic).join() as ada:
        ada.take()
        assert ada.acknowledge((0, 0, [REJECT])) == (0, 0)
        eventually(lambda: "archived without a dead letter" in node.log_path.read_text())
        set_topic_config(node, target, "errors.deadletterqueue.group.enable", "true")
        produce(node, topic, numbered(1))
        assert ada.take() == [Given(1, 1, 1)]
        assert ada.acknowledge((1, 1, [REJECT])) == (0, 0)
        (letter,) = letters_of(node, target, 1)
    assert letter["__dlq.errors.offset"] == b"1"


def test_a_dead_letter_topic_has_the_right_prefix(node: Node, only_headrace: None) -> None:
    change = ConfigChange(name="errors.deadletterqueue.topic.name", operation="set", value="orders")
    with headrace.Admin(node.address) as client:
        answer = client.configs.alter("group", unique_name("queue"), [change])
    assert "must begin with dlq." in str(answer.message)


def test_dead_letters_survive_a_crash(start_node: StartNode, only_headrace: None) -> None:
    """PUL-6: given up but not yet written, because the letters' partition cannot take them."""
    settings = SETTINGS | {"group.share.delivery.count.limit": "2"}
    node = start_node(**{name.replace(".", "_"): value for name, value in settings.items()})
    topic = create_topic(node)
    target = create_topic(
        node, name="dlq.late", errors_deadletterqueue_group_enable="true", max_message_bytes=1
    )
    produce(node, topic, numbered(4), linger_ms=100)
    group = group_with(node, errors_deadletterqueue_topic_name=target)
    with ShareMember(node, group, topic).join() as ada:
        ada.take()
        assert ada.acknowledge((0, 3, [REJECT])) == (0, 0)
        eventually(lambda: "dead letters not written" in node.log_path.read_text())
        node.kill()
    node.start()
    set_topic_config(node, target, "max.message.bytes", "1000000")
    with ShareMember(node, group, topic).join() as bob:
        assert bob.fetch(max_wait_ms=300).given == []
        letters = letters_of(node, target, 4)
    assert {one["__dlq.errors.offset"] for one in letters} == {b"0", b"1", b"2", b"3"}
