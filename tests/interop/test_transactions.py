"""A data directory with transactions in it moves between Headrace and Apache Kafka."""

from collections.abc import Callable

import pytest
from confluent_kafka import Producer, TopicPartition

from headrace.client.admin import Admin
from tests.clients.librdkafka import (
    SECONDS_MAX,
    consumer,
    create_topic,
    producer,
    read_values,
    values,
)
from tests.clients.librdkafka import produce as produce_plainly
from tests.clients.transaction_logs import append_state, prepared
from tests.interop.conftest import Pair
from tests.processes.nodes import Headrace, Node, eventually

COMMITTED = {"isolation_level": "read_committed"}
NAME = "moving"


def begin(node: Node, topic: str, *texts: str) -> Producer:
    """An open transaction, with records that the broker has."""
    client = producer(node, transactional_id=NAME, transaction_timeout_ms=600_000)
    client.init_transactions(SECONDS_MAX)
    client.begin_transaction()
    for text in texts:
        client.produce(topic, text.encode(), partition=0)
    assert client.flush(SECONDS_MAX) == 0
    return client


def state_of(node: Node) -> tuple[str, int, int]:
    with Admin(node.address) as admin:
        found = admin.transactions.describe(NAME)
    return found.state, found.producer_id, found.producer_epoch


def move(first: Node, second: Node, ending: Callable[[Node], int]) -> None:
    """Stop one and start the other on the same directory, and the same address."""
    ending(first)
    second.port = first.port
    second.start()


@pytest.fixture(params=["to kafka", "to headrace"])
def nodes(request: pytest.FixtureRequest, pair: Pair) -> tuple[Node, Node]:
    ours, theirs = pair
    return (ours, theirs) if request.param == "to kafka" else (theirs, ours)


@pytest.mark.parametrize("ending", [Node.stop, Node.kill], ids=["stop", "kill"])
def test_an_open_transaction_continues_at_the_other_broker(
    nodes: tuple[Node, Node], ending: Callable[[Node], int]
) -> None:
    """DEL-5, LOG-11: the same producer ends it, or its successor aborts it."""
    first, second = nodes
    first.start()
    topic = create_topic(first)
    client = begin(first, topic, "before")
    before = state_of(first)
    move(first, second, ending)
    assert state_of(second) == before
    assert read_values(second, topic, **COMMITTED) == []
    client.produce(topic, b"after", partition=0)
    client.commit_transaction(SECONDS_MAX)
    eventually(
        lambda: read_values(second, topic, **COMMITTED),
        expect=lambda found: found == [b"before", b"after"],
    )


def test_offsets_in_a_transaction_continue_at_the_other_broker(nodes: tuple[Node, Node]) -> None:
    """DEL-4: they are pending in `__consumer_offsets` until the marker comes."""
    first, second = nodes
    first.start()
    topic = create_topic(first)
    produce_plainly(first, topic, values("1", "2", "3"))
    client = begin(first, topic, "out")
    place = TopicPartition(topic, 0, 2)
    with consumer(first, group_id="mover") as reader:
        reader.assign([place])
        client.send_offsets_to_transaction([place], reader.consumer_group_metadata(), SECONDS_MAX)
    move(first, second, Node.stop)
    client.commit_transaction(SECONDS_MAX)

    def committed() -> int:
        with consumer(second, group_id="mover") as reader:
            (found,) = reader.committed([TopicPartition(topic, 0)], SECONDS_MAX)
            return int(found.offset)

    eventually(committed, expect=lambda offset: offset == 2)


@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_a_prepared_transaction_is_finished_by_the_other(
    nodes: tuple[Node, Node], is_commit: bool
) -> None:
    """DEL-5: the decision is in the log, and its markers could not be written any more.

    Kafka is handed the directory of a broker that has said goodbye to its controller. After a crash
    the metadata still name a leader; a Kafka that is alone then asks itself for the markers before
    it listens, until its controller counts the old registration as dead. What has no leader at that
    moment it takes for deleted, and closes the transaction without its markers, on its own
    directories as well.
    """
    first, second = nodes
    first.start()
    topic = create_topic(first)
    begin(first, topic, "in doubt").purge()
    produce_plainly(first, topic, values("plain"))
    producer_id, epoch = state_of(first)[1:]
    first.kill() if isinstance(second.flavour, Headrace) else first.stop()
    append_state(first.data, prepared(NAME, producer_id, epoch, topic, is_commit=is_commit))
    # Kafka sends the markers to the address that it finds in the metadata when it starts.
    second.port = first.port
    second.start()
    expected = [b"in doubt", b"plain"] if is_commit else [b"plain"]
    eventually(
        lambda: read_values(second, topic, **COMMITTED),
        expect=lambda found: found == expected,
    )
    state = "CompleteCommit" if is_commit else "CompleteAbort"
    eventually(lambda: state_of(second)[0], expect=lambda found: found == state)
