"""Rights of users in clusters of Headrace and of Apache Kafka: rules and principals cross over."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from headrace.client.addresses import Address
from headrace.client.connection import Connection
from headrace.client.security import Security
from headrace.errors import TopicAlreadyExists, TopicAuthorizationFailed
from headrace.protocol.schemas.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.settings.properties import parse, render
from headrace.testing.cluster import ClusterProcess
from headrace.testing.process import HOST
from tests.clients.librdkafka import SECONDS_MAX
from tests.interop.test_mixed_clusters import (
    SHORT_SESSIONS,
    OurBroker,
    broker_properties,
    cluster_id_of,
    format_broker,
    format_properties,
)
from tests.processes.kafka import KafkaRelease
from tests.processes.kafka_clusters import watched
from tests.processes.kafka_tools import KafkaTools, running_tools
from tests.processes.nodes import Kafka, Node, eventually, free_port

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORD = "not a secret"
DENIED = TopicAuthorizationFailed.code
CREATED = (0, TopicAlreadyExists.code)
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "1",
    **SHORT_SESSIONS,
}
"""Nodes and tools are anonymous super users; users log in at a listener of their own."""


@pytest.fixture(scope="module")
def tools(kafka_release: KafkaRelease) -> Iterator[KafkaTools]:
    with running_tools(kafka_release) as running:
        yield running


def with_logins(listeners: str, port: int) -> dict[str, str]:
    """Return the properties of a broker with a listener for users."""
    return {
        **AUTHORIZED,
        "listeners": f"{listeners},LOGIN://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "LOGIN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f'{PLAIN} required user_ada="{PASSWORD}";',
    }


def create_topic(port: int, name: str) -> int:
    """Create a topic as ada, by this broker; return the error, or 0."""
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ada",
        "sasl.password": PASSWORD,
    }
    address = Address(HOST, port)
    connection = Connection.open(address, Security.of(login), SECONDS_MAX)
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1)], timeout_ms=SECONDS_MAX * 1000)
    answer = connection.call(request, CreateTopicsResponse)
    connection.close()
    return answer.topics[0].error_code


def change_rule(tools: KafkaTools, address: str, action: str, *words: str) -> None:
    rule = ("--allow-principal", "User:ada", "--operation", "Create", "--topic", "ada-")
    pattern = ("--resource-pattern-type", "prefixed")
    tools.run("kafka-acls", *address.split(), action, *rule, *pattern, *words)


def assert_rules_cross_over(tools: KafkaTools, address: str, ports: Mapping[str, int]) -> None:
    """Add and remove a rule at an address, and create topics at each broker."""
    assert {where: create_topic(port, "ada-1") for where, port in ports.items()} == dict.fromkeys(
        ports, DENIED
    )
    change_rule(tools, address, "--add")
    for where, port in ports.items():
        eventually(partial(create_topic, port, f"ada-{where}"), expect=CREATED.__contains__)
        assert create_topic(port, f"other-{where}") == DENIED
    change_rule(tools, address, "--remove", "--force")
    for port in ports.values():
        assert create_topic(port, "ada-2") == DENIED


def test_our_broker_forwards_users_and_rules_to_a_controller_of_kafka(
    kafka_release: KafkaRelease,
    tools: KafkaTools,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """SEC-7: Kafka's controller reads our principals, and our broker follows its rules."""
    theirs = Node(Kafka(), tmp_path / "kafka", {})
    ports = {"kafka": free_port(), "headrace": free_port()}
    theirs.settings = with_logins(Kafka().defaults(theirs)["listeners"], ports["kafka"])
    ours = OurBroker(2, tmp_path / "headrace")
    with watched(request, [theirs]):
        theirs.start()
        try:
            properties = tmp_path / "headrace" / "node.properties"
            given = broker_properties(2, ours, Kafka().defaults(theirs))
            given |= with_logins(given["listeners"], ports["headrace"])
            properties.parent.mkdir(parents=True, exist_ok=True)
            properties.write_text(render(given, "A broker with users."))
            format_properties(properties, cluster_id_of(theirs.data))
            ours.process.launch(ours.command)
            ours.process.wait_until_ready()
            assert_rules_cross_over(tools, f"--bootstrap-server {ours.address}", ports)
        finally:
            ours.process.stop()


def test_a_broker_of_kafka_forwards_users_and_rules_to_our_controllers(
    kafka_release: KafkaRelease,
    tools: KafkaTools,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """SEC-7: our controllers read Kafka's principals, and Kafka's broker follows their rules."""
    with ClusterProcess(tmp_path / "headrace", AUTHORIZED) as cluster:
        theirs = Node(Kafka(), tmp_path / "kafka", {})
        port = free_port()
        first = parse(cluster.node(1).data_dir.with_suffix(".properties").read_text())
        theirs.settings = broker_properties(4, theirs, first)
        theirs.settings |= with_logins(theirs.settings["listeners"], port)
        format_broker(theirs, cluster_id_of(cluster.node(1).data_dir))
        with watched(request, [theirs]):
            theirs.start()
            assert_rules_cross_over(tools, f"--bootstrap-server {theirs.address}", {"kafka": port})
            controllers = first["controller.quorum.bootstrap.servers"]
            controller = f"--bootstrap-controller {controllers}"
            assert_rules_cross_over(tools, controller, {"kafka-again": port})
            theirs.stop()
