"""`headrace transactions`: seen and ended from the command line."""

from confluent_kafka import Producer

from tests.clients.librdkafka import SECONDS_MAX, create_topic, producer, read_values, unique_name
from tests.integration.cli.commands import headrace, ok
from tests.processes.nodes import Node, eventually


def opened(node: Node, topic: str, name: str) -> Producer:
    """An open transaction with one record."""
    client = producer(node, transactional_id=name, transaction_timeout_ms=600_000)
    client.init_transactions(SECONDS_MAX)
    client.begin_transaction()
    client.produce(topic, b"in doubt", partition=1)
    assert client.flush(SECONDS_MAX) == 0
    return client


def test_open_transactions_are_listed_and_described(node: Node) -> None:
    """OPS-1"""
    topic, name = create_topic(node, partitions=2), unique_name("listed")
    client = opened(node, topic, name)
    listed = ok(node, "transactions", "list", "--state", "ongoing", "--json").document
    assert name in {one["transactional_id"] for one in listed}
    assert ok(node, "transactions", "list", "--longer-than", "1h", "--state", "Ongoing").code == 0
    matched = ok(node, "transactions", "list", "--pattern", f"{name}|nothing", "--json").document
    assert [one["transactional_id"] for one in matched] == [name]
    (described,) = ok(node, "transactions", "describe", name, "--json").document
    assert described["state"] == "Ongoing"
    assert described["topics"] == [{"topic": topic, "partitions": [1]}]
    shown = ok(node, "transactions", "describe", name).out
    assert f"{name}: Ongoing" in shown
    assert f"writes to   {topic} 1" in shown
    client.abort_transaction(SECONDS_MAX)


def test_a_transaction_is_aborted_by_its_id(node: Node) -> None:
    """OPS-1: the coordinator aborts it, and its producer is locked out."""
    topic, name = create_topic(node, partitions=2), unique_name("aborted")
    client = opened(node, topic, name)
    ok(node, "transactions", "abort", name)
    client.purge()
    options = {"partition": 1, "isolation_level": "read_committed"}
    producer_of_others = producer(node)
    producer_of_others.produce(topic, b"plain", partition=1)
    producer_of_others.flush(SECONDS_MAX)
    eventually(
        lambda: read_values(node, topic, **options), expect=lambda found: found == [b"plain"]
    )


def test_a_hanging_transaction_is_aborted_where_it_hangs(node: Node) -> None:
    """OPS-1"""
    topic, name = create_topic(node, partitions=2), unique_name("hanging")
    client = opened(node, topic, name)
    place = ("--topic", topic, "--partition", "1", "--start-offset")
    refused = headrace(node, "transactions", "abort", *place, "7")
    assert refused.code == 1
    assert "transactions began at: 0" in refused.err
    ok(node, "transactions", "abort", *place, "0")
    refused = headrace(node, "transactions", "abort", *place, "0")
    assert "transactions began at: none" in refused.err
    client.purge()


def test_unknown_transactions_are_reported(node: Node) -> None:
    nobody = headrace(node, "transactions", "describe", "nobody")
    assert (nobody.code, "TRANSACTIONAL_ID_NOT_FOUND" in nobody.err) == (1, True)
    assert headrace(node, "transactions", "abort", "nobody").code == 1
    assert headrace(node, "transactions", "abort").code == 2
    assert headrace(node, "transactions", "abort", "x", "--topic", "y").code == 2
