"""Kafka's metric names on the page, judged by Prometheus' own parser."""

from prometheus_client.parser import text_string_to_metric_families

from headrace.broker.metrics.counters import Metrics
from headrace.broker.metrics.exported_metrics import (
    NodeFigures,
    PartitionFigures,
    exported_families,
)
from headrace.errors import LeaderNotAvailable
from headrace.protocol.api_keys import ApiKey
from headrace.replication.metrics import FetcherMetrics, Lag
from headrace.runtime.exposition import render


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


def test_changes_of_in_sync_replicas_are_shown() -> None:
    node = NodeFigures(
        under_min_isr_count=1, at_min_isr_count=2, isr_expansions=3, isr_shrinks=4, isr_failures=5
    )
    found = page(Metrics(), node)
    prefix = "kafka_server_replicamanager"
    shown = (
        "underminisrpartitioncount",
        "atminisrpartitioncount",
        "isrexpands_total",
        "isrshrinks_total",
        "failedisrupdates_total",
    )
    assert [found[f"{prefix}_{name}"][()] for name in shown] == [1, 2, 3, 4, 5]


def test_bytes_to_followers_do_not_count_as_bytes_to_consumers() -> None:
    metrics = Metrics()
    metrics.topic("orders").replication_bytes_out += 300
    found = page(metrics)
    assert found["kafka_server_brokertopicmetrics_replicationbytesout_total"][()] == 300
    assert found["kafka_server_brokertopicmetrics_bytesout_total"][()] == 0


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


def test_a_fetch_is_also_counted_as_a_consumers_fetch() -> None:
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
    assert found["kafka_server_socketservermetrics_connection_count"] == {("PLAINTEXT",): 5}
    purgatory = found["kafka_server_delayedoperationpurgatory_purgatorysize"]
    assert purgatory == {("Fetch",): 3}


def test_partitions_show_size_and_offsets() -> None:
    found = page(Metrics(), None, PartitionFigures("orders", 3, 1000, 5, 25, 2))
    assert found["kafka_log_log_size"] == {("orders", "3"): 1000}
    assert found["kafka_log_log_logstartoffset"] == {("orders", "3"): 5}
    assert found["kafka_log_log_logendoffset"] == {("orders", "3"): 25}
    assert found["kafka_log_log_numlogsegments"] == {("orders", "3"): 2}


def test_the_cleaner_and_the_disk_have_metrics() -> None:
    metrics = Metrics()
    metrics.cleaner.bytes_read, metrics.cleaner.bytes_written = 200, 50
    metrics.cleaner.last_run_ms = 2_000
    metrics.log_flush.add_ns(2_000_000)
    found = page(metrics)
    assert found["kafka_log_logcleaner_cleaner_recopy_percent"] == {(): 25}
    assert found["kafka_log_logcleanermanager_time_since_last_run_ms"] == {(): 3_000}
    assert found["kafka_log_logflushstats_logflushrateandtimems_count"] == {(): 1}


def test_a_follower_shows_its_lags_and_failed_partitions() -> None:
    metrics = Metrics()
    metrics.following.failed_partitions = 2
    lags = [Lag("orders", 0, 7), Lag("orders", 1, 3)]
    fetcher = FetcherMetrics("ReplicaFetcherThread-0-2", lambda: lags)
    fetcher.requests = 5
    metrics.following.fetchers[fetcher.name] = fetcher
    found = page(metrics)
    manager = "kafka_server_replicafetchermanager"
    assert found[f"{manager}_maxlag"] == {("Replica",): 7}
    assert found[f"{manager}_failedpartitionscount"] == {("Replica",): 2}
    assert found["kafka_server_fetcherlagmetrics_consumerlag"] == {
        (fetcher.name, "orders", "0"): 7,
        (fetcher.name, "orders", "1"): 3,
    }
    assert found["kafka_server_fetcherstats_requests_total"] == {(fetcher.name,): 5}
