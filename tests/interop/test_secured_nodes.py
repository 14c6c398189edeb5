"""Apache Kafka with the properties and the certificates that `headrace up --secure` writes."""

import datetime as dt
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from headrace.cli.local_cluster import LOOPBACK, LocalCluster, Shape, planned, write_properties
from headrace.cli.local_security import LocalSecurity, prepare_cluster
from headrace.client.admin import Admin
from headrace.protocol.uuids import random_uuid, to_text
from headrace.runtime.ports import free_port
from headrace.settings.properties import read
from tests.integration.cli.commands import run
from tests.processes.kafka import KafkaRelease, find_kafka
from tests.processes.nodes import KAFKA_LOGGING, Kafka, Node


class Planned(Kafka):
    """Kafka as the only node of a secured plan."""

    def __init__(self, cluster: LocalCluster, security: LocalSecurity) -> None:
        super().__init__()
        self._cluster, self._security = cluster, security

    def command(self, node: Node) -> list[str]:
        properties = self._cluster.properties_path(self._cluster.nodes[0])
        admin = f"SCRAM-SHA-512=[name=admin,password={self._security.password}]"
        options = ("--standalone", "-t", self._cluster.cluster_id, "-c", properties)
        find_kafka().run("kafka-storage", "format", *options, "--add-scram", admin)
        logging = node.directory / "log4j2.properties"
        logging.write_text(KAFKA_LOGGING)
        flags = (*self.flags, f"-Dlog4j2.configurationFile={logging}")
        return find_kafka().command("kafka-server-start", properties, flags=flags)


class Secured(NamedTuple):
    address: str
    security: LocalSecurity


@pytest.fixture(scope="module")
def secured(
    kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    cluster = planned(
        str(directory / "data"),
        Shape(1, 1),
        f"{LOOPBACK}:0",
        f"{LOOPBACK}:0",
        partial(free_port, LOOPBACK),
        lambda: to_text(random_uuid()),
        is_secured=True,
    )
    security = prepare_cluster(cluster, dt.datetime.now(dt.UTC))
    single = {
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    write_properties(cluster, single, None, security)
    node = Node(Planned(cluster, security), directory, {})
    try:
        node.start()
        yield Secured(cluster.local_addresses, security)
    finally:
        if node.is_running:
            node.kill()


def test_the_admin_logs_in_by_the_files_of_settings(secured: Secured) -> None:
    """SEC-2, SEC-5, SEC-7: TLS, SCRAM and super users by the same properties as in Kafka."""
    for path in (secured.security.client_path, secured.security.java_path):
        done = run(secured.address, "topics", "list", "--command-config", path)
        assert (done.code, done.err) == (0, "")


def test_librdkafka_and_javas_tools_take_the_settings(
    secured: Secured, kafka_release: KafkaRelease
) -> None:
    producer = Producer(read(secured.security.client_path))
    producer.produce("orders", b"one cup")
    assert producer.flush(20) == 0
    shown = kafka_release.run(
        *("kafka-topics", "--bootstrap-server", secured.address, "--list"),
        *("--command-config", secured.security.java_path),
    )
    assert "orders" in shown.split()


def test_a_user_without_rules_may_do_nothing(secured: Secured) -> None:
    with Admin(secured.address, secured.security.client_settings) as admin:
        assert admin.users.set_password("eve", "pw").error is None
    login = ("-Xsasl.username=eve", "-Xsasl.password=pw")
    config = ("--command-config", secured.security.client_path)
    done = run(secured.address, "produce", "orders", *config, *login, stdin=b"tea\n")
    assert done.code == 1
    assert "Topic authorization failed" in done.err


def test_openssl_accepts_the_certificate_of_a_node(secured: Secured) -> None:
    options = ("-connect", secured.address, "-CAfile", secured.security.authority_path)
    done = subprocess.run(
        ["openssl", "s_client", "-verify_return_error", *options],
        input=b"",
        capture_output=True,
        check=False,
    )
    assert b"Verify return code: 0 (ok)" in done.stdout
