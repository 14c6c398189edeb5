"""This broker as a follower, under the names of Kafka's JMX exporter."""

from collections.abc import Iterator

from headrace.replication.metrics import FetcherMetrics, FollowingMetrics, Lag
from headrace.runtime.exposition import Family, Sample, counter, labels

_MANAGER = "kafka_server_replicafetchermanager"
_ALL = labels(clientId="Replica")


def following_families(metrics: FollowingMetrics) -> Iterator[Family]:
    """Lags, failed partitions and traffic of the replica fetchers."""
    fetchers = list(metrics.fetchers.values())
    lags = [(fetcher, lag) for fetcher in fetchers for lag in fetcher.lags()]
    yield Family(
        f"{_MANAGER}_maxlag",
        "gauge",
        "Committed records of a leader that are not here yet, of the partition that lacks most.",
        [Sample(max((lag.records for _, lag in lags), default=0), _ALL)],
    )
    yield Family(
        f"{_MANAGER}_failedpartitionscount",
        "gauge",
        "Partitions that are not fetched until their metadata changes.",
        [Sample(metrics.failed_partitions, _ALL)],
    )
    yield Family(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "gauge",
        "Committed records of the leader that are not here yet.",
        [Sample(lag.records, _where(fetcher, lag)) for fetcher, lag in lags],
    )
    yield Family(
        "kafka_server_fetcherstats_requests_total",
        "counter",
        "Fetch requests to leaders.",
        [Sample(one.requests, labels(clientId=one.name)) for one in fetchers],
    )
    yield Family(
        "kafka_server_fetcherstats_bytes_total",
        "counter",
        "Bytes of records from leaders.",
        [Sample(one.bytes, labels(clientId=one.name)) for one in fetchers],
    )
    yield counter(
        "kafka_server_brokertopicmetrics_replicationbytesin_total",
        "Bytes of records appended as a follower.",
        metrics.bytes_in,
    )


def _where(fetcher: FetcherMetrics, lag: Lag) -> str:
    return labels(clientId=fetcher.name, topic=lag.topic, partition=str(lag.partition))
