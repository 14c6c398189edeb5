"""The REST proxy's version 3 as a process: resources, changes, and records as a stream."""

import base64
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.clients.librdkafka import create_topic, read, read_values, topic_configs, unique_name
from tests.clients.rest import Served, metric, serving
from tests.processes.nodes import Node, eventually
from tests.processes.rest_proxies import V2, proxy


@pytest.fixture(scope="module")
def proxied(shared_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(shared_node.address, tmp_path_factory.mktemp("rest") / "proxy.log") as found:
        yield found


@pytest.fixture
def served(proxied: Served, node: Node) -> Served:
    return proxied


def test_everything_that_a_cluster_relates_to_is_there(served: Served) -> None:
    """RST-1"""
    cluster = served.get("")
    assert cluster["kind"] == "KafkaCluster"
    assert cluster["metadata"]["resource_name"] == f"crn:///kafka={cluster['cluster_id']}"
    related = [one["related"] for name, one in cluster.items() if name not in _NO_LINKS]
    answers = {link: served.client.get(link).status_code for link in related}
    assert set(answers.values()) == {200}


_NO_LINKS = ("kind", "metadata", "cluster_id", "acls")


def test_brokers_have_an_address_and_replicas(served: Served, topic: str) -> None:
    (broker,) = served.get("/brokers")["data"]
    number = broker["broker_id"]
    assert served.get(f"/brokers/{number}") == broker
    replicas = served.get(f"/brokers/{number}/partition-replicas")["data"]
    held = [(one["topic_name"], one["is_leader"], one["is_in_sync"]) for one in replicas]
    assert (topic, True, True) in held
    config = served.get(f"/brokers/{number}/configs/num.partitions")
    assert (config["kind"], config["broker_id"]) == ("KafkaBrokerConfig", number)
    assert served.get("/brokers/77", 404)["message"] == "Broker 77 cannot be found."


def test_a_topic_is_created_looked_at_grown_and_deleted(served: Served, node: Node) -> None:
    """RST-6, RST-7"""
    name = unique_name("made")
    body = {
        "topic_name": name,
        "partitions_count": 2,
        "replication_factor": 1,
        "configs": [{"name": "retention.ms", "value": "7777777"}],
    }
    made = served.post("/topics", body, 201)
    assert (made["kind"], made["topic_name"], made["partitions_count"]) == ("KafkaTopic", name, 2)
    assert topic_configs(node, name)["retention.ms"].value == "7777777"
    eventually(lambda: served.client.get(f"{served.base}/topics/{name}").status_code == 200)
    grown = served.ask("PATCH", f"/topics/{name}", {"partitions_count": 5}, 200)
    assert served.get(f"/topics/{name}") == grown
    assert [one["partition_id"] for one in served.get(f"/topics/{name}/partitions")["data"]] == (
        [0, 1, 2, 3, 4]
    )
    assert name in [one["topic_name"] for one in served.get("/topics")["data"]]
    served.ask("DELETE", f"/topics/{name}", None, 204)
    gone = eventually(
        lambda: served.client.get(f"{served.base}/topics/{name}"),
        expect=lambda answer: answer.status_code == 404,
    )
    assert gone.json()["error_code"] == 40403


def test_replicas_can_be_chosen_and_creation_tried_out(served: Served) -> None:
    name = unique_name("assigned")
    broker = served.get("/brokers")["data"][0]["broker_id"]
    body = {"topic_name": name, "replicas_assignments": {"0": [broker], "1": [broker]}}
    served.post("/topics", {**body, "validate_only": True}, 200)
    assert served.get(f"/topics/{name}", 404)["error_code"] == 40403
    served.post("/topics", body, 201)
    path = f"/topics/{name}/partitions/1"
    eventually(lambda: served.client.get(served.base + path).status_code == 200)
    (replica,) = served.get(f"{path}/replicas")["data"]
    assert served.get(f"{path}/replicas/{broker}") == replica


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"topic_name": "no spaces please"}, 422, 42206),
        ({"topic_name": "few", "replication_factor": 99}, 400, 40002),
        ({"topic_name": "odd", "configs": [{"name": "x.y", "value": "1"}]}, 400, 40002),
        ({"partitions_count": 1}, 422, 422),
        ({"topic_name": "none", "partitions_count": 0}, 422, 422),
        (None, 422, 42206),
    ],
)
def test_topics_that_cannot_be_made_are_refused(
    served: Served, body: Any, status: int, code: int
) -> None:
    assert served.post("/topics", body, status)["error_code"] == code


def test_creating_an_existing_topic_is_refused(served: Served, topic: str) -> None:
    assert served.post("/topics", {"topic_name": topic}, 400)["error_code"] == 40002


