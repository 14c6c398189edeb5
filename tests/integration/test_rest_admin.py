"""The tasks of Kafka's own tools, by the REST proxy's version 3."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.librdkafka import (
    create_topic,
    produce,
    producer,
    unique_name,
    values,
    watermarks,
)
from tests.clients.rest import Served, serving
from tests.processes.nodes import Flavour, Node, eventually


@pytest.fixture(scope="module")
def proxied(shared_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(shared_node.address, tmp_path_factory.mktemp("rest") / "proxy.log") as found:
        yield found


@pytest.fixture
def served(proxied: Served, node: Node) -> Served:
    return proxied


def test_records_before_an_offset_are_deleted(served: Served, node: Node) -> None:
    """RST-7(c)"""
    topic = create_topic(node, partitions=2)
    produce(node, topic, values("a", "b", "c"), partition=0)
    produce(node, topic, values("d"), partition=1)
    wanted = [{"partition_id": 0, "before_offset": 2}, {"partition_id": 1, "before_offset": -1}]
    answer = served.post(f"/topics/{topic}/records:delete", {"partitions": wanted})
    assert answer["data"] == [
        {"partition_id": 0, "earliest_offset": 2},
        {"partition_id": 1, "earliest_offset": 1},
    ]
    assert watermarks(node, topic) == (2, 3)


@pytest.mark.parametrize(
    ("partitions", "status", "code"),
    [
        ([{"partition_id": 0, "before_offset": 7}], 400, 40002),
        ([{"partition_id": 3, "before_offset": 0}], 404, 40402),
        ([{"partition_id": 0, "before_offset": -2}], 422, 422),
        ([{"partition_id": 0, "before_offset": 0}] * 2, 422, 422),
        ([{"partition_id": 0, "before_offset": 0, "x": 1}], 422, 422),
        ([], 422, 422),
    ],
)
def test_records_that_cannot_be_deleted_are_refused(
    served: Served, topic: str, partitions: list[Any], status: int, code: int
) -> None:
    body = {"partitions": partitions}
    assert served.post(f"/topics/{topic}/records:delete", body, status)["error_code"] == code


def test_leaders_are_elected_where_needed(served: Served, topic: str) -> None:
    """RST-7(c)"""
    partitions = [
        {"topic_name": topic, "partition_id": 0},
        {"topic_name": topic, "partition_id": 9},
    ]
    for kind in ("PREFERRED", "UNCLEAN"):
        body = {"election_type": kind, "partitions": partitions}
        led, missing = served.post("/leader-elections", body, 207)["data"]
        assert (led["partition_id"], led["error_code"]) == (0, 40002)  # None is needed.
        assert (missing["partition_id"], missing["error_code"]) == (9, 40403)
    assert served.post("/leader-elections", {}, 207)["data"] == []
    assert served.post("/leader-elections", {"election_type": "FREE"}, 422)["error_code"] == 422


def test_partitions_are_moved_if_the_broker_supports_it(
    served: Served, topic: str, flavour: Flavour
) -> None:
    place = f"/topics/{topic}/partitions/0/reassignment"
    (broker,) = served.get("/brokers")["data"]
    move = {"topic_name": topic, "partition_id": 0, "replicas": [broker["broker_id"]]}
    path = "/topics/-/partitions/-/reassignment:alter"
    assert served.post(path, {"data": [move, move]}, 422)["error_code"] == 422
    if flavour.name == "headrace":
        refusal = served.post(path, {"data": [move]}, 400)
        assert "does not offer ALTER_PARTITION_REASSIGNMENTS" in refusal["message"]
        return
    there, nowhere = served.post(path, {"data": [move, {**move, "partition_id": 7}]}, 207)["data"]
    assert (there["error_code"], nowhere["error_code"]) == (200, 40403)
    served.ask("PUT", place, {"replicas": move["replicas"]}, 204)
    assert served.ask("PUT", place, {"replicas": [77]}, 400)["error_code"] == 40002
    assert served.ask("DELETE", place, None, 404)["error_code"] == 404  # It has arrived.


def test_quotas_are_set_shown_and_removed(served: Served) -> None:
    name = unique_name("user")
    change = {"entity": {"user": name, "client_id": ""}, "quotas": {"producer_byte_rate": 1e6}}
    served.post("/client-quotas:alter", change, 204)
    (shown,) = eventually(lambda: served.get(f"/client-quotas?user={name}")["data"])
    assert shown["entity"] == {"user": name, "client_id": "", "ip": None}
    assert shown["quotas"] == {"producer_byte_rate": 1e6}
    served.post("/client-quotas:alter", {**change, "quotas": {"producer_byte_rate": None}}, 204)
    eventually(lambda: served.get(f"/client-quotas?user={name}&client_id=")["data"] == [])
    wrong = {**change, "quotas": {"coffee_rate": 1}}
    assert served.post("/client-quotas:alter", wrong, 400)["error_code"] == 40002


def test_a_transaction_is_listed_and_aborted(served: Served, node: Node) -> None:
    """RST-7(c)"""
    topic, name = create_topic(node), unique_name("tx")
    client = producer(node, transactional_id=name)
    client.init_transactions(30)
    client.begin_transaction()
    client.produce(topic, b"x")
    client.flush(30)
    shown = served.get(f"/transactions/{name}")
    assert (shown["state"], shown["partitions"]) == (
        "Ongoing",
        [{"topic_name": topic, "partition_ids": [0]}],
    )
    listed = [one["transactional_id"] for one in served.get("/transactions?state=Ongoing")["data"]]
    assert (name in listed, _open_transactions(served, topic)) == (True, [0])
    served.ask("POST", f"/transactions/{name}:terminate", None, 204)
    eventually(lambda: served.get(f"/transactions/{name}")["state"] != "Ongoing")
    eventually(lambda: _open_transactions(served, topic) == [])


def _open_transactions(served: Served, topic: str) -> list[int]:
    """Start offsets of the transactions that the topic's producers have open."""
    found = served.get(f"/topics/{topic}/partitions/0/producers")["data"]
    starts = [one["transaction_start_offset"] for one in found]
    return [start for start in starts if start is not None]


