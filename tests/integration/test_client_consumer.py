"""`headrace.Consumer` on a running broker: groups, commits, seeks, rebalance listeners."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

import headrace
from headrace import TopicPartition
from tests.clients.librdkafka import create_topic, numbered, produce, producer, unique_name
from tests.processes.nodes import HOST, Node, eventually, free_port

StartNode = Callable[..., Node]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, flavour: Any) -> Any:
    """A node whose groups do not wait for more members before they start."""
    own = Node(
        flavour,
        tmp_path_factory.mktemp("consumers"),
        {
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "500",
            "group.consumer.heartbeat.interval.ms": "300",
            "group.consumer.min.heartbeat.interval.ms": "100",
        },
    )
    own.start()
    yield own
    if own.is_running:
        own.stop()


def properties(node: Node, **more: object) -> dict[str, Any]:
    """Settings are given with underscores for dots."""
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {
        "bootstrap.servers": node.address,
        "log_level": 0,
        "group.id": unique_name("group"),
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 300,
        "fetch.wait.max.ms": 50,
        "reconnect.backoff.max.ms": 200,
        **given,
    }


def take(consumer: headrace.Consumer, count: int) -> list[Any]:
    """The values of the next records, a few more if they came together."""
    values: list[Any] = []

    def grown() -> bool:
        values.extend(message.value() for message in consumer.poll(0.2))
        return len(values) >= count

    eventually(grown)
    return values


def filled_topic(node: Node, *, partitions: int = 1, count: int = 10) -> str:
    """A topic with the same records in each partition."""
    topic = create_topic(node, partitions=partitions)
    for partition in range(partitions):
        produce(node, topic, numbered(count), partition=partition)
    return topic


def texts(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


class Listener(headrace.RebalanceListener):
    """Records its calls."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, list[int]]] = []

    def on_partitions_assigned(
        self, consumer: headrace.Consumer, partitions: Sequence[TopicPartition]
    ) -> None:
        self.heard.append(("assigned", sorted(part.partition for part in partitions)))

    def on_partitions_revoked(
        self, consumer: headrace.Consumer, partitions: Sequence[TopicPartition]
    ) -> None:
        self.heard.append(("revoked", sorted(part.partition for part in partitions)))


def test_subscribe_by_list_by_pattern_or_assign(node: Node) -> None:
    """CON-1"""
    prefix = unique_name("prefix")
    topics = [create_topic(node, name=f"{prefix}-{letter}") for letter in "ab"]
    for topic in topics:
        produce(node, topic, numbered(3))
    for subscription in (topics, f"^{prefix}-.*"):
        with headrace.Consumer(properties(node)) as consumer:
            consumer.subscribe(subscription)
            assert sorted(take(consumer, 6)) == sorted(texts(0, 1, 2) * 2)
    with headrace.Consumer({"bootstrap.servers": node.address}) as consumer:
        consumer.assign([TopicPartition(topics[0], 0, 1)])
        assert take(consumer, 2) == texts(1, 2)


def test_without_a_group_everyone_gets_everything(node: Node) -> None:
    """CON-2, CON-2(b): reading deletes nothing."""
    topic = filled_topic(node, partitions=2, count=5)
    for _ in range(2):
        consumer = headrace.Consumer(
            {"bootstrap.servers": node.address, "auto.offset.reset": "earliest"}
        )
        with consumer:
            consumer.assign(topic)
            assert sorted(take(consumer, 10)) == sorted(texts(*range(5)) * 2)


def test_a_subscription_without_a_group_is_refused() -> None:
    consumer = headrace.Consumer("localhost")
    with pytest.raises(headrace.InvalidProperty, match=r"needs group\.id"):
        consumer.subscribe("anything")


@pytest.mark.parametrize("protocol", ["classic", "cooperative", "consumer"])
def test_members_share_the_partitions(node: Node, protocol: str) -> None:
    """CON-3, CON-4, CON-5: 4 partitions over 1, 2 and again 1 members."""
    topic = create_topic(node, partitions=4)
    settings = properties(node, **_protocol(protocol))
    with headrace.Consumer(settings) as first:
        first.subscribe(topic)
        settle([first], [4])
        with headrace.Consumer(settings) as second:
            second.subscribe(topic)
            settle([first, second], [2, 2])
            owned = {part.partition for one in (first, second) for part in one.assignment()}
            assert owned == {0, 1, 2, 3}
        settle([first], [4])