def test_settings_of_a_topic_are_set_and_reset(served: Served, topic: str) -> None:
    path = f"/topics/{topic}/configs/retention.ms"
    assert served.get(path)["is_default"]
    served.ask("PUT", path, {"value": "9999999"}, 204)
    changed = eventually(lambda: served.get(path), expect=lambda one: not one["is_default"])
    assert (changed["value"], changed["source"]) == ("9999999", "DYNAMIC_TOPIC_CONFIG")
    assert changed["synonyms"][0]["source"] == "DYNAMIC_TOPIC_CONFIG"
    defaults = served.get(f"/topics/{topic}/default-configs")["data"]
    (default,) = [one for one in defaults if one["name"] == "retention.ms"]
    assert default["value"] == "604800000"
    served.ask("DELETE", path, None, 204)
    eventually(lambda: served.get(path)["is_default"])


def test_several_settings_change_at_once_or_not_at_all(served: Served, topic: str) -> None:
    path = f"/topics/{topic}/configs"
    entries = [
        {"name": "cleanup.policy", "value": "compact"},
        {"name": "retention.ms", "operation": "DELETE"},
    ]
    served.post(f"{path}:alter", {"data": entries, "validate_only": True}, 204)
    assert served.get(f"{path}/cleanup.policy")["value"] == "delete"
    served.post(f"{path}:alter", {"data": entries}, 204)
    eventually(lambda: served.get(f"{path}/cleanup.policy")["value"] == "compact")
    wrong = {"data": [{"name": "retention.ms", "value": "soon"}]}
    assert served.post(f"{path}:alter", wrong, 400)["error_code"] == 40002
    unknown = {"data": [{"name": "no.such.thing", "value": "1"}]}
    assert "cannot be found" in served.post(f"{path}:alter", unknown, 404)["message"]
    assert "cannot be found" in served.get(f"{path}/no.such.thing", 404)["message"]


def test_settings_of_all_brokers_are_set_and_reset(served: Served) -> None:
    path = "/broker-configs/log.cleaner.threads"
    served.ask("PUT", path, {"value": "1"}, 204)
    shown = eventually(
        lambda: served.get("/broker-configs")["data"],
        expect=lambda data: any(one["name"] == "log.cleaner.threads" for one in data),
    )
    assert {one["config_type"] for one in shown} == {"BROKER"}
    served.ask("DELETE", path, None, 204)


def test_settings_of_everything_are_listed(served: Served, topic: str) -> None:
    topics = {one["topic_name"] for one in served.get("/topics/-/configs")["data"]}
    assert topic in topics
    brokers = {one["kind"] for one in served.get("/brokers/-/configs")["data"]}
    assert brokers == {"KafkaBrokerConfig"}


def test_offsets_of_a_partition_are_returned(served: Served, topic: str) -> None:
    produce(served, topic, {"value": {"type": "JSON", "data": 1}})
    found = served.get(f"/topics/{topic}/partitions/0/offset")
    assert (found["earliest_offset"], found["latest_offset"]) == (0, 1)
    odd = served.get(f"/topics/{topic}/partitions/0/offset?offset_type=middle", 400)
    assert "offset_type:middle is invalid" in odd["message"]
    assert served.get(f"/topics/{topic}/partitions/9", 404)["error_code"] == 40402


def test_no_reassignments_are_listed(served: Served, topic: str) -> None:
    assert served.get("/topics/-/partitions/-/reassignment")["data"] == []
    assert served.get(f"/topics/{topic}/partitions/-/reassignment")["data"] == []
    assert served.get(f"/topics/{topic}/partitions/0/reassignment", 404)["error_code"] == 404


def produce(served: Served, topic: str, record: Any) -> dict[str, Any]:
    return served.post(f"/topics/{topic}/records", record)


def test_a_record_has_a_key_headers_a_time_and_a_partition(served: Served, node: Node) -> None:
    """RST-2"""
    topic = create_topic(node, partitions=3, retention_ms=-1)
    answer = produce(
        served,
        topic,
        {
            "partition_id": 2,
            "headers": [{"name": "h", "value": "aGk="}, {"name": "none"}],
            "key": {"type": "STRING", "data": "k"},
            "value": {"type": "BINARY", "data": "AAE="},
            "timestamp": "2023-11-14T22:13:20.123Z",
        },
    )
    assert answer == {
        "error_code": 200,
        "cluster_id": answer["cluster_id"],
        "topic_name": topic,
        "partition_id": 2,
        "offset": 0,
        "timestamp": "2023-11-14T22:13:20.123Z",
        "key": {"type": "STRING", "size": 1},
        "value": {"type": "BINARY", "size": 2},
    }
    (found,) = read(node, topic, partition=2)
    assert (found.key(), found.value()) == (b"k", b"\0\1")
    assert found.headers() == [("h", b"hi"), ("none", None)]
    assert found.timestamp()[1] == 1_700_000_000_123


