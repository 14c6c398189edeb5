"""`headrace.ShareConsumer` on a running broker: records as work that is shared out."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import headrace
from headrace.client.descriptions import ConfigChange
from tests.clients.librdkafka import create_topic, numbered, produce, unique_name
from tests.processes.nodes import Flavour, Node, eventually

RESET = "share.auto.offset.reset"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, flavour: Flavour) -> Iterator[Node]:
    settings = {
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.share.heartbeat.interval.ms": "300",
        "group.share.min.heartbeat.interval.ms": "100",
    }
    own = Node(flavour, tmp_path_factory.mktemp("share"), settings)
    own.start()
    yield own
    if own.is_running:
        own.stop()


@pytest.fixture
def group(node: Node) -> str:
    """A share group that begins at the first record."""
    name = unique_name("share")
    with headrace.Admin(node.address) as admin:
        changes = [ConfigChange(name=RESET, operation="set", value="earliest")]
        assert admin.configs.alter("group", name, changes).error is None
    return name


def properties(node: Node, group: str, **more: object) -> dict[str, Any]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {"bootstrap.servers": node.address, "group.id": group, "log_level": 0, **given}


def take(consumer: headrace.ShareConsumer, count: int) -> list[headrace.Message]:
    found: list[headrace.Message] = []

    def grown() -> bool:
        found.extend(consumer.poll(0.2))
        return len(found) >= count

    eventually(grown, seconds=45)
    return found


def values(messages: list[headrace.Message]) -> list[bytes | None]:
    return [message.value() for message in messages]


def test_records_are_accepted_by_the_next_poll(node: Node, group: str) -> None:
    """PUL-3: none comes twice, also for a later member."""
    topic = create_topic(node)
    produce(node, topic, numbered(20))
    with headrace.ShareConsumer(properties(node, group)) as consumer:
        consumer.subscribe(topic)
        assert Counter(values(take(consumer, 20))) == Counter(b"%d" % n for n in range(20))
        consumer.commit()
    produce(node, topic, numbered(1))
    with headrace.ShareConsumer(properties(node, group)) as consumer:
        consumer.subscribe(topic)
        assert values(take(consumer, 1)) == [b"0"]


def test_released_work_comes_back_and_rejected_work_does_not(node: Node, group: str) -> None:
    """PUL-4"""
    topic = create_topic(node)
    produce(node, topic, numbered(3))
    settings = properties(node, group, share_acknowledgement_mode="explicit")
    with headrace.ShareConsumer(settings) as consumer:
        consumer.subscribe(topic)
        accepted, released, rejected = take(consumer, 3)
        consumer.accept(accepted)
        consumer.release(released)
        consumer.reject(rejected)
        consumer.commit()
        (again,) = take(consumer, 1)
        assert (again.value(), again.delivery_count()) == (released.value(), 2)
        consumer.accept(again)
        consumer.commit()


def test_members_share_one_partition(node: Node, group: str) -> None:
    """CON-5, PUL-3: with more members than partitions every member gets records."""
    topic = create_topic(node)
    settings = properties(node, group, max_poll_records=5)
    with headrace.ShareConsumer(settings) as one, headrace.ShareConsumer(settings) as two:
        seen: list[list[bytes | None]] = [[], []]
        for consumer in (one, two):
            consumer.subscribe(topic)
        produce(node, topic, numbered(200))

        def all_seen() -> bool:
            for index, consumer in enumerate((one, two)):
                seen[index] += values(consumer.poll(0.1))
            return len(seen[0]) + len(seen[1]) >= 200

        eventually(all_seen, seconds=45)
    assert Counter(seen[0] + seen[1]) == Counter(b"%d" % n for n in range(200))


def test_records_that_a_loop_leaves_come_first_next_time(node: Node, group: str) -> None:
    topic = create_topic(node)
    produce(node, topic, numbered(5))
    with headrace.ShareConsumer(properties(node, group)) as consumer:
        consumer.subscribe(topic)
        for message in consumer:
            assert message.value() == b"0"
            break
        assert values(take(consumer, 4)) == [b"1", b"2", b"3", b"4"]


async def test_with_asyncio(node: Node, group: str) -> None:
    """PUL-3"""
    topic = create_topic(node)
    produce(node, topic, numbered(10))
    seen: list[bytes | None] = []
    async with headrace.AsyncShareConsumer(properties(node, group)) as consumer:
        await consumer.subscribe(topic)
        async for message in consumer:
            seen.append(message.value())
            if len(seen) == 10:
                break
    assert seen == [b"%d" % n for n in range(10)]


def test_a_poll_is_bounded(node: Node, group: str) -> None:
    """CON-8"""
    with headrace.ShareConsumer(properties(node, group)) as consumer:
        consumer.subscribe(create_topic(node))
        assert consumer.poll(0.2) == []


def test_a_topic_that_is_missing_is_reported_and_waited_for(
    node: Node, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    """CON-8"""
    topic = unique_name()

    def make() -> None:
        eventually(lambda: f"topic does not exist yet: {topic}" in caplog.text)
        create_topic(node, name=topic)
        produce(node, topic, numbered(1))

    with headrace.ShareConsumer(properties(node, group)) as consumer, ThreadPoolExecutor() as pool:
        consumer.subscribe(topic)
        made = pool.submit(make)
        found = values(consumer.poll(60))
        made.result()
    assert found == [b"0"]
    assert caplog.text.count("does not exist") == 1