def test_more_members_than_partitions_leave_some_idle(node: Node) -> None:
    """CON-3"""
    topic = create_topic(node, partitions=2)
    settings = properties(node)
    with ExitStack() as stack:
        members = [stack.enter_context(headrace.Consumer(settings)) for _ in range(3)]
        for member in members:
            member.subscribe(topic)
        settle(members, [0, 1, 1])


def test_a_consumer_resumes_at_its_commit(node: Node) -> None:
    """CON-6, CON-7"""
    topic = filled_topic(node)
    settings = properties(node, enable_auto_commit=False, max_poll_records=4)
    with headrace.Consumer(settings) as consumer:
        consumer.subscribe(topic)
        assert take(consumer, 4) == texts(0, 1, 2, 3)
        consumer.commit()
        assert take(consumer, 4) == texts(4, 5, 6, 7)
        (committed,) = consumer.committed([TopicPartition(topic, 0)])
        assert (committed.offset, consumer.position(committed)) == (4, 8)
    with headrace.Consumer(settings) as consumer:
        consumer.subscribe(topic)
        assert take(consumer, 4) == texts(4, 5, 6, 7)


def test_poll_is_bounded() -> None:
    """CON-8, CON-8(b): also without a broker."""
    nobody = f"{HOST}:{free_port()}"
    consumer = headrace.Consumer({"bootstrap.servers": nobody, "group.id": "g", "log_level": 0})
    consumer.subscribe("anything")
    before = time.monotonic()
    assert consumer.poll(0.2) == []
    assert time.monotonic() - before < 20
    consumer.close()


def test_requests_without_a_broker_are_bounded() -> None:
    """CON-8(b)"""
    nobody = f"{HOST}:{free_port()}"
    with headrace.Consumer(
        {"bootstrap.servers": nobody, "default.api.timeout.ms": 200, "log_level": 0}
    ) as consumer:
        with pytest.raises(headrace.HeadraceError):
            consumer.assign("anything")
        with pytest.raises(TimeoutError):
            consumer.committed([TopicPartition("anything", 0)])


def test_progress_past_a_record_above_the_limit(node: Node, topic: str) -> None:
    """CON-9"""
    produce(node, topic, [numbered(1, size=200_000)[0], *numbered(2)])
    limits = {"fetch_message_max_bytes": 1000, "fetch_max_bytes": 1000, "message_max_bytes": 1000}
    with headrace.Consumer(properties(node, **limits)) as consumer:
        consumer.assign(topic)
        assert [len(value or b"") for value in take(consumer, 3)] == [200_000, 1, 1]


def test_a_member_that_is_too_slow_is_removed_and_its_commit_fails(node: Node) -> None:
    """CON-10, CON-10(b): others have its partitions by then."""
    topic = filled_topic(node)
    settings = properties(
        node, enable_auto_commit=False, session_timeout_ms=1000, max_poll_interval_ms=1000
    )
    slow, other = headrace.Consumer(settings), headrace.Consumer(settings)
    with slow, other:
        slow.subscribe(topic)
        take(slow, 10)
        other.subscribe(topic)
        assert take(other, 10) == texts(*range(10))
        with pytest.raises(headrace.CommitFailed):
            slow.commit()


@pytest.mark.parametrize("protocol", ["classic", "cooperative", "consumer"])
def test_a_listener_is_called_before_and_after_a_rebalance(node: Node, protocol: str) -> None:
    """CON-11: in the poll thread, so nothing needs a lock."""
    topic = create_topic(node, partitions=2)
    settings = properties(node, **_protocol(protocol))
    listener = Listener()
    with headrace.Consumer(settings) as first:
        first.subscribe(topic, listener)
        settle([first], [2])
        with headrace.Consumer(settings) as second:
            second.subscribe(topic)
            settle([first, second], [1, 1])
        settle([first], [2])
    moves = [name for name, partitions in listener.heard if partitions]
    assert moves[:3] == ["assigned", "revoked", "assigned"]
    assert moves[-1] == "revoked"