def test_many_records_in_one_body_are_answered_one_by_one(served: Served, node: Node) -> None:
    topic = create_topic(node)
    good = [{"value": {"type": "JSON", "data": {"n": number}}} for number in range(5)]
    bad = {"value": {"type": "BINARY", "data": "%"}}
    pieces = [json.dumps(one) for one in (*good[:2], bad, *good[2:], {"partition_id": -1})]
    answer = served.client.post(
        f"{served.base}/topics/{topic}/records",
        content="\n".join(pieces) + '{"value":',
        headers={"Content-Type": "application/json"},
    )
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [one["error_code"] for one in results] == [200, 200, 400, 200, 200, 200, 40402, 400]
    assert [one["offset"] for one in results if "offset" in one] == [0, 1, 2, 3, 4]
    assert read_values(node, topic) == [b'{"n":%d}' % number for number in range(5)]


def test_a_stream_is_answered_while_it_is_still_being_sent(served: Served, topic: str) -> None:
    """RST-7"""
    where = urlsplit(served.base)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
    try:
        connection.putrequest("POST", f"{where.path}/topics/{topic}/records")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        offsets = []
        send_chunk(connection, b'{"value":{"type":"JSON","data":')
        send_chunk(connection, b'"first"}}')
        answer = connection.response_class(connection.sock, method="POST")
        answer.begin()
        offsets.append(json.loads(answer.readline())["offset"])
        for _ in range(3):
            send_chunk(connection, b'{"value":{"type":"JSON","data":"more"}}\n')
            offsets.append(json.loads(answer.readline())["offset"])
        connection.send(b"0\r\n\r\n")
        assert answer.read() == b""
        assert offsets == [0, 1, 2, 3]
    finally:
        connection.close()


@pytest.mark.parametrize("body", [b"", b" \r\n "])
def test_an_empty_body_is_no_record(served: Served, topic: str, body: bytes) -> None:
    path = f"{served.base}/topics/{topic}/records"
    headers = {"Content-Type": "application/json"}
    whole = served.client.post(path, content=body, headers=headers)
    chunked = served.client.post(path, content=iter([body]), headers=headers)
    told = {
        "error_code": 42206,
        "message": "Payload error. Request body is empty. Data is required.",
    }
    assert (whole.status_code, whole.json(), chunked.json()) == (422, told, told)


def send_chunk(connection: http.client.HTTPConnection, data: bytes) -> None:
    connection.send(b"%x\r\n%s\r\n" % (len(data), data))


def test_a_batch_returns_successes_and_failures_by_id(served: Served, node: Node) -> None:
    topic = create_topic(node)
    entries = [
        {"id": "a", "value": {"type": "STRING", "data": "x"}},
        {"id": "b", "value": {"type": "STRING", "data": 1}},
        {"id": "c", "partition_id": 9},
    ]
    answer = served.post(f"/topics/{topic}/records:batch", {"entries": entries}, 207)
    assert [(one["id"], one["offset"]) for one in answer["successes"]] == [("a", 0)]
    assert [(one["id"], one["error_code"]) for one in answer["failures"]] == [
        ("b", 400),
        ("c", 40402),
    ]
    assert read_values(node, topic) == [b"x"]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "Empty batch."),
        ([{"id": "1"}, {"id": "1"}], "not distinct"),
        ([{"id": ""}], "entries[0].id"),
        ([{"id": str(number)} for number in range(1001)], "Too many entries"),
    ],
)
def test_invalid_batches_are_refused(served: Served, topic: str, entries: Any, words: str) -> None:
    answer = served.post(f"/topics/{topic}/records:batch", {"entries": entries}, 422)
    assert (answer["error_code"], words in answer["message"]) == (42208, True)


def test_a_group_with_its_members_and_how_far_it_is_behind(served: Served, node: Node) -> None:
    """RST-6"""
    topic, group = create_topic(node), unique_name("group")
    for number in range(3):
        produce(served, topic, {"value": {"type": "JSON", "data": number}})
    instance = member_of(served, group, topic)
    place = f"/consumer-groups/{group}"
    found = served.get(place)
    assert (found["state"], found["type"], found["is_simple"]) == ("STABLE", "CLASSIC", False)
    assert group in [one["consumer_group_id"] for one in served.get("/consumer-groups")["data"]]
    (consumer,) = served.get(f"{place}/consumers")["data"]
    member = f"{place}/consumers/{consumer['consumer_id']}"
    assert served.get(member) == consumer
    (assignment,) = served.get(f"{member}/assignments")["data"]
    assert served.get(f"{member}/assignments/{topic}/partitions/0") == assignment
    commit = {"offsets": [{"topic": topic, "partition": 0, "offset": 0}]}
    served.client.post(
        f"{instance}/offsets", content=json.dumps(commit), headers={"Content-Type": V2}
    )
    (lag,) = served.get(f"{place}/lags")["data"]
    assert (lag["current_offset"], lag["log_end_offset"], lag["lag"]) == (1, 3, 2)
    assert lag["consumer_id"] == consumer["consumer_id"]
    assert served.get(f"{place}/lags/{topic}/partitions/0") == lag
    summary = served.get(f"{place}/lag-summary")
    assert (summary["max_lag"], summary["total_lag"], summary["max_lag_topic_name"]) == (
        *(2, 2),
        topic,
    )


