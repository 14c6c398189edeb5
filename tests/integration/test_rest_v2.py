"""The REST proxy's version 2 as a process: curl and httpx2 ask, confluent-kafka checks."""

import base64
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.clients.librdkafka import create_topic, read, read_values, unique_name
from tests.integration.conftest import StartNode
from tests.processes.nodes import Node, eventually
from tests.processes.rest_proxies import BINARY_V2, JSON_V2, V2, Proxy, proxy

Client = httpx2.Client


@pytest.fixture(scope="module")
def running(shared_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    log = tmp_path_factory.mktemp("rest") / "proxy.log"
    options = ["--set", "consumer.instance.timeout.ms=120000", "--set", "consumer.instances.max=20"]
    with proxy(shared_node.address, log, options) as found:
        yield found


@pytest.fixture
def client(running: Proxy, node: Node) -> Iterator[Client]:
    with httpx2.Client(base_url=running.url, timeout=60) as found:
        yield found


def post(client: Client, path: str, body: Any, type: str = V2) -> httpx2.Response:
    return client.post(path, content=json.dumps(body), headers={"Content-Type": type})


def produce(client: Client, topic: str, *values: Any) -> httpx2.Response:
    return post(client, f"/topics/{topic}", {"records": [{"value": v} for v in values]}, JSON_V2)


class Instance:
    """A consumer instance, driven as a user does."""

    def __init__(self, client: Client, group: str = "", **settings: Any) -> None:
        self.client = client
        self.group = group or unique_name("group")
        given = {"format": "json", "auto.offset.reset": "earliest", **settings}
        created = post(client, f"/consumers/{self.group}", given)
        assert created.status_code == 200, created.text
        self.base = created.json()["base_uri"]
        self.format = given["format"]

    def post(self, path: str, body: Any) -> httpx2.Response:
        return post(self.client, self.base + path, body)

    def get(self, path: str) -> httpx2.Response:
        return self.client.get(self.base + path)

    def records(self, **parameters: Any) -> list[dict[str, Any]]:
        accept = {"Accept": f"application/vnd.kafka.{self.format}.v2+json"}
        found = self.client.get(f"{self.base}/records", params=parameters, headers=accept)
        assert found.status_code == 200, found.text
        answer: list[dict[str, Any]] = found.json()
        return answer

    def read(self, count: int) -> list[Any]:
        """The values of so many records, however many reads that takes."""
        values: list[Any] = []

        def enough() -> bool:
            values.extend(one["value"] for one in self.records())
            return len(values) >= count

        eventually(enough)
        return values


def test_json_records_arrive_compact_and_their_offsets_are_returned(
    client: Client, node: Node
) -> None:
    """RST-2, RST-4"""
    topic = create_topic(node)
    body = b'{"records": [{"key": "a", "value": {"n": 1.50, "t": "x y"}}, {"value": null}]}'
    answer = client.post(f"/topics/{topic}", content=body, headers={"Content-Type": JSON_V2})
    assert answer.headers["content-type"] == V2
    assert answer.json() == {
        "offsets": [
            {"partition": 0, "offset": 0, "error_code": None, "error": None},
            {"partition": 0, "offset": 1, "error_code": None, "error": None},
        ],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    first, second = read(node, topic)
    assert (first.key(), first.value()) == (b'"a"', b'{"n":1.50,"t":"x y"}')
    assert (second.key(), second.value()) == (None, None)


def test_binary_records_are_base64(client: Client, node: Node) -> None:
    topic = create_topic(node)
    records = [{"value": base64.b64encode(bytes(range(256))).decode(), "key": "AAE="}]
    assert post(client, f"/topics/{topic}", {"records": records}, BINARY_V2).status_code == 200
    (found,) = read(node, topic)
    assert (found.key(), found.value()) == (b"\0\1", bytes(range(256)))


def test_curl_produces_as_the_manual_shows(running: Proxy, node: Node) -> None:
    """RST-7 (b)"""
    topic = create_topic(node)
    command = ["curl", "-sS", "-m", "30", "-H", f"Content-Type: {JSON_V2}"]
    command += ["-d", '{"records":[{"value":{"foo":"bar"}}]}', f"{running.url}/topics/{topic}"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert answer["offsets"][0]["offset"] == 0
    assert read_values(node, topic) == [b'{"foo":"bar"}']


def test_equal_keys_meet_where_javas_producer_sends_them(client: Client, node: Node) -> None:
    from confluent_kafka import murmur2

    topic = create_topic(node, partitions=7)
    records = [{"key": f"k{number}", "value": number} for number in range(30)]
    answer = post(client, f"/topics/{topic}", {"records": records}, JSON_V2).json()
    found = [one["partition"] for one in answer["offsets"]]
    assert found == [murmur2(json.dumps(one["key"]).encode(), 7) for one in records]


def test_records_go_to_the_partition_of_the_path_and_have_their_time(
    client: Client, node: Node
) -> None:
    topic = create_topic(node, partitions=3, retention_ms=-1)
    body = {"records": [{"value": 1, "timestamp": 1_700_000_000_000}]}
    answer = post(client, f"/topics/{topic}/partitions/2", body, JSON_V2).json()
    assert answer["offsets"][0] == {"partition": 2, "offset": 0, "error_code": None, "error": None}
    assert [one.timestamp()[1] for one in read(node, topic, partition=2)] == [1_700_000_000_000]


def test_one_record_for_a_missing_partition_fails_alone(client: Client, node: Node) -> None:
    topic = create_topic(node)
    body = {"records": [{"value": 1}, {"value": 2, "partition": 9}, {"value": 3}]}
    answer = post(client, f"/topics/{topic}", body, JSON_V2)
    assert answer.status_code == 200
    assert [one["error_code"] for one in answer.json()["offsets"]] == [None, 40402, None]
    assert read_values(node, topic) == [b"1", b"3"]


@pytest.mark.parametrize(
    ("path", "type", "body", "status", "code", "words"),
    [
        ("", JSON_V2, '{"records":[{"value":1}', 400, 400, "not valid JSON"),
        ("", JSON_V2, '{"records":[]}', 422, 422, "length"),
        ("", JSON_V2, '{"records":[{"valve":1}]}', 422, 422, "`valve`"),
        ("", JSON_V2, "{}", 422, 422, "`records`"),
        ("", JSON_V2, "", 400, 400, "empty"),
        ("", "text/plain", '{"records":[{"value":1}]}', 415, 415, "json.v2+json"),
        ("", BINARY_V2, '{"records":[{"value":"YQ=="},{"value":"%"}]}', 400, 400, "of record 1"),
        ("", BINARY_V2, '{"records":[{"key":7,"value":"YQ=="}]}', 400, 400, "(key of record 0)"),
        ("/partitions/7", JSON_V2, '{"records":[{"value":1}]}', 404, 40402, "Partition not found."),
        ("?client.id=x", JSON_V2, '{"records":[{"value":1}]}', 400, 400, "compression.type"),
    ],
)
def test_invalid_produce_requests_are_refused_with_reason_and_place(
    client: Client,
    topic: str,
    path: str,
    type: str,
    body: str,
    status: int,
    code: int,
    words: str,
) -> None:
    """RST-6"""
    answer = client.post(f"/topics/{topic}{path}", content=body, headers={"Content-Type": type})
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert words in answer.json()["message"]


def test_a_body_that_is_too_large_is_refused(client: Client, topic: str) -> None:
    body = b'{"records":[{"value":"' + b"x" * (17 << 20) + b'"}]}'
    answer = client.post(f"/topics/{topic}", content=body, headers={"Content-Type": JSON_V2})
    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)


def test_a_request_with_too_many_records_is_refused_whole(client: Client, topic: str) -> None:
    body = b'{"records":[' + b'{"value":1},' * 100_000 + b'{"value":1}]}'
    answer = client.post(f"/topics/{topic}", content=body, headers={"Content-Type": JSON_V2})
    refused = "the request has 100,001 records, and 100,000 are allowed (produce.records.max)"
    assert (answer.status_code, answer.json()["message"].split(":")[0]) == (413, refused)


def test_a_record_too_large_for_the_broker_has_an_error_of_its_own(
    client: Client, topic: str
) -> None:
    answer = produce(client, topic, 1, "x" * 3_000_000)
    told = [one["error_code"] for one in answer.json()["offsets"]]
    assert told == [None, 50002]


def test_properties_that_are_allowed_may_be_chosen_by_a_request(client: Client, node: Node) -> None:
    """RST-6"""
    topic = create_topic(node)
    body = {"records": [{"value": "x" * 1000}]}
    path = f"/topics/{topic}?acks=1&compression.type=gzip"
    assert post(client, path, body, JSON_V2).json()["offsets"][0]["offset"] == 0
    assert read_values(node, topic) == [b'"' + b"x" * 1000 + b'"']


def test_topics_partitions_and_brokers_are_shown(client: Client, node: Node) -> None:
    """RST-1"""
    topic = create_topic(node, partitions=2, retention_ms=123_456_789)
    produce(client, topic, 1)
    assert topic in client.get("/topics").json()
    found = client.get(f"/topics/{topic}").json()
    assert found["configs"]["retention.ms"] == "123456789"
    assert [one["partition"] for one in found["partitions"]] == [0, 1]
    assert client.get(f"/topics/{topic}/partitions").json() == found["partitions"]
    one = client.get(f"/topics/{topic}/partitions/1").json()
    assert one["replicas"] == [{"broker": one["leader"], "leader": True, "in_sync": True}]
    assert client.get("/brokers").json() == {"brokers": [one["leader"]]}
    ends = [client.get(f"/topics/{topic}/partitions/{p}/offsets").json() for p in (0, 1)]
    assert sorted(end["end_offset"] for end in ends) == [0, 1]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/topics/no-such-topic", 40401),
        ("/topics/no-such-topic/partitions", 40401),
        ("/topics/{topic}/partitions/5", 40402),
        ("/topics/{topic}/partitions/5/offsets", 40402),
        ("/nowhere", 404),
    ],
)
def test_missing_resources_have_error_codes(
    client: Client, topic: str, path: str, code: int
) -> None:
    answer = client.get(path.format(topic=topic))
    assert (answer.status_code, answer.json()["error_code"]) == (404, code)