@pytest.mark.parametrize("protocol", ["classic", "cooperative", "consumer"])
def test_a_listener_commits_and_seeks(node: Node, protocol: str) -> None:
    """CON-11: save offsets before, go to one's own after."""
    topic = filled_topic(node, partitions=2)
    offsets: dict[int, int] = {0: 7, 1: 9}

    class OwnOffsets(headrace.RebalanceListener):
        def on_partitions_assigned(
            self, consumer: headrace.Consumer, partitions: Sequence[TopicPartition]
        ) -> None:
            for part in partitions:
                consumer.seek(part, offsets[part.partition])

        def on_partitions_revoked(
            self, consumer: headrace.Consumer, partitions: Sequence[TopicPartition]
        ) -> None:
            consumer.commit()

    settings = properties(node, enable_auto_commit=False, **_protocol(protocol))
    with headrace.Consumer(settings) as consumer:
        consumer.subscribe(topic, OwnOffsets())
        assert sorted(take(consumer, 4)) == texts(7, 8, 9, 9)
    with headrace.Consumer(settings) as consumer:
        parts = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        assert [part.offset for part in consumer.committed(parts)] == [10, 10]


def test_auto_commit_counts_only_processed_records(node: Node) -> None:
    """CON-12: a record is processed when the next is asked for, not when it is handed out."""
    topic = filled_topic(node)
    settings = properties(node, auto_commit_interval_ms=50)

    def fail_at(consumer: headrace.Consumer, value: bytes) -> None:
        for message in consumer:
            if message.value() == value:
                raise ZeroDivisionError

    consumer = headrace.Consumer(settings)
    consumer.subscribe(topic)
    with pytest.raises(ZeroDivisionError), consumer:
        fail_at(consumer, b"6")
    with headrace.Consumer(settings) as second:
        second.subscribe(topic)
        assert take(second, 4) == texts(6, 7, 8, 9)


def test_auto_commit_needs_no_call(node: Node) -> None:
    """CON-12"""
    topic = filled_topic(node)
    with headrace.Consumer(properties(node, auto_commit_interval_ms=50)) as consumer:
        consumer.subscribe(topic)
        take(consumer, 10)
        consumer.poll(0.1)
        eventually(lambda: consumer.committed(consumer.assignment())[0].offset == 10)


def test_commit_in_a_loop_counts_up_to_the_current_record(node: Node) -> None:
    """CON-12: although records arrive in batches."""
    topic = filled_topic(node)
    with headrace.Consumer(properties(node, enable_auto_commit=False)) as consumer:
        consumer.subscribe(topic)
        for message in consumer:
            if message.value() == b"3":
                consumer.commit()
                break
        assert consumer.committed(consumer.assignment())[0].offset == 4
        assert take(consumer, 6) == texts(4, 5, 6, 7, 8, 9)


def test_commit_without_waiting(node: Node) -> None:
    """CON-12: a function is called with the outcome."""
    topic = filled_topic(node)
    reported: list[Any] = []
    settings = properties(node, enable_auto_commit=False)
    settings["on_commit"] = lambda error, offsets: reported.append((error, offsets[0].offset))
    with headrace.Consumer(settings) as consumer:
        consumer.subscribe(topic)
        take(consumer, 10)
        consumer.commit_async()
        eventually(lambda: consumer.poll(0.1) or reported)
    assert reported == [(None, 10)]


def test_seek_rewind_and_by_time(node: Node) -> None:
    """CON-6, LOG-13"""
    topic = create_topic(node)
    now_ms = int(time.time() * 1000)
    times = [
        record._replace(timestamp=now_ms - 10_000 + i) for i, record in enumerate(numbered(10))
    ]
    produce(node, topic, times)
    with headrace.Consumer(properties(node, enable_auto_commit=False)) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 5)
        assert take(consumer, 5) == texts(5, 6, 7, 8, 9)
        consumer.seek_to_beginning()
        assert take(consumer, 10) == texts(*range(10))
        consumer.seek_to_time(now_ms - 10_000 + 8)
        assert take(consumer, 2) == texts(8, 9)
        consumer.seek_to_end()
        assert consumer.poll(0.3) == []
        consumer.commit([TopicPartition(topic, 0, 7)])
        consumer.rewind()
        assert take(consumer, 3) == texts(7, 8, 9)
        assert consumer.bounds(partition) == (0, 10)


def test_a_seek_in_a_loop_takes_effect_at_once(node: Node) -> None:
    """CON-6: what had arrived before is not handed out any more."""
    topic = filled_topic(node)
    seen: list[bytes | None] = []
    with headrace.Consumer(properties(node)) as consumer:
        consumer.assign(topic)
        for message in consumer:
            seen.append(message.value())
            if seen == texts(0, 1, 2):
                consumer.seek(TopicPartition(topic, 0), 8)
            if len(seen) == 5:
                break
    assert seen == texts(0, 1, 2, 8, 9)