def member_of(served: Served, group: str, topic: str) -> str:
    """An instance that has joined; the result is its address."""
    headers = {"Content-Type": V2}
    url = served.base.partition("/v3")[0]
    given = json.dumps({"auto.offset.reset": "earliest", "auto.commit.enable": "false"})
    created = served.client.post(f"{url}/consumers/{group}", content=given, headers=headers)
    base: str = created.json()["base_uri"]
    topics = json.dumps({"topics": [topic]})
    served.client.post(f"{base}/subscription", content=topics, headers=headers)
    eventually(lambda: served.client.get(f"{base}/records").json())
    return base


def test_offsets_of_a_group_without_members_are_set_and_the_group_forgotten(
    served: Served, node: Node
) -> None:
    topic, group = create_topic(node), unique_name("group")
    produce(served, topic, {"value": {"type": "JSON", "data": 1}})
    place = f"/consumer-groups/{group}"
    entry = {"topic_name": topic, "partition_id": 0, "offset": 1}
    served.post(f"{place}/offsets:alter", {"data": [entry]}, 204)
    (shown,) = served.get(f"{place}/offsets")["data"]
    assert (shown["topic_name"], shown["offset"]) == (topic, 1)
    served.ask("DELETE", place, None, 204)
    assert served.get(place, 404)["error_code"] == 40405


def test_without_an_authorizer_access_rules_are_refused_clearly(
    served: Served, only_headrace: None
) -> None:
    answer = served.get("/acls", 400)
    assert (answer["error_code"], "No Authorizer" in answer["message"]) == (40002, True)


def test_records_that_are_written_are_counted(served: Served, topic: str) -> None:
    url, name = str(served.client.base_url).rstrip("/"), "headrace_rest_records_written_total"
    before = metric(url, name)
    produce(served, topic, {"value": {"type": "JSON", "data": 1}})
    assert metric(url, name) - before == 1


def test_an_unknown_cluster_is_not_found(served: Served) -> None:
    answer = served.client.get("/v3/clusters/elsewhere/topics")
    assert (answer.status_code, answer.json()["error_code"]) == (404, 404)
    assert answer.json()["message"] == "Cluster elsewhere cannot be found."


def test_binary_is_the_form_of_data_without_a_type(served: Served, node: Node) -> None:
    topic = create_topic(node)
    data = base64.b64encode(b"plain").decode()
    assert produce(served, topic, {"value": {"data": data}})["value"] == {"size": 5}
    assert read_values(node, topic) == [b"plain"]


def test_a_deleted_topic_stays_deleted_until_a_record_comes(node: Node, tmp_path: Path) -> None:
    """RST-7: the producer looks for its topics often here, as it does now and then elsewhere."""
    name = unique_name("gone")
    often = ("-s", "producer.topic.metadata.refresh.interval.ms=100")
    with (
        proxy(node.address, tmp_path / "proxy.log", often) as found,
        httpx2.Client(base_url=found.url, timeout=60) as client,
    ):
        (cluster,) = client.get("/v3/clusters").json()["data"]
        served = Served(client, cluster["metadata"]["self"])
        value = {"value": {"type": "STRING", "data": "a"}}
        assert served.post(f"/topics/{name}/records", value)["error_code"] == 200
        served.ask("DELETE", f"/topics/{name}", None, 204)
        other = unique_name("other")
        for _ in range(30):
            served.post(f"/topics/{other}/records", value)
        refused = served.post(f"/topics/{name}/records", {"valu": {}})
        assert (refused["error_code"], name in client.get("/topics").json()) == (400, False)
        again = served.post(f"/topics/{name}/records", value)
        assert (again["error_code"], again["offset"]) == (200, 0)


def test_a_batch_with_a_field_that_is_not_known_is_refused(served: Served, topic: str) -> None:
    entries = [{"id": "1", "valeu": {"data": None}}]
    answer = served.post(f"/topics/{topic}/records:batch", {"entries": entries}, 400)
    assert 'Unrecognized field "valeu"' in answer["message"]
