"""The schema registry and the REST proxy before an Apache Kafka, with logins and access rules."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from headrace.http.users import PasswordHash
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import HOST, Kafka, Node, eventually, free_port
from tests.processes.registries import USER, USER_WITH_NAME, RegistryProcess, running_registry
from tests.processes.rest_proxies import JSON_V2, V2, proxy

PASSWORDS = {"ada": "ada-pw", "bob": "bob-pw"}
RULE = {
    "resource_type": "TOPIC",
    "resource_name": "open-",
    "pattern_type": "PREFIXED",
    "principal": "User:ada",
    "host": "*",
    "operation": "ALL",
    "permission": "ALLOW",
}


class Guarded(NamedTuple):
    """A Kafka that lets its super user in without a login, and others by PLAIN."""

    node: Node
    login_address: str


@pytest.fixture(scope="module")
def guarded(
    kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    node = Node(Kafka(), tmp_path_factory.mktemp("ruled"), {})
    port = free_port()
    listeners = {"PLAINTEXT": node.port, "SASL_PLAINTEXT": port, "CONTROLLER": node.controller_port}
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    node.settings |= {
        "listeners": ",".join(f"{name}://{HOST}:{at}" for name, at in listeners.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{module} required {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
    }
    try:
        node.start()
        yield Guarded(node, f"{HOST}:{port}")
    finally:
        if node.is_running:
            node.kill()


@pytest.fixture(scope="module")
def rules(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of a proxy that may do everything, at the cluster's address."""
    log = tmp_path_factory.mktemp("rest") / "proxy.log"
    with proxy(guarded.node.address, log) as found:
        (cluster,) = httpx2.get(f"{found.url}/v3/clusters", timeout=60).json()["data"]
        with httpx2.Client(base_url=cluster["metadata"]["self"], timeout=60) as client:
            yield client


def posted(client: httpx2.Client, path: str, body: Any) -> int:
    headers = {"Content-Type": "application/json"}
    return client.post(path, content=json.dumps(body), headers=headers).status_code


def test_rules_are_added_found_and_removed(rules: httpx2.Client) -> None:
    """RST-6"""
    others = [
        {**RULE, "resource_name": f"batch-{number}", "pattern_type": "LITERAL"} for number in (1, 2)
    ]
    assert posted(rules, "/acls", RULE) == 201
    assert posted(rules, "/acls:batch", {"data": others}) == 201
    found = eventually(
        lambda: rules.get("/acls", params={"principal": "User:ada"}).json()["data"],
        expect=lambda data: len(data) >= 3,
    )
    shown = [{name: one[name] for name in RULE} for one in found]
    assert all(one in shown for one in (RULE, *others))
    fitting = {**RULE, "resource_name": "open-orders", "pattern_type": "MATCH"}
    assert len(rules.get("/acls", params=fitting).json()["data"]) == 1
    wanted = {"resource_type": "TOPIC", "pattern_type": "LITERAL", "resource_name": "batch-1"}
    removed = rules.delete("/acls", params={**wanted, "operation": "ANY", "permission": "ANY"})
    assert [one["resource_name"] for one in removed.json()["data"]] == ["batch-1"]
    assert rules.delete("/acls").json()["error_code"] == 400
    odd = {**RULE, "operation": "DANCE"}
    assert posted(rules, "/acls", odd) == 400


def test_the_callers_own_name_counts_at_the_broker(
    guarded: Guarded, rules: httpx2.Client, tmp_path: Path
) -> None:
    """Ada may write to topics that begin with `open-`, and Bob may not."""
    posted(rules, "/acls", RULE)
    assert posted(rules, "/topics", {"topic_name": "open-orders"}) in (201, 400)
    users = tmp_path / "users"
    users.write_text("".join(f"{name}:{PasswordHash.of(pw)}\n" for name, pw in PASSWORDS.items()))
    users.chmod(0o600)
    options = ["--user-file", str(users), "--set", "client.identity=basic"]
    options += ["--set", "client.security.protocol=SASL_PLAINTEXT"]
    with proxy(guarded.login_address, tmp_path / "proxy.log", options) as found:
        url = f"{found.url}/topics/open-orders"

        def produced(name: str) -> httpx2.Response:
            return httpx2.post(
                url,
                content='{"records":[{"value":1}]}',
                headers={"Content-Type": JSON_V2},
                auth=(name, PASSWORDS[name]),
                timeout=60,
            )

        allowed = eventually(
            lambda: produced("ada"), expect=lambda answer: answer.status_code == 200
        )
        assert allowed.json()["offsets"][0]["error_code"] is None
        refused = produced("bob")
        assert refused.status_code == 403, refused.text
        mine = httpx2.get(f"{found.url}/topics", auth=("ada", "ada-pw"), timeout=60)
        assert mine.json() == ["open-orders"]
        others = httpx2.get(f"{found.url}/topics", auth=("bob", "bob-pw"), timeout=60)
        assert others.json() == []


