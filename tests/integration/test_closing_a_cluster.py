"""The guide's way from an open cluster to a closed one, under a producer that loses nothing."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from headrace.cli.main import main
from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin import Admin
from headrace.client.health import Health, problems_of
from headrace.errors import HeadraceError
from tests.processes.nodes import HOST, eventually, free_port
from tests.processes.sasl_nodes import ClusterNode, cluster_of_three

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
NODES = ";".join(f"User:CN=node-{number}" for number in (1, 2, 3))


class Rolling:
    """Three nodes, of which each has a port for every listener."""

    def __init__(self, directory: Path) -> None:
        self.certs = directory / "certs"
        hosts = [f"--host=node-{number},{HOST}" for number in (1, 2, 3)]
        assert main(["certs", "dev", "--to", str(self.certs), *hosts]) == 0
        open_map = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CTL:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
        }
        self.nodes: Sequence[ClusterNode] = cluster_of_three(
            directory, {**open_map, "listeners": "PLAINTEXT://:1,CTL://:2"}
        )
        self.ports = [
            {
                "PLAINTEXT": node.port,
                "CTL": node.controller_port,
                "CLIENTS": free_port(),
                "BROKERS": free_port(),
            }
            for node in self.nodes
        ]
        self.listen("PLAINTEXT")

    def servers(self, listener: str) -> str:
        return ",".join(f"{HOST}:{ports[listener]}" for ports in self.ports)

    def listen(self, *listeners: str) -> None:
        """Set the listeners of all nodes, beside those of controllers."""
        for node, ports in zip(self.nodes, self.ports, strict=True):
            node.settings["listeners"] = ",".join(
                f"{name}://{HOST}:{ports[name]}" for name in (*listeners, "CTL")
            )

    def secure(self) -> None:
        """Add TLS, logins and the authorizer to all nodes."""
        for number, node in enumerate(self.nodes, 1):
            node.settings |= {
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CTL:PLAINTEXT,"
                "CLIENTS:SASL_SSL,BROKERS:SSL",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "listener.name.clients.scram-sha-512.sasl.jaas.config": LOGIN,
                "listener.name.brokers.ssl.client.auth": "required",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.certs / f"node-{number}.pem"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.certs / "ca.crt"),
                "authorizer.class.name": AUTHORIZER,
                "super.users": f"User:admin;User:ANONYMOUS;{NODES}",
            }

    def set(self, **settings: str) -> None:
        for node in self.nodes:
            node.settings |= {name.replace("_", "."): text for name, text in settings.items()}

    def roll(self, bootstrap: str, client: Mapping[str, str]) -> None:
        """Restart one node after the other, each when the cluster is healthy again."""
        for node in self.nodes:
            node.restart()
            self.wait_until_healthy(bootstrap, client)

    def wait_until_healthy(self, bootstrap: str, client: Mapping[str, str]) -> None:
        def problems() -> list[str]:
            try:
                with Admin(bootstrap, client, timeout_s=5) as admin:
                    return [f"{one.kind}: {one.subject}" for one in problems_of(Health.read(admin))]
            except HeadraceError as error:
                return [str(error)]

        eventually(problems, seconds=60, expect=lambda found: found == [])


@contextmanager
def producing(settings: Mapping[str, str]) -> Iterator[list[str]]:
    """Produce without a pause until the block ends; yield the failures."""
    failures: list[str] = []
    ending = threading.Event()
    producer = Producer({**settings, "acks": "all", "enable.idempotence": True})

    def note(error: object, _: object) -> None:
        if error is not None:
            failures.append(str(error))

    def run() -> None:
        while not ending.wait(0.01):
            producer.produce("orders", b"one cup", on_delivery=note)
            producer.poll(0)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield failures
    finally:
        ending.set()
        thread.join()
        assert producer.flush(60) == 0


@pytest.mark.usefixtures("only_headrace")
def test_an_open_cluster_is_closed_without_a_failed_record(tmp_path: Path) -> None:
    """SEC-1, SEC-2, SEC-3, SEC-7: the steps of docs/guides/security.md."""
    cluster = Rolling(tmp_path)
    try:
        for node in cluster.nodes:
            node.launch()
        open_to_all = cluster.servers("PLAINTEXT")
        cluster.wait_until_healthy(open_to_all, {})
        login = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "ssl.ca.location": str(cluster.certs / "ca.crt"),
        }
        shop = {**login, "sasl.username": "shop", "sasl.password": "shop-secret"}
        admin = {**login, "sasl.username": "admin", "sasl.password": "admin-secret"}
        with Admin(open_to_all) as client:
            for name in ("admin", "shop"):
                assert client.users.set_password(name, f"{name}-secret").error is None
        with producing({"bootstrap.servers": open_to_all}) as failures:
            cluster.secure()
            cluster.listen("PLAINTEXT", "CLIENTS", "BROKERS")
            cluster.roll(open_to_all, {})
            cluster.set(inter_broker_listener_name="BROKERS")
            cluster.roll(open_to_all, {})
        assert failures == []
        closed = cluster.servers("CLIENTS")
        words = ("--allow-principal", "shop", "--producer", "--topic", "orders")
        options = [f"-X{name}={value}" for name, value in admin.items()]
        assert main(["acls", "add", *words, "--bootstrap", closed, *options]) == 0
        with producing({"bootstrap.servers": closed, **shop}) as failures:
            cluster.listen("CLIENTS", "BROKERS")
            cluster.roll(closed, admin)
        assert failures == []
        with pytest.raises(BrokerUnreachable):
            Admin(open_to_all, timeout_s=3).topics.all()
    finally:
        for node in cluster.nodes:
            if node.is_running:
                node.kill()
