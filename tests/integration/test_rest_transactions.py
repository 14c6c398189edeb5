"""Records for several topics in one request: independently, or all or none of them."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from confluent_kafka import TopicPartition

from headrace.client.loop_producer import OutgoingRecord
from headrace.http.errors import ClientDisconnected
from headrace.rest.transactional import TopicRecord, TransactionPool
from tests.clients.librdkafka import consumer, create_topic, read_values, unique_name
from tests.processes.nodes import Node, eventually
from tests.processes.rest_proxies import Proxy, proxy

SECONDS_MAX = 30
COMMITTED: dict[str, Any] = {"isolation_level": "read_committed"}


@pytest.fixture(scope="module")
def running(shared_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    log = tmp_path_factory.mktemp("rest") / "proxy.log"
    options = ["--set", "id=tests", "--set", "transaction.producers.max=2"]
    with proxy(shared_node.address, log, options) as found:
        yield found


@pytest.fixture
def records(running: Proxy, node: Node) -> str:
    """The address that takes records for all topics."""
    return records_of(running)


def records_of(running: Proxy) -> str:
    (cluster,) = httpx2.get(f"{running.url}/v3/clusters", timeout=30).json()["data"]
    return f"{running.url}/v3/clusters/{cluster['cluster_id']}/records"


def record(topic: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"topic_name": topic, "value": {"type": "JSON", "data": value}, **more}


def post(url: str, *records: dict[str, Any], **more: Any) -> httpx2.Response:
    return httpx2.post(url, json={"records": list(records), **more}, timeout=60)


def committed(node: Node, group: str, topic: str) -> int:
    with consumer(node, group_id=group) as client:
        (found,) = client.committed([TopicPartition(topic, 0)], timeout=SECONDS_MAX)
        return int(found.offset)


def numbers(node: Node, topic: str) -> list[int]:
    """The values of a topic that are committed."""
    return [int(value or b"") for value in read_values(node, topic, **COMMITTED)]


def test_each_record_of_several_topics_has_its_result(records: str, node: Node) -> None:
    """RST-6"""
    one, other = create_topic(node), create_topic(node, partitions=2)
    answer = post(
        records,
        record(one, 1),
        record(other, 2, partition_id=1),
        record(other, 3, partition_id=9),
        record(one, 4, headers=[{"name": "h", "value": "eA=="}]),
        {"topic_name": one, "value": {"type": "BINARY", "data": "?"}},
    )
    results = answer.json()["results"]
    places = [(r.get("topic_name"), r.get("partition_id"), r.get("offset")) for r in results]
    assert answer.status_code == 207
    assert places == [(one, 0, 0), (other, 1, 0), (None,) * 3, (one, 0, 1), (None,) * 3]
    assert [r["error_code"] for r in results] == [200, 200, 40402, 200, 400]
    assert read_values(node, one) == [b"1", b"4"]


def test_a_transaction_writes_to_all_its_topics(records: str, node: Node) -> None:
    """RST-6"""
    one, other = create_topic(node), create_topic(node)
    answer = post(f"{records}:transaction", record(one, 1), record(other, 2), record(one, 3))
    assert answer.status_code == 200, answer.text
    places = [(r["topic_name"], r["offset"]) for r in answer.json()["results"]]
    assert places == [(one, 0), (other, 0), (one, 1)]
    assert read_values(node, one, **COMMITTED) == [b"1", b"3"]
    assert read_values(node, other, **COMMITTED) == [b"2"]


def test_a_record_that_cannot_be_written_takes_all_others_back(records: str, node: Node) -> None:
    """RST-6"""
    small = create_topic(node, max_message_bytes=500)
    one = create_topic(node)
    answer = post(f"{records}:transaction", record(one, 1), record(small, "x" * 5_000))
    assert answer.status_code == 413, answer.text
    assert f"nothing was written: record 1 for topic '{small}'" in answer.json()["message"]
    again = post(f"{records}:transaction", record(one, 2))
    assert again.status_code == 200, again.text
    assert read_values(node, one, **COMMITTED) == [b"2"]


@pytest.mark.parametrize(
    ("wrong", "status", "words"),
    [
        ({"partition_id": 9}, 404, "record 1 for topic"),
        ({"value": {"type": "BINARY", "data": "?"}}, 400, "record 1 for topic"),
        ({"topic_name": "no such topic"}, 422, "topic_name"),
        ({"topic": "x", "topic_name": 5}, 422, "topic_name"),
    ],
)
def test_invalid_records_are_found_before_anything_is_sent(
    records: str, node: Node, wrong: dict[str, Any], status: int, words: str
) -> None:
    topic = create_topic(node)
    answer = post(f"{records}:transaction", record(topic, 1), record(topic, 2) | wrong)
    assert (answer.status_code, words in answer.json()["message"]) == (status, True), answer.text
    assert read_values(node, topic) == []


def test_offsets_of_a_group_are_committed_with_the_records(records: str, node: Node) -> None:
    source, target, group = create_topic(node), create_topic(node), unique_name("group")
    reached = [{"topic_name": source, "partition_id": 0, "offset": 7}]
    offsets = {"consumer_group_id": group, "offsets": reached}
    answer = post(f"{records}:transaction", record(target, 1), consumer_offsets=offsets)
    assert answer.status_code == 200, answer.text
    assert committed(node, group, source) == 7


def test_offsets_are_not_committed_with_records_that_fail(records: str, node: Node) -> None:
    small, group = create_topic(node, max_message_bytes=500), unique_name("group")
    reached = [{"topic_name": small, "partition_id": 0, "offset": 7}]
    offsets = {"consumer_group_id": group, "offsets": reached}
    answer = post(f"{records}:transaction", record(small, "x" * 5_000), consumer_offsets=offsets)
    assert answer.status_code == 413, answer.text
    assert committed(node, group, small) < 0


def test_offsets_of_a_topic_that_is_not_there_are_refused_by_name(records: str, node: Node) -> None:
    topic, missing = create_topic(node), unique_name("carts")
    reached = [
        {"topic_name": topic, "partition_id": 0, "offset": 1},
        {"topic_name": missing, "partition_id": 0, "offset": 42},
    ]
    offsets = {"consumer_group_id": unique_name("group"), "offsets": reached}
    answer = post(f"{records}:transaction", record(topic, 1), consumer_offsets=offsets)
    assert (answer.status_code, answer.json()["error_code"]) == (404, 40403), answer.text
    assert f"topic '{missing}' does not exist" in answer.json()["message"]
    assert read_values(node, topic) == []


async def test_an_abandoned_transaction_is_not_committed(node: Node) -> None:
    topic = create_topic(node)
    properties = {"bootstrap.servers": node.address}
    pool = TransactionPool(properties, properties, instance="", size=1, timeout_s=SECONDS_MAX)
    one = TopicRecord(topic, OutgoingRecord(b"1"))

    async def gone_at_once() -> None: ...

    async def stays() -> None:
        await asyncio.Event().wait()

    try:
        with pytest.raises(ClientDisconnected):
            await pool.run([one], None, gone_at_once)
        await pool.run([TopicRecord(topic, OutgoingRecord(b"2"))], None, stays)
    finally:
        await pool.close()
    assert read_values(node, topic, **COMMITTED) == [b"2"]


def test_more_transactions_than_producers_wait_for_their_turn(records: str, node: Node) -> None:
    topic = create_topic(node)
    with ThreadPoolExecutor(8) as threads:
        found = list(
            threads.map(lambda n: post(f"{records}:transaction", record(topic, n)), range(24))
        )
    assert [one.status_code for one in found] == [200] * 24
    assert sorted(numbers(node, topic)) == list(range(24))


def test_a_transaction_of_a_killed_proxy_is_whole_or_not_there(
    node: Node, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Acknowledged transactions are kept; each other one is in both topics or in none."""
    one, other = create_topic(node), create_topic(node)
    logs = tmp_path_factory.mktemp("killed")
    acknowledged: list[int] = []
    with proxy(node.address, logs / "first.log", ["--set", "id=killed"]) as found:
        url = f"{records_of(found)}:transaction"

        def load() -> None:
            for number in range(10_000):
                try:
                    answer = post(url, record(one, number), record(other, number))
                except httpx2.HTTPError:
                    return
                if answer.status_code == 200:
                    acknowledged.append(number)

        thread = threading.Thread(target=load)
        thread.start()
        eventually(lambda: len(acknowledged) >= 20)
        found.process.kill()
        found.process.wait()
        thread.join(SECONDS_MAX)
    with proxy(node.address, logs / "second.log", ["--set", "id=killed"]) as found:
        # The same id ends at once what the first run left open.
        last = post(f"{records_of(found)}:transaction", record(one, -1), record(other, -1))
        assert last.status_code == 200, last.text
    seen = [numbers(node, topic) for topic in (one, other)]
    assert seen[0] == seen[1]
    assert set(acknowledged) <= set(seen[0])
