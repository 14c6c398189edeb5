"""Nodes of a cluster that log in at each other."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.processes.nodes import eventually
from tests.processes.sasl_nodes import (
    OAUTH_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    ClusterNode,
    cluster_of_three,
)

OWN = f'{PLAIN_MODULE} required username="node" password="of-nodes" user_node="of-nodes"'
PLAIN = {
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.in.plain.sasl.jaas.config": f'{OWN} user_ada="secret";',
    "listener.name.ctl.plain.sasl.jaas.config": f"{OWN};",
}
ADA = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "ada",
    "sasl.password": "secret",
}

StartCluster = Callable[..., list[ClusterNode]]


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[StartCluster]:
    started: list[ClusterNode] = []

    def start(properties: Mapping[str, str], *format_options: str) -> list[ClusterNode]:
        nodes = cluster_of_three(tmp_path, properties, format_options)
        started.extend(nodes)
        for node in nodes:
            node.launch()
        for node in nodes:
            eventually(partial(node.is_ready_since, 0), seconds=60)
        return nodes

    yield start
    for node in started:
        if node.is_running:
            node.kill()


def replicate(nodes: list[ClusterNode], client: dict[str, Any]) -> list[bytes | None]:
    """Write to a topic with three replicas, lose a node, and read what was acknowledged."""
    settings = {"bootstrap.servers": ",".join(node.address for node in nodes), **client}
    admin = AdminClient(settings)
    topic = NewTopic("t", 3, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])["t"].result(30)
    failures: list[Any] = []
    producer = Producer({**settings, "acks": "all", "message.timeout.ms": 60_000})
    for number in range(30):
        producer.produce(
            "t",
            str(number).encode(),
            partition=number % 3,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert not failures
    nodes[2].kill()
    consumer = Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    found: list[bytes | None] = []

    def read() -> int:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            found.append(message.value())
        return len(found)

    eventually(read, seconds=60, expect=lambda count: count == 30)
    consumer.close()
    return found


def test_nodes_log_in_by_plain(start_cluster: StartCluster) -> None:
    """SEC-4"""
    nodes = start_cluster(PLAIN)
    assert len(replicate(nodes, ADA)) == 30
    assert "secret" not in "".join(node.log for node in nodes)
    assert "of-nodes" not in "".join(node.log for node in nodes)


def test_sessions_of_nodes_are_renewed(start_cluster: StartCluster) -> None:
    """SEC-4: sessions of two seconds, while the test takes longer."""
    nodes = start_cluster({**PLAIN, "connections.max.reauth.ms": "2000"})
    assert len(replicate(nodes, ADA)) == 30
    assert "session expired" not in "".join(node.log for node in nodes)


def test_brokers_log_in_by_scram(start_cluster: StartCluster) -> None:
    """SEC-5: the first user is formatted; controllers use PLAIN."""
    module = f'{SCRAM_MODULE} required username="node" password="of-nodes";'
    nodes = start_cluster(
        {
            **PLAIN,
            "listener.name.in.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "listener.name.in.scram-sha-512.sasl.jaas.config": module,
        },
        "--add-scram",
        "SCRAM-SHA-512=[name=node,password=of-nodes]",
    )
    assert len(replicate(nodes, ADA)) == 30


def test_nodes_log_in_by_oauthbearer(start_cluster: StartCluster) -> None:
    """SEC-4: by unsigned tokens, as for development."""
    module = (
        f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="node" '
        'unsecuredValidatorPrincipalClaimName="sub";'
    )
    nodes = start_cluster(
        {
            **PLAIN,
            "sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            "listener.name.in.oauthbearer.sasl.jaas.config": module,
            "listener.name.ctl.oauthbearer.sasl.jaas.config": module,
        }
    )
    assert len(replicate(nodes, ADA)) == 30