def test_missing_transactions_are_reported(served: Served, topic: str) -> None:
    assert served.get("/transactions/nobody", 404)["error_code"] == 404
    assert served.ask("POST", "/transactions/nobody:terminate", None, 404)["error_code"] == 404
    assert "unknown state" in served.get("/transactions?state=Dreaming", 400)["message"]
    abort = f"/topics/{topic}/partitions/0/transactions:abort"
    assert "no open transaction" in served.post(abort, {"start_offset": 5}, 400)["message"]
    missing = f"/topics/{topic}/partitions/4/producers"
    assert served.get(missing, 404)["error_code"] == 40402


def test_disks_features_and_the_quorum_are_shown(served: Served, topic: str) -> None:
    (broker,) = served.get("/brokers")["data"]
    number = broker["broker_id"]
    directories = served.get(f"/brokers/{number}/log-dirs")["data"]
    held = [one["topic"] for directory in directories for one in directory["replicas"]]
    assert (topic in held, served.get("/brokers/-/log-dirs")["data"] != []) == (True, True)
    names = [one["name"] for one in served.get("/features")["data"]]
    assert "metadata.version" in names
    assert served.get("/quorum")["replicas"][0]["role"] == "voter"
    assert served.get("/brokers/77/log-dirs", 404)["message"] == "Broker 77 cannot be found."
    assert served.ask("DELETE", "/brokers/77", None, 404)["error_code"] == 404


def test_settings_of_several_topics_change_together_or_not_at_all(
    served: Served, node: Node
) -> None:
    first, second = create_topic(node), create_topic(node)
    path = "/topics/-/configs:alter"
    good = {"topic_name": first, "name": "retention.ms", "value": "7777"}
    bad = {"topic_name": second, "name": "retention.ms", "value": "soon"}
    assert served.post(path, {"data": [good, bad]}, 400)["error_code"] == 40002
    assert served.get(f"/topics/{first}/configs/retention.ms")["is_default"] is True
    served.post(path, {"data": [good, {**bad, "value": "8888"}]}, 204)
    eventually(lambda: [_retention(served, first), _retention(served, second)] == ["7777", "8888"])


def _retention(served: Served, topic: str) -> str:
    return str(served.get(f"/topics/{topic}/configs/retention.ms")["value"])


def test_committed_offsets_of_a_group_are_altered_and_deleted(served: Served, node: Node) -> None:
    topic = create_topic(node, partitions=2)
    group = f"/consumer-groups/team%2F{unique_name('group')}"  # A slash is a letter of a name.
    places = [{"topic_name": topic, "partition_id": number} for number in (0, 1)]
    served.post(f"{group}/offsets:alter", {"data": [{**one, "offset": 0} for one in places]}, 204)
    served.post(f"{group}/offsets:delete", {"data": places[:1]}, 204)
    assert [one["partition_id"] for one in served.get(f"{group}/offsets")["data"]] == [1]
