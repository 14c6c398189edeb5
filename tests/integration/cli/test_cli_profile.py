"""`headrace topics profile` on real topics."""

import json
import time

from tests.clients.librdkafka import Sent, create_topic, produce, producer, unique_name
from tests.integration.cli.commands import headrace, ok
from tests.processes.nodes import Node

NOW_MS = int(time.time() * 1000)


def orders(count: int) -> list[Sent]:
    """Ten a second up to now, half of them of one customer."""
    return [
        Sent(
            json.dumps({"id": number, "price": 1.5, "note": "x" * 20}).encode(),
            b"big" if number % 2 else str(number).encode(),
            timestamp=NOW_MS - 100 * (count - number),
        )
        for number in range(count)
    ]


def test_a_topic_is_measured(node: Node) -> None:
    """ARC-6: parameters measured per source."""
    topic = create_topic(node, partitions=2)
    produce(node, topic, orders(1000), compression_type="zstd")
    found = ok(node, "topics", "profile", topic, "--json").document
    assert found["records"] == 1000
    assert 9.9 < found["velocity"]["records_per_s"] < 10.1
    assert found["frequency"]["pattern"] == "regular"
    assert found["format"]["kind"] == "json"
    assert found["format"]["schema"] == "id BIGINT, price DOUBLE, note STRING"
    assert found["heterogeneity"] == {"main_shape_share": 1.0, "shapes": 1}
    assert found["keys"]["distinct"] == 501
    assert found["keys"]["top"][0] == ["big", 0.5]
    assert found["keys"]["partition_records"] == {"0": 1000, "1": 0}
    assert found["keys"]["partition_skew"] == 2.0
    assert set(found["compression"]) == {"zstd"}
    assert found["zstd_ratio"] > 2


def test_only_the_last_records_are_measured(node: Node) -> None:
    topic = create_topic(node, partitions=2)
    for partition in range(2):
        produce(node, topic, orders(100), partition=partition)
    assert ok(node, "topics", "profile", topic, "-n", "20", "--json").document["records"] == 20


def test_a_key_s_share_is_its_share_of_the_topic_however_full_its_partition_is(node: Node) -> None:
    topic = create_topic(node, partitions=2)
    produce(node, topic, [Sent(b"x" * 1000, b"hot")] * 900, partition=0)
    produce(node, topic, [Sent(b"x", b"cold")] * 100, partition=1)
    found = ok(node, "topics", "profile", topic, "-n", "100", "--json").document
    assert found["keys"]["top"] == [["hot", 0.9], ["cold", 0.1]]
    assert found["size"]["p50"] == 1003


def test_only_the_last_seconds_are_measured(node: Node, topic: str) -> None:
    produce(node, topic, [Sent(b"old", timestamp=NOW_MS - 3_600_000), Sent(b"new")])
    found = ok(node, "topics", "profile", topic, "--seconds", "600", "--json").document
    assert found["records"] == 1


def test_people_get_a_table_and_a_suggestion(node: Node, topic: str) -> None:
    produce(node, topic, orders(50))
    shown = ok(node, "topics", "profile", topic).out
    assert "10.0 records/s" in shown
    assert "semi-structured: json 100.0%" in shown
    assert 'schema = "id BIGINT, price DOUBLE, note STRING"' in shown


def test_an_empty_topic_is_reported(node: Node, topic: str) -> None:
    done = headrace(node, "topics", "profile", topic)
    assert done.code == 1
    assert "has no records to measure" in done.err


def test_a_topic_that_is_missing_is_reported(node: Node) -> None:
    done = headrace(node, "topics", "profile", "nobody")
    assert done.code == 1
    assert "nobody" in done.err


def test_records_before_many_that_were_aborted_are_measured(node: Node, topic: str) -> None:
    """The last offsets hold none that anyone may read, yet the topic is not empty."""
    produce(node, topic, orders(20))
    writer = producer(node, transactional_id=unique_name("profile"))
    writer.init_transactions(30)
    writer.begin_transaction()
    for _ in range(300):
        writer.produce(topic, b"never", partition=0)
    writer.flush(30)
    writer.abort_transaction(30)
    assert ok(node, "topics", "profile", topic, "-n", "10", "--json").document["records"] == 10
    assert ok(node, "topics", "profile", topic, "--seconds", "1e12", "--json").document["records"]