def test_an_instance_reads_commits_and_reads_on_after_it(client: Client, topic: str) -> None:
    """RST-3"""
    produce(client, topic, "a", "b", "c")
    group = unique_name("group")
    first = Instance(client, group, **{"auto.commit.enable": "false"})
    assert first.post("/subscription", {"topics": [topic]}).status_code == 204
    assert first.read(3) == ["a", "b", "c"]
    offsets = {"offsets": [{"topic": topic, "partition": 0, "offset": 0}]}
    assert first.post("/offsets", offsets).status_code == 204
    places = {"partitions": [{"topic": topic, "partition": 0}]}
    told = client.request(
        "GET", f"{first.base}/offsets", content=json.dumps(places), headers={"Content-Type": V2}
    )
    assert told.json()["offsets"][0]["offset"] == 1
    assert client.delete(first.base).status_code == 204
    second = Instance(client, group)
    second.post("/subscription", {"topics": [topic]})
    assert second.read(2) == ["b", "c"]


def test_a_commit_without_a_body_commits_all_records_read(client: Client, topic: str) -> None:
    produce(client, topic, 1, 2)
    group = unique_name("group")
    first = Instance(client, group, **{"auto.commit.enable": False})
    first.post("/subscription", {"topics": [topic]})
    first.read(2)
    assert client.post(f"{first.base}/offsets", headers={"Content-Type": V2}).status_code == 204
    client.delete(first.base)
    produce(client, topic, 3)
    second = Instance(client, group)
    second.post("/subscription", {"topics": [topic]})
    assert second.read(1) == [3]


