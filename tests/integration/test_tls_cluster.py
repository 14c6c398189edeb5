"""Nodes of a cluster that reach each other by TLS with certificates of both sides."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.builders.certificates import Authority
from tests.processes.nodes import eventually
from tests.processes.sasl_nodes import ClusterNode, cluster_of_three

StartCluster = Callable[..., list[ClusterNode]]


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def start_cluster(tmp_path: Path, authority: Authority) -> Iterator[StartCluster]:
    """Start three nodes with TLS everywhere, each with a certificate of its own."""
    started: list[ClusterNode] = []
    trusted = authority.write(tmp_path / "authority.pem")

    def start(protocols: str, **settings: str) -> list[ClusterNode]:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        properties = {
            "listener.security.protocol.map": protocols,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(tmp_path / "unused"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted),
            "ssl.client.auth": "required",
            "headrace.ssl.reload.interval.ms": "20",
            **given,
        }
        authority.issue("any").write(tmp_path / "unused")
        nodes = cluster_of_three(tmp_path, properties)
        for number, node in enumerate(nodes, 1):
            keys = node.directory / "node.pem"
            authority.issue(f"node-{number}").write(keys)
            node.settings["ssl.keystore.location"] = str(keys)
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


def client_of(nodes: list[ClusterNode], authority: Authority) -> dict[str, Any]:
    ada = authority.issue("ada", hosts=())
    return {
        "bootstrap.servers": ",".join(node.address for node in nodes),
        "security.protocol": "SSL",
        "ssl.ca.pem": authority.pem,
        "ssl.certificate.pem": ada.certificate_pem,
        "ssl.key.pem": ada.key_pem(),
        "log_level": 0,
    }


def replicate(nodes: list[ClusterNode], client: dict[str, Any], topic: str) -> None:
    """Write to a topic with three replicas, and wait until the writes are acknowledged."""
    wanted = NewTopic(topic, 3, 3, config={"min.insync.replicas": "2"})
    admin = AdminClient(client)
    admin.create_topics([wanted])[topic].result(30)
    failures: list[Any] = []
    producer = Producer({**client, "acks": "all", "message.timeout.ms": 60_000})
    for number in range(30):
        producer.produce(
            topic,
            str(number).encode(),
            partition=number % 3,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert not failures


def read(client: dict[str, Any], topic: str) -> set[bytes]:
    consumer = Consumer({**client, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: set[bytes] = set()

    def is_complete() -> bool:
        found.update(message.value() or b"" for message in consumer.consume(30, 0.2))
        return len(found) == 30

    eventually(is_complete, seconds=60)
    consumer.close()
    return found


def test_a_cluster_with_tls_everywhere_survives_a_node(
    start_cluster: StartCluster, authority: Authority
) -> None:
    """SEC-2, SEC-3: brokers, controllers and clients with certificates of both sides."""
    nodes = start_cluster("IN:SSL,CTL:SSL")
    client = client_of(nodes, authority)
    replicate(nodes, client, "t")
    nodes[2].kill()
    assert read(client, "t") == {str(number).encode() for number in range(30)}
    assert not any("TLS handshake" in node.log for node in nodes[:2])


def test_nodes_use_new_certificates_without_a_restart(
    start_cluster: StartCluster, authority: Authority
) -> None:
    """SEC-2: connections between the nodes are made again with the new ones."""
    nodes = start_cluster("IN:SSL,CTL:SSL")
    client = client_of(nodes, authority)
    replicate(nodes, client, "before")
    for number, node in enumerate(nodes, 1):
        authority.issue(f"node-{number}").write(node.directory / "node.pem")
    for node in nodes:
        eventually(lambda node=node: node.log.count("certificates reloaded") >= 2)  # type: ignore[misc]
    nodes[2].kill()
    nodes[2].start()
    replicate(nodes, client, "after")
    assert read(client, "after") == {str(number).encode() for number in range(30)}


def test_a_node_of_a_foreign_authority_does_not_join(
    start_cluster: StartCluster, authority: Authority, tmp_path: Path
) -> None:
    """SEC-2: both sides refuse it, and its log has the reason."""
    nodes = start_cluster("IN:SSL,CTL:SSL")
    nodes[2].stop()
    foreign = Authority("foreign")
    foreign.issue("node-3").write(nodes[2].directory / "node.pem")
    nodes[2].settings["ssl.truststore.location"] = str(foreign.write(tmp_path / "foreign.pem"))
    nodes[2].launch()
    eventually(lambda: "TLS to another node failed, retrying" in nodes[2].log)
    closed = "connection to a controller closed in its TLS handshake"
    eventually(lambda: any(closed in node.log for node in nodes[:2]))
