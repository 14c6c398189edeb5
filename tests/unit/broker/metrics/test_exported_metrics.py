"""Kafka's metric names on the page, judged by Prometheus' own parser."""

from prometheus_client.parser import text_string_to_metric_families

from headrace.broker.metrics.exported_metrics import (
    NodeFigures,
    PartitionFigures,
    exported_families,
)
from headrace.errors import LeaderNotAvailable
from headrace.protocol.api_keys import ApiKey
from headrace.runtime.exposition import render
from headrace.runtime.metrics import Metrics


def page(
    metrics: Metrics, node: NodeFigures | None = None, *partitions: PartitionFigures
) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by metric name and labels."""
    families = exported_families(metrics, lambda: node or NodeFigures(), lambda: partitions, 5_000)
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families("".join(render(families))):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_traffic_shows_for_the_broker_and_for_each_topic() -> None:
    metrics = Metrics()
    metrics.topic("orders").messages_in += 3
    metrics.topic("orders").bytes_in += 300
    metrics.topic("clicks").messages_in += 4
    metrics.failed_fetch_requests += 1
    found = page(metrics)
    prefix = "kafka_server_brokertopicmetrics"
    assert found[f"{prefix}_messagesin_total"] == {(): 7, ("orders",): 3, ("clicks",): 4}
    assert found[f"{prefix}_bytesin_total"][("orders",)] == 300
    assert found[f"{prefix}_failedfetchrequests_total"][()] == 1


def test_requests_show_counts_errors_and_times() -> None:
    metrics = Metrics()
    for _ in range(99):
        metrics.requests.served(ApiKey.PRODUCE, 11, 1_000_000)
    metrics.requests.served_late(
        ApiKey.PRODUCE, 11, 100_000_000, queued_ns=10_000_000, waited_ns=80_000_000
    )
    metrics.requests.served(ApiKey.LIST_OFFSETS, 10, 1)
    metrics.requests.failed(ApiKey.METADATA, LeaderNotAvailable.code)
    found = page(metrics)
    prefix = "kafka_network_requestmetrics"
    assert found[f"{prefix}_requests_total"] == {("Produce", "11"): 100, ("ListOffsets", "10"): 1}
    assert found[f"{prefix}_errors_total"] == {("Metadata", "LEADER_NOT_AVAILABLE"): 1}
    assert 0.8 < found[f"{prefix}_totaltimems"]["Produce", "0.5"] < 1.2
    assert found[f"{prefix}_totaltimems"]["Produce", "0.999"] > 50
    for part in ("totaltimems", "localtimems", "requestqueuetimems", "remotetimems"):
        assert found[f"{prefix}_{part}_count"][("Produce",)] == 100
    assert found[f"{prefix}_requestqueuetimems"]["Produce", "0.95"] == 0


def test_a_fetch_shows_as_that_of_a_consumer_too() -> None:
    metrics = Metrics()
    metrics.requests.served(ApiKey.FETCH, 17, 1_000)
    requests = page(metrics)["kafka_network_requestmetrics_requests_total"]
    assert requests == {("Fetch", "17"): 1, ("FetchConsumer", "17"): 1}


def test_the_node_shows_its_figures() -> None:
    node = NodeFigures(
        partition_count=12,
        leader_count=11,
        under_replicated_count=1,
        offline_directory_count=2,
        connections={"PLAINTEXT": 5},
        delayed={"Fetch": 3},
    )
    found = page(Metrics(), node)
    assert found["kafka_server_replicamanager_partitioncount"] == {(): 12}
    assert found["kafka_server_replicamanager_leadercount"] == {(): 11}
    assert found["kafka_server_replicamanager_underreplicatedpartitions"] == {(): 1}
    assert found["kafka_log_logmanager_offlinelogdirectorycount"] == {(): 2}
    assert found["kafka_controller_kafkacontroller_activecontrollercount"] == {(): 1}
    assert found["kafka_server_socketservermetrics_connection_count"] == {("PLAINTEXT",): 5}
    purgatory = found["kafka_server_delayedoperationpurgatory_purgatorysize"]
    assert purgatory == {("Fetch",): 3}


def test_partitions_show_size_and_offsets() -> None:
    found = page(Metrics(), None, PartitionFigures("orders", 3, 1000, 5, 25, 2))
    assert found["kafka_log_log_size"] == {("orders", "3"): 1000}
    assert found["kafka_log_log_logstartoffset"] == {("orders", "3"): 5}
    assert found["kafka_log_log_logendoffset"] == {("orders", "3"): 25}
    assert found["kafka_log_log_numlogsegments"] == {("orders", "3"): 2}


def test_the_cleaner_and_the_disk_show_what_they_did() -> None:
    metrics = Metrics()
    metrics.cleaner.bytes_read, metrics.cleaner.bytes_written = 200, 50
    metrics.cleaner.last_run_ms = 2_000
    metrics.log_flush.add_ns(2_000_000)
    found = page(metrics)
    assert found["kafka_log_logcleaner_cleaner_recopy_percent"] == {(): 25}
    assert found["kafka_log_logcleanermanager_time_since_last_run_ms"] == {(): 3_000}
    assert found["kafka_log_logflushstats_logflushrateandtimems_count"] == {(): 1}