def test_a_slow_consumer_catches_up_later(node: Node) -> None:
    """CON-13: it pulls, so the producer does not notice it."""
    topic = create_topic(node)
    with headrace.Consumer(properties(node, queued_max_messages_kbytes=64)) as consumer:
        consumer.subscribe(topic)
        settle([consumer], [1])
        produce(node, topic, numbered(5_000, size=1_000))
        assert len(take(consumer, 5_000)) == 5_000


def test_pause_and_resume(node: Node) -> None:
    """CON-13"""
    topic = filled_topic(node, partitions=2)
    with headrace.Consumer(properties(node)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 0)])
        consumer.pause([TopicPartition(topic, 1)])
        assert take(consumer, 10) == texts(*range(10))
        assert consumer.poll(0.3) == []
        consumer.resume()
        assert take(consumer, 10) == texts(*range(10))


def test_read_committed_stops_before_an_open_transaction(node: Node, topic: str) -> None:
    """CON-14"""
    open_one = producer(node, transactional_id=topic)
    open_one.init_transactions(30)
    produce(node, topic, numbered(2))
    open_one.begin_transaction()
    open_one.produce(topic, b"open")
    open_one.flush(30)
    with headrace.Consumer(properties(node)) as consumer:
        consumer.assign(topic)
        assert take(consumer, 2) == texts(0, 1)
        assert consumer.poll(0.5) == []
        open_one.commit_transaction(30)
        assert take(consumer, 1) == [b"open"]


def test_a_record_that_cannot_be_read_is_reported_and_can_be_skipped(node: Node) -> None:
    topic = filled_topic(node, count=4)

    def number_below_two(_topic: str, value: bytes | None) -> int:
        number = int(value or b"")
        assert number != 2, "two is bad"
        return number

    with headrace.Consumer(properties(node), value_deserializer=number_below_two) as consumer:
        consumer.assign(topic)
        assert take(consumer, 2) == [0, 1]
        with pytest.raises(headrace.DeserializationFailed, match="offset 2: two is bad") as bad:
            consumer.poll(1)
        consumer.seek(TopicPartition(topic, 0), (bad.value.message.offset() or 0) + 1)
        assert take(consumer, 1) == [3]


def test_consume_process_produce_in_one_transaction(node: Node) -> None:
    """PRD-16, DEL-4, PUL-19: what fails is read again, and appears once."""
    source, target = filled_topic(node), create_topic(node)
    settings = properties(node, enable_auto_commit=False, max_poll_records=5)
    failures = [ZeroDivisionError]
    producing = {"bootstrap.servers": node.address, "transactional.id": source, "log_level": 0}
    with headrace.Producer(producing) as sender, headrace.Consumer(settings) as consumer:
        consumer.subscribe(source)
        while not (ends := consumer.committed([TopicPartition(source, 0, 10)])) or (
            ends[0].offset < 10
        ):
            batch = consumer.poll(0.2)
            try:
                with sender.transaction(consumer):
                    for message in batch:
                        sender.send(target, message.value())
                    if batch and failures:
                        raise failures.pop()
            except ZeroDivisionError:
                continue
    with headrace.Consumer(properties(node)) as reader:
        reader.assign(target)
        assert take(reader, 10) == texts(*range(10))


def settle(members: Sequence[headrace.Consumer], sizes: list[int]) -> None:
    """Poll all members until they have so many partitions, in any order."""

    def owned() -> list[int]:
        for member in members:
            member.poll(0.05)
        return sorted(len(member.assignment()) for member in members)

    eventually(owned, expect=lambda found: found == sizes, seconds=45)


def _protocol(name: str) -> dict[str, object]:
    match name:
        case "cooperative":
            return {"partition_assignment_strategy": "cooperative-sticky"}
        case "consumer":
            return {"group_protocol": "consumer", "heartbeat_interval_ms": None}
    return {}


def test_a_topic_that_is_missing_is_reported_and_waited_for(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """CON-8: news of it end no poll; the topic is made while one waits."""
    topic = unique_name()

    def make() -> None:
        eventually(lambda: f"topic does not exist yet: {topic}" in caplog.text)
        create_topic(node, name=topic)
        produce(node, topic, numbered(1))

    settings = properties(node, topic_metadata_refresh_interval_ms=200)
    with headrace.Consumer(settings) as consumer, ThreadPoolExecutor() as pool:
        consumer.subscribe(topic)
        made = pool.submit(make)
        found = [message.value() for message in consumer.poll(60)]
        made.result()
    assert found == texts(0)
    assert caplog.text.count("does not exist") == 1
