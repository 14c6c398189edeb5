"""The metrics port of a running broker, and what `headrace doctor` sees of it from outside."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kio.schema.errors import ErrorCode
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from headrace.cli.main import main
from headrace.testing.process import BrokerProcess
from tests.builders.record_batches import batch
from tests.clients.librdkafka import Sent, unique_name
from tests.clients.wire import SECOND, Connection
from tests.processes.nodes import eventually, free_port


class Watched:
    """A broker and the address of its metrics port."""

    def __init__(self, broker: BrokerProcess, port: int) -> None:
        self.broker = broker
        self.port = port

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
            return str(answer.read().decode())

    def value(self, name: str, **labels: str) -> float:
        """One figure from the page."""
        return next(one.value for one in self.samples(name) if one.labels == labels)

    def samples(self, name: str) -> list[Sample]:
        return [
            sample
            for family in text_string_to_metric_families(self.page("/metrics"))
            for sample in family.samples
            if sample.name == name
        ]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    port = free_port()
    directory: Path = tmp_path_factory.mktemp("watched")
    with BrokerProcess(directory, {"headrace.metrics.port": port}) as broker:
        yield Watched(broker, port)


def test_a_listener_without_clients_has_no_connections(watched: Watched) -> None:
    """OPS-6: that is a figure, not a gap."""
    count = "kafka_server_socketservermetrics_connection_count"
    eventually(lambda: watched.value(count, listener="PLAINTEXT") == 0)


def test_the_page_counts_requests_of_clients(watched: Watched) -> None:
    producer = Producer({"bootstrap.servers": watched.broker.bootstrap_servers})
    for _ in range(100):
        producer.produce("counted", b"x" * 50)
    assert producer.flush(20) == 0
    prefix = "kafka_server_brokertopicmetrics"
    assert watched.value(f"{prefix}_messagesin_total", topic="counted") == 100
    assert watched.value(f"{prefix}_bytesin_total", topic="counted") > 5_000
    assert watched.value("kafka_log_log_logendoffset", topic="counted", partition="0") == 100
    assert watched.value("kafka_network_requestmetrics_totaltimems_count", request="Produce") > 0
    assert watched.value("kafka_server_socketservermetrics_connection_count", listener="PLAINTEXT")
    assert watched.value("kafka_server_replicamanager_underreplicatedpartitions") == 0


def test_the_page_counts_the_errors_returned_to_clients(watched: Watched) -> None:
    """By API and error, also where a part of a request is refused."""
    with Connection(watched.broker.port) as connection:
        connection.produce("not-there", batch(Sent(b"x")))
        connection.fetch("not-there")
        connection.call("delete_topics", 5, topic_names=["not-there", "nor-there"], timeout=SECOND)
    counted = {
        name: watched.value(
            "kafka_network_requestmetrics_errors_total",
            request=name,
            error="UNKNOWN_TOPIC_OR_PARTITION",
        )
        for name in ("Produce", "Fetch", "FetchConsumer", "DeleteTopics")
    }
    assert counted == {"Produce": 1, "Fetch": 1, "FetchConsumer": 1, "DeleteTopics": 2}


def test_the_page_shows_metrics_that_clients_push(watched: Watched) -> None:
    """ADM-8: an operator subscribes, and librdkafka pushes (KIP-714)."""
    subscribe(watched, "producers", metrics="org.apache.kafka.producer.", interval_ms="100")
    client_id = unique_name()
    settings = {"bootstrap.servers": watched.broker.bootstrap_servers, "client.id": client_id}
    producer = Producer(settings)
    producer.produce("pushed", b"x")
    assert producer.flush(20) == 0

    def connections() -> float:
        producer.poll(0)
        name = "kafka_client_producer_connection_creation_total"
        return sum(
            sample.value
            for sample in watched.samples(name)
            if sample.labels["client_id"] == client_id
        )

    assert eventually(connections) >= 1
    (counted,) = watched.samples("kafka_server_clientmetrics_instance_count")
    assert counted.value >= 1


def subscribe(watched: Watched, name: str, *, metrics: str, interval_ms: str) -> None:
    values = {"metrics": metrics, "interval.ms": interval_ms}
    configs = [
        {"name": key, "config_operation": 0, "value": value} for key, value in values.items()
    ]
    resource = {"resource_type": 16, "resource_name": name, "configs": configs}
    with Connection(watched.broker.port) as connection:
        answer = connection.call(
            "incremental_alter_configs", 1, resources=[resource], validate_only=False
        )
    assert answer.responses[0].error_code == ErrorCode.none


def test_a_serving_broker_is_healthy_and_ready(watched: Watched) -> None:
    health = json.loads(watched.page("/health"))
    assert health["status"] == "ok"
    assert str(watched.broker.data_dir) in health["checks"]
    assert json.loads(watched.page("/ready"))["status"] == "ok"


def test_the_doctor_looks_at_a_running_cluster(
    watched: Watched, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["doctor", "--json", "--data", str(tmp_path), "-b", watched.broker.bootstrap_servers])
    findings = {found["check"]: found for found in json.loads(capsys.readouterr().out)}
    assert findings["topics"]["verdict"] == "ok"
    assert findings["partitions"]["found"].endswith("on 1 brokers")
    assert findings["log directories"]["found"] == "all online"


def test_the_page_counts_groups_and_transactions(watched: Watched) -> None:
    """ADM-8: under the names that Kafka's own dashboards use."""
    servers = {"bootstrap.servers": watched.broker.bootstrap_servers}
    producer = Producer({**servers, "transactional.id": "watched"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("grouped", b"x")
    reader = Consumer({**servers, "group.id": "watched", "auto.offset.reset": "earliest"})
    producer.commit_transaction(20)
    reader.subscribe(["grouped"])
    assert eventually(lambda: reader.poll(1)) is not None
    reader.commit(asynchronous=False)
    groups = "kafka_server_group_coordinator_metrics"
    assert watched.value(f"{groups}_group_count", protocol="classic") == 1
    assert watched.value(f"{groups}_offset_commit_count") == 1
    assert watched.value(f"{groups}_group_completed_rebalance_count") >= 1
    assert watched.value("kafka_coordinator_group_groupmetadatamanager_numgroupsstable") == 1
    assert watched.value("headrace_transactional_ids", state="CompleteCommit") == 1
    reader.close()
