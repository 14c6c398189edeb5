"""Old and new clients: every version that the broker offers is answered in that version.

Requests and answers go through kio, a codec that shares nothing with ours. It has most versions
of Kafka 4.3; the newest of a few APIs are left to our own codec's tests.
"""

import datetime
from collections.abc import Iterator

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map

from tests.builders.record_batches import batch, values_in
from tests.clients.librdkafka import create_topic, values
from tests.clients.wire import API_KEYS, Connection, Fields, fetch_fields, produce_fields
from tests.processes.nodes import Node

MINUTE = datetime.timedelta(minutes=1)
# From this version on a request names topics by id.
BY_ID_FROM = {"produce": 13, "fetch": 13}


@pytest.fixture
def connection(node: Node) -> Iterator[Connection]:
    with Connection(node.port) as opened:
        yield opened


@pytest.fixture
def topic(node: Node) -> str:
    """A topic with one record in it."""
    name = create_topic(node)
    with Connection(node.port) as opened:
        assert opened.produce(name, batch(*values("first"))).error_code == ErrorCode.none
    return name


def test_every_version_of_api_versions(connection: Connection) -> None:
    """OPS-1: the first thing that any client asks."""
    for version in range(5):
        software = {"client_software_name": "test", "client_software_version": "1.0"}
        answer = connection.call("api_versions", version, **software)
        assert answer.error_code == ErrorCode.none
        assert {0, 1, 2, 3, 18, 19, 20} <= {int(each.api_key) for each in answer.api_keys}


def test_a_version_from_the_future_is_answered_with_those_of_today(connection: Connection) -> None:
    """OPS-1: a newer client falls back once it has received the range (KIP-511)."""
    connection.socket.sendall(bytes.fromhex("0000000f 0012 7fff 00000001 0000 00 02 61 02 62 00"))
    frame = connection.receive_frame()
    assert frame[4:6] == ErrorCode.unsupported_version.to_bytes(2, "big")


def test_an_unknown_version_of_anything_else_closes_the_connection(connection: Connection) -> None:
    """OPS-1"""
    connection.socket.sendall(bytes.fromhex("0000000a 0003 7fff 00000001 0000"))
    assert connection.is_closed_by_peer()


def test_every_version_of_metadata(connection: Connection, topic: str) -> None:
    """OPS-1, PRD-7"""
    for version in versions(connection, "metadata"):
        request = {
            "topics": [{"name": topic, "topic_id": None}],
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        }
        answer = connection.call("metadata", version, **request)
        (described,) = answer.topics
        assert (described.error_code, described.name) == (ErrorCode.none, topic)
        assert [partition.leader_id for partition in described.partitions] == [1]


def test_every_version_of_produce(connection: Connection, topic: str) -> None:
    """OPS-1, LOG-14"""
    for stored, version in enumerate(versions(connection, "produce"), start=1):
        request = produce_fields(topic, batch(*values(f"v{version}")))
        if version >= BY_ID_FROM["produce"]:
            request["topic_data"][0]["topic_id"] = topic_id(connection, topic)
        answer = connection.call("produce", version, **request).responses[0]
        (part,) = answer.partition_responses
        assert (part.error_code, part.base_offset) == (ErrorCode.none, stored)


def test_every_version_of_fetch(connection: Connection, topic: str) -> None:
    """OPS-1, LOG-13"""
    for version in versions(connection, "fetch"):
        request = fetch_fields([(topic, 0, 0)])
        if version >= BY_ID_FROM["fetch"]:
            request["topics"][0]["topic_id"] = topic_id(connection, topic)
        answer = connection.call("fetch", version, **request).responses[0]
        (part,) = answer.partitions
        assert (part.error_code, part.high_watermark) == (ErrorCode.none, 1)
        assert values_in(part.records) == [b"first"]


def test_every_version_of_list_offsets(connection: Connection, topic: str) -> None:
    """OPS-1, LOG-13(b)"""
    for version in versions(connection, "list_offsets"):
        for timestamp, offset in ((-2, 0), (-1, 1), (0, 0)):
            request = list_offsets_fields(topic, timestamp)
            answer = connection.call("list_offsets", version, **request).topics[0]
            (part,) = answer.partitions
            assert (part.error_code, part.offset) == (ErrorCode.none, offset)


def test_every_version_of_creating_and_deleting_topics(connection: Connection) -> None:
    """OPS-1, LOG-5"""
    for version in versions(connection, "create_topics"):
        name = f"created-with-v{version}"
        spec = {"name": name, "num_partitions": 2, "replication_factor": 1}
        request = {
            "topics": [{**spec, "assignments": [], "configs": []}],
            "timeout": MINUTE,
            "validate_only": False,
        }
        (created,) = connection.call("create_topics", version, **request).topics
        assert (created.error_code, created.name) == (ErrorCode.none, name)
    for version in versions(connection, "delete_topics"):
        name = f"created-with-v{max(version, 2)}"
        request = {"topic_names": [name], "topics": [{"name": name, "topic_id": None}]}
        (deleted,) = connection.call("delete_topics", version, timeout=MINUTE, **request).responses
        assert deleted.name == name


def test_a_client_with_an_old_protocol_is_served(node: Node, topic: str) -> None:
    """OPS-1: kafka-python, set to the protocol of Kafka 2.1."""
    old = {"bootstrap_servers": node.address, "api_version": (2, 1)}
    producer = KafkaProducer(**old)
    producer.send(topic, b"second").get(30)
    producer.close()
    consumer = KafkaConsumer(**old, group_id=None)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    received = [next(consumer).value for _ in range(2)]
    consumer.close()
    assert received == [b"first", b"second"]


def versions(connection: Connection, name: str) -> range:
    """The versions of an API that both the broker and kio have."""
    offered = connection.call("api_versions", 0).api_keys
    (mine,) = [each for each in offered if each.api_key == API_KEYS[name]]
    known = schema_name_map[name]
    # Kafka advertises Produce from version 0 for checks of old clients, and serves it from 3.
    return range(max(mine.min_version, min(known)), min(mine.max_version, max(known)) + 1)


def topic_id(connection: Connection, topic: str) -> object:
    request = {
        "topics": [{"name": topic, "topic_id": None}],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }
    return connection.call("metadata", 12, **request).topics[0].topic_id


def list_offsets_fields(topic: str, timestamp: int) -> Fields:
    partition = {"partition_index": 0, "timestamp": timestamp}
    return {
        "replica_id": -1,
        "isolation_level": 0,
        "timeout": MINUTE,
        "topics": [{"name": topic, "partitions": [partition]}],
    }
