"""A broker that refuses payloads whose schema is not registered for the topic. SCH-14(b)

The registry's topic is written here as registries write it: by any client, also in transactions.
"""

import json
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Producer
from kafka import KafkaProducer
from kafka.errors import InvalidRecordError

from tests.clients.librdkafka import (
    Sent,
    create_topic,
    delete_topic,
    produce,
    producer,
    read_values,
    refusal,
    set_topic_config,
    try_produce,
)
from tests.processes.nodes import Node

pytestmark = pytest.mark.usefixtures("only_headrace")

SCHEMAS = "_schemas"


@pytest.fixture
def registry_node(start_node: Callable[..., Node]) -> Node:
    node = start_node()
    create_topic(node, name=SCHEMAS, cleanup_policy="compact")
    return node


def registration(subject: str, id_: int, version: int = 1, *, deleted: bool = False) -> Sent:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": id_, "schema": '"string"'}
    return Sent(json.dumps(value | {"deleted": deleted}).encode(), json.dumps(key).encode())


def register(node: Node, subject: str, id_: int, version: int = 1) -> None:
    produce(node, SCHEMAS, [registration(subject, id_, version)])


def payload(id_: int, text: str = "hello") -> bytes:
    return b"\0" + id_.to_bytes(4, "big") + text.encode()


def checked_topic(node: Node) -> str:
    return create_topic(node, headrace_value_schema_validation="true")


def test_a_registered_schema_of_the_topic_is_taken(registry_node: Node) -> None:
    """SCH-14(b)"""
    topic = checked_topic(registry_node)
    register(registry_node, f"{topic}-value", 7)
    produce(registry_node, topic, [Sent(payload(7)), Sent(None, b"a tombstone")])
    assert read_values(registry_node, topic) == [payload(7), None]


@pytest.mark.parametrize("value", [payload(8), payload(9), b"no id at all"])
def test_an_unknown_or_foreign_schema_is_refused(registry_node: Node, value: bytes) -> None:
    """SCH-14(b): 8 is another topic's, 9 does not exist."""
    topic = checked_topic(registry_node)
    register(registry_node, f"{topic}-value", 7)
    register(registry_node, "another-value", 8)
    assert refusal(registry_node, topic, Sent(value)) == KafkaError.INVALID_RECORD
    assert read_values(registry_node, topic) == []


def test_reasons_reach_clients_that_show_them(registry_node: Node) -> None:
    """librdkafka does not; kafka-python does, and so does Java."""
    topic = checked_topic(registry_node)
    with (
        KafkaProducer(bootstrap_servers=registry_node.address, enable_idempotence=False) as client,
        pytest.raises(InvalidRecordError, match="its value names schema id 9, which is not"),
    ):
        client.send(topic, payload(9)).get(30)


def test_a_bad_record_does_not_stop_the_good_ones_after_it(registry_node: Node) -> None:
    topic = checked_topic(registry_node)
    register(registry_node, f"{topic}-value", 7)
    client = producer(registry_node, linger_ms=0, batch_num_messages=1)
    records = [Sent(payload(7, "first")), Sent(payload(9)), Sent(payload(7, "last"))]
    outcomes = try_produce(client, topic, records)
    assert [error is None for error, _ in outcomes] == [True, False, True]
    assert read_values(registry_node, topic) == [payload(7, "first"), payload(7, "last")]


def test_ids_registered_while_a_producer_runs_are_valid_at_once(registry_node: Node) -> None:
    topic = checked_topic(registry_node)
    for id_ in range(1, 30):
        register(registry_node, f"{topic}-value", id_, version=id_)
        produce(registry_node, topic, [Sent(payload(id_))])
    assert read_values(registry_node, topic) == [payload(id_) for id_ in range(1, 30)]


def test_large_batches_are_checked_too(registry_node: Node) -> None:
    """In a thread, with the registry's topic read first."""
    topic = checked_topic(registry_node)
    register(registry_node, f"{topic}-value", 7)
    good = [Sent(payload(7, str(number))) for number in range(5_000)]
    produce(registry_node, topic, good, linger_ms=500, batch_num_messages=5_000)
    assert len(read_values(registry_node, topic)) == 5_000
    assert refusal(registry_node, topic, Sent(payload(9, "x" * 100_000))) == (
        KafkaError.INVALID_RECORD
    )


def test_registrations_of_an_aborted_transaction_do_not_count(registry_node: Node) -> None:
    topic = checked_topic(registry_node)
    writer = producer(registry_node, transactional_id="registry")
    writer.init_transactions()
    register_in_transaction(writer, f"{topic}-value", 7)
    writer.commit_transaction()
    register_in_transaction(writer, f"{topic}-value", 8)
    writer.abort_transaction()
    produce(registry_node, topic, [Sent(payload(7))])
    assert refusal(registry_node, topic, Sent(payload(8))) == KafkaError.INVALID_RECORD


def register_in_transaction(writer: Producer, subject: str, id_: int) -> None:
    writer.begin_transaction()
    sent = registration(subject, id_, version=id_)
    writer.produce(SCHEMAS, key=sent.key, value=sent.value)
    writer.flush(10)


def test_a_deleted_version_is_refused(registry_node: Node) -> None:
    topic = checked_topic(registry_node)
    register(registry_node, f"{topic}-value", 7)
    produce(registry_node, SCHEMAS, [registration(f"{topic}-value", 7, deleted=True)])
    assert refusal(registry_node, topic, Sent(payload(7))) == KafkaError.INVALID_RECORD


def test_ids_are_dropped_when_the_registrys_topic_is_created_again(registry_node: Node) -> None:
    topic = checked_topic(registry_node)
    register(registry_node, f"{topic}-value", 7)
    produce(registry_node, topic, [Sent(payload(7))])
    delete_topic(registry_node, SCHEMAS)
    assert refusal(registry_node, topic, Sent(payload(7))) == KafkaError.INVALID_RECORD
    create_topic(registry_node, name=SCHEMAS, cleanup_policy="compact")
    register(registry_node, f"{topic}-value", 8)
    produce(registry_node, topic, [Sent(payload(8))])
    assert refusal(registry_node, topic, Sent(payload(7))) == KafkaError.INVALID_RECORD


def test_validation_can_be_switched_while_producers_write(registry_node: Node) -> None:
    topic = create_topic(registry_node)
    produce(registry_node, topic, [Sent(b"free text")])
    set_topic_config(registry_node, topic, "headrace.value.schema.validation", "true")
    assert refusal(registry_node, topic, Sent(b"free text")) == KafkaError.INVALID_RECORD
    set_topic_config(registry_node, topic, "headrace.value.schema.validation", "false")
    produce(registry_node, topic, [Sent(b"free again")])
    assert read_values(registry_node, topic) == [b"free text", b"free again"]


def test_ids_are_known_again_after_a_crash(registry_node: Node) -> None:
    topic = checked_topic(registry_node)
    register(registry_node, f"{topic}-value", 7)
    registry_node.kill()
    registry_node.start()
    produce(registry_node, topic, [Sent(payload(7))])
    assert refusal(registry_node, topic, Sent(payload(9))) == KafkaError.INVALID_RECORD


def test_the_registrys_topic_may_have_another_name(start_node: Callable[..., Node]) -> None:
    node = start_node(headrace_schemas_topic="registry")
    create_topic(node, name="registry", cleanup_policy="compact")
    topic = checked_topic(node)
    produce(node, "registry", [registration(f"{topic}-value", 7)])
    produce(node, topic, [Sent(payload(7))])
    assert read_values(node, topic) == [payload(7)]