def test_deleting_an_instance_commits_the_records_it_read(client: Client, topic: str) -> None:
    produce(client, topic, 1, 2)
    group = unique_name("group")
    first = Instance(client, group)
    first.post("/subscription", {"topics": [topic]})
    first.read(2)
    client.delete(first.base)
    produce(client, topic, 3)
    second = Instance(client, group)
    second.post("/subscription", {"topics": [topic]})
    assert second.read(1) == [3]


def test_assigned_partitions_are_read_from_any_offset(client: Client, topic: str) -> None:
    """RST-3"""
    produce(client, topic, *range(5))
    instance = Instance(client)
    places = {"partitions": [{"topic": topic, "partition": 0}]}
    assert instance.post("/assignments", places).status_code == 204
    assert instance.get("/assignments").json() == places
    assert instance.read(5) == [0, 1, 2, 3, 4]
    there = {"offsets": [{"topic": topic, "partition": 0, "offset": 3}]}
    assert instance.post("/positions", there).status_code == 204
    assert instance.read(2) == [3, 4]
    assert instance.post("/positions/beginning", places).status_code == 204
    assert instance.read(5) == [0, 1, 2, 3, 4]
    assert instance.post("/positions/end", places).status_code == 204
    produce(client, topic, 99)
    assert instance.read(1) == [99]