@contextmanager
def instances(guarded: Guarded, logs: Path) -> Iterator[tuple[RegistryProcess, RegistryProcess]]:
    """The leader of a registry, and its followers."""
    settings = {
        "kafkastore.topic": f"_schemas-{logs.name}",
        "schema.registry.group.id": logs.name,
        "kafkagroup.session.timeout.ms": "6000",
        "kafkagroup.heartbeat.interval.ms": "500",
    }
    pair = [RegistryProcess(guarded.node.address, logs / f"{name}.log", settings) for name in "ab"]
    try:
        for one in pair:
            one.wait_until_ready()
        (leader,) = eventually(
            lambda: [one for one in pair if one.is_leader], expect=lambda found: len(found) == 1
        )
        yield leader, next(one for one in pair if one is not leader)
    finally:
        for one in pair:
            one.process.send_signal(signal.SIGCONT)
            one.end()


def test_a_registry_whose_leader_froze_recovers(guarded: Guarded, tmp_path: Path) -> None:
    """SCH-14: the group, the fence and the topic of several instances, all by Apache Kafka."""
    with instances(guarded, tmp_path) as (leader, other):
        assert other.register("a", USER).json()["id"] == 1  # Handed on to the leader.
        leader.process.send_signal(signal.SIGSTOP)
        eventually(lambda: other.is_leader, seconds=60)
        assert other.register("a", USER_WITH_NAME).json()["id"] == 2
        leader.process.send_signal(signal.SIGCONT)
        # The fence rejects decisions of its old state, unless it already has the new leader.
        third = eventually(lambda: leader.register("b", '"int"').json().get("id"), seconds=60)
        assert third == 3
    topic, name = f"_schemas-{tmp_path.name}", f"{tmp_path.name}-again"
    with running_registry(guarded.node.address, tmp_path, name, topic) as again:
        assert [again.get(f"/schemas/ids/{id}")["version"] for id in (1, 2, 3)] == [1, 2, 1]
        again.wait_until_ready()
        assert again.register("c", '"long"').json()["id"] == 4


def test_records_with_a_schema_go_in_and_out_by_the_proxy(
    guarded: Guarded, rules: httpx2.Client, tmp_path: Path
) -> None:
    """RST-4, SCH-14"""
    assert posted(rules, "/topics", {"topic_name": "with-schema"}) == 201
    avro = "application/vnd.kafka.avro.v2+json"
    with (
        running_registry(guarded.node.address, tmp_path, "beside-a-proxy") as registry,
        proxy(guarded.node.address, tmp_path / "rest.log", ["--registry", registry.url]) as found,
        httpx2.Client(base_url=found.url, timeout=60) as client,
    ):
        body = {"value_schema": USER, "records": [{"value": {"id": 7}}]}
        answer = client.post(
            "/topics/with-schema", content=json.dumps(body), headers={"Content-Type": avro}
        )
        assert answer.json()["value_schema_id"] == 1
        assert registry.get("/schemas/ids/1/subjects") == ["with-schema-value"]
        given = {"format": "avro", "auto.offset.reset": "earliest"}
        created = client.post(
            "/consumers/readers", content=json.dumps(given), headers={"Content-Type": V2}
        )
        base = created.json()["base_uri"]
        wanted = json.dumps({"topics": ["with-schema"]})
        client.post(f"{base}/subscription", content=wanted, headers={"Content-Type": V2})
        records = eventually(lambda: client.get(f"{base}/records", headers={"Accept": avro}).json())
        assert [one["value"] for one in records] == [{"id": 7}]
        client.delete(base)