def test_reading_can_begin_at_a_time(client: Client, node: Node) -> None:
    topic = create_topic(node, retention_ms=-1)
    stamps = [1_700_000_000_000, 1_700_000_100_000, 1_700_000_200_000]
    records = [{"value": stamp, "timestamp": stamp} for stamp in stamps]
    post(client, f"/topics/{topic}", {"records": records}, JSON_V2)
    instance = Instance(client)
    instance.post("/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    when = {"topic": topic, "partition": 0, "timestamp": "2023-11-14T22:14:30Z"}
    assert instance.post("/positions", {"timestamps": [when]}).status_code == 204
    assert instance.read(2) == stamps[1:]


def test_max_bytes_bounds_an_answer_and_loses_nothing(client: Client, topic: str) -> None:
    produce(client, topic, *["x" * 100] * 10)
    instance = Instance(client)
    instance.post("/subscription", {"topics": [topic]})
    sizes: list[int] = []

    def all_read() -> bool:
        sizes.append(len(instance.records(max_bytes=250)))
        return sum(sizes) >= 10

    eventually(all_read)
    assert max(sizes) == 2
    assert sum(sizes) == 10


def test_topics_can_be_subscribed_to_by_a_pattern(client: Client, node: Node) -> None:
    prefix = unique_name("pattern")
    topics = [create_topic(node, name=f"{prefix}.{end}") for end in ("one", "two")]
    for topic in topics:
        produce(client, topic, topic)
    instance = Instance(client)
    assert instance.post("/subscription", {"topic_pattern": f"{prefix}.*"}).status_code == 204
    assert sorted(instance.read(2)) == topics
    assert instance.get("/subscription").json() == {"topics": topics}


def test_binary_instances_show_bytes(client: Client, topic: str) -> None:
    produce(client, topic, "a")
    instance = Instance(client, format="binary")
    instance.post("/subscription", {"topics": [topic]})
    assert instance.read(1) == [base64.b64encode(b'"a"').decode()]


def test_a_record_that_is_no_json_is_named_and_can_be_passed(client: Client, topic: str) -> None:
    """RST-4"""
    produce(client, topic, "before")
    post(client, f"/topics/{topic}", {"records": [{"value": "AAE="}]}, BINARY_V2)
    produce(client, topic, "after")
    instance = Instance(client)
    instance.post("/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    assert instance.read(1) == ["before"]
    accept = {"Accept": JSON_V2}
    failed = eventually(
        lambda: client.get(f"{instance.base}/records", headers=accept),
        expect=lambda answer: answer.status_code != 200,
    )
    assert failed.json()["error_code"] == 40801
    message = failed.json()["message"]
    assert f"{topic}-0 at offset 1" in message
    advised = message.partition("to skip the record, POST ")[2].partition(" to the instance's")[0]
    instance.post("/positions", json.loads(advised))
    assert instance.read(1) == ["after"]


@pytest.mark.parametrize(
    ("given", "status", "code", "words"),
    [
        ({"format": "xml"}, 422, 422, "Invalid format type. 'xml' is none of binary, json, avro"),
        ({"auto.offset.reset": "middle"}, 422, 42204, "earliest"),
        ({"bootstrap.servers": "elsewhere:9092"}, 422, 42204, "allowed are"),
        ({"ssl.key.location": "/etc/passwd"}, 422, 42204, "isolation.level"),
        ({"fetch.min.bytes": -5}, 422, 40001, "fetch.min.bytes"),
        ({"isolation.level": "perfect"}, 422, 42204, "isolation.level"),
        ({"name": "a/b"}, 422, 422, "slashes"),
    ],
)
def test_instances_take_safe_settings_only(
    client: Client, given: dict[str, Any], status: int, code: int, words: str
) -> None:
    """RST-6"""
    answer = post(client, f"/consumers/{unique_name('group')}", given)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert words in answer.json()["message"]


def test_a_name_of_an_instance_is_unique(client: Client) -> None:
    group = unique_name("group")
    given = {"name": "mine", "format": "binary"}
    assert post(client, f"/consumers/{group}", given).json()["instance_id"] == "mine"
    again = post(client, f"/consumers/{group}", given)
    assert (again.status_code, again.json()["error_code"]) == (409, 40902)


def test_requests_that_an_instance_cannot_serve_now_are_conflicts(
    client: Client, topic: str
) -> None:
    instance = Instance(client)
    there = {"offsets": [{"topic": topic, "partition": 0, "offset": 0}]}
    unassigned = instance.post("/positions", there)
    assert (unassigned.status_code, unassigned.json()["error_code"]) == (409, 40903)
    instance.post("/subscription", {"topics": [topic]})
    both = instance.post("/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    assert (both.status_code, both.json()["error_code"]) == (409, 40903)


def test_an_instance_reads_its_own_form_only(client: Client) -> None:
    instance = Instance(client, format="binary")
    answer = client.get(f"{instance.base}/records", headers={"Accept": JSON_V2})
    assert (answer.status_code, answer.json()["error_code"]) == (406, 40601)


def test_another_proxy_lacks_an_instance_and_shares_its_group(
    client: Client, node: Node, tmp_path: Path
) -> None:
    """RST-5"""
    topic = create_topic(node, partitions=2)
    group = unique_name("group")
    with (
        proxy(node.address, tmp_path / "other.log") as other,
        httpx2.Client(base_url=other.url, timeout=60) as elsewhere,
    ):
        first, second = Instance(client, group), Instance(elsewhere, group)
        path = first.base.partition("/consumers")[2]
        lost = elsewhere.get(f"/consumers{path}/records")
        assert (lost.status_code, lost.json()["error_code"]) == (404, 40403)
        for instance in (first, second):
            instance.post("/subscription", {"topics": [topic]})

        def shares() -> list[int]:
            for instance in (first, second):
                instance.records(timeout=100)
            found = [instance.get("/assignments").json() for instance in (first, second)]
            return [len(one["partitions"]) for one in found]

        eventually(shares, expect=lambda found: found == [1, 1])
        assert produce(elsewhere, topic, 1).json()["offsets"][0]["error_code"] is None
        elsewhere.delete(second.base)
        eventually(lambda: shares_of(first), expect=lambda found: found == 2)


def shares_of(instance: Instance) -> int:
    instance.records(timeout=100)
    return len(instance.get("/assignments").json()["partitions"])


def test_unused_instances_expire_and_their_number_is_bounded(node: Node, tmp_path: Path) -> None:
    """RST-3"""
    options = ["--set", "consumer.instance.timeout.ms=300", "--set", "consumer.instances.max=1"]
    with (
        proxy(node.address, tmp_path / "proxy.log", options) as found,
        httpx2.Client(base_url=found.url, timeout=60) as client,
    ):
        instance = Instance(client)
        full = post(client, "/consumers/other", {})
        assert (full.status_code, full.json()["error_code"]) == (503, 50301)
        # Looking would keep the instance alive, so what is asked is whether there is room.
        eventually(lambda: post(client, "/consumers/other", {}).status_code == 200)
        assert instance.get("/subscription").json()["error_code"] == 40403


def test_a_topic_that_is_not_created_automatically_is_not_found(
    start_node: StartNode, tmp_path: Path
) -> None:
    node = start_node(auto_create_topics_enable=False)
    with (
        proxy(node.address, tmp_path / "proxy.log") as found,
        httpx2.Client(base_url=found.url, timeout=60) as client,
    ):
        answer = produce(client, "nobody-made-this", 1)
        assert (answer.status_code, answer.json()["error_code"]) == (404, 40401)
        cluster = client.get("/v3/clusters").json()["data"][0]["cluster_id"]
        path = f"/v3/clusters/{cluster}/topics/nobody-made-this/records"
        record = {"value": {"type": "JSON", "data": 1}}
        assert post(client, path, record, "application/json").json()["error_code"] == 40401


def test_an_unreachable_broker_is_reported_in_time(start_node: StartNode, tmp_path: Path) -> None:
    node = start_node()
    options = ["--set", "client.timeout.ms=1500"]
    with (
        proxy(node.address, tmp_path / "proxy.log", options) as found,
        httpx2.Client(base_url=found.url, timeout=60) as client,
    ):
        assert produce(client, "things", 1).status_code == 200
        node.kill()
        assert client.get("/topics").json()["error_code"] == 50302
        told = produce(client, "things", 2).json()["offsets"][0]
        assert (told["error_code"], told["offset"]) == (50003, None)
        node.start()
        eventually(lambda: produce(client, "things", 3).json()["offsets"][0]["offset"] is not None)


def test_acknowledged_records_are_stored_once_after_a_crash_of_the_broker(
    start_node: StartNode, tmp_path: Path
) -> None:
    """RST-2"""
    node = start_node()
    acknowledged: list[int] = []
    with (
        proxy(node.address, tmp_path / "proxy.log") as found,
        httpx2.Client(base_url=found.url, timeout=60) as client,
    ):

        def produce_some(first: int) -> None:
            for number in range(first, first + 50):
                (told,) = produce(client, "things", number).json()["offsets"]
                if told["error_code"] is None:
                    acknowledged.append(number)

        def crash_and_start() -> None:
            node.kill()
            node.start()

        crash = threading.Thread(target=crash_and_start)
        produce_some(0)
        crash.start()
        produce_some(50)
        crash.join()
        produce_some(100)
    written = [int(value or b"") for value in read_values(node, "things")]
    assert len(acknowledged) >= 100
    assert {number: written.count(number) for number in acknowledged} == dict.fromkeys(
        acknowledged, 1
    )
