"""The broker's counters under the names of Kafka's JMX exporter.

The exporter's default rules derive these names from Kafka's MBeans, so dashboards and alerts
written for Kafka work. This module runs on scrapes only, never for a request.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from headrace.broker.metrics.counters import ApiMetrics, Metrics
from headrace.broker.metrics.following_metrics import following_families
from headrace.errors import ERROR_NAMES
from headrace.protocol.api_keys import ApiKey
from headrace.replication.metrics import TopicMetrics
from headrace.runtime.durations import Durations
from headrace.runtime.exposition import Family, Sample, counter, gauge, labels, summary
from headrace.storage.compaction.cleaner import CleanerMetrics

BROKER_RUNNING = 3
_QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_TOPIC_COUNTERS = (
    ("messagesin", "messages_in", "Records appended."),
    ("bytesin", "bytes_in", "Bytes of records appended, as compressed."),
    ("bytesout", "bytes_out", "Bytes of records sent to clients, as compressed."),
    ("replicationbytesout", "replication_bytes_out", "Bytes of records sent to followers."),
    ("bytesrejected", "bytes_rejected", "Bytes of batches that were too large."),
    ("totalproducerequests", "produce_requests", "Partitions produced to, over all requests."),
    ("totalfetchrequests", "fetch_requests", "Partitions fetched from, over all requests."),
    ("failedproducerequests", "failed_produce_requests", "Partitions that rejected records."),
    ("failedfetchrequests", "failed_fetch_requests", "Partitions that could not be read."),
)
_PARTITION_GAUGES = (
    ("kafka_log_log_size", "size_bytes", "Bytes of a partition on disk."),
    ("kafka_log_log_logstartoffset", "log_start_offset", "First offset of a partition."),
    ("kafka_log_log_logendoffset", "log_end_offset", "Next offset of a partition."),
    ("kafka_log_log_numlogsegments", "segment_count", "Segment files of a partition."),
)


class PartitionFigures(NamedTuple):
    """One partition's log at the moment of a scrape."""

    topic: str
    partition: int
    size_bytes: int
    log_start_offset: int
    log_end_offset: int
    segment_count: int


class NodeFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the whole node at the moment of a scrape."""

    broker_state: int = BROKER_RUNNING
    topic_count: int = 0
    partition_count: int = 0
    global_partition_count: int = 0
    leader_count: int = 0
    under_replicated_count: int = 0
    under_min_isr_count: int = 0
    at_min_isr_count: int = 0
    isr_expansions: int = 0
    isr_shrinks: int = 0
    isr_failures: int = 0
    offline_partition_count: int = 0
    offline_directory_count: int = 0
    connections: Mapping[str, int] = {}  # By listener.
    connections_accepted: int = 0
    connections_refused: int = 0
    tls_handshakes_failed: int = 0
    certificates_rejected: int = 0
    delayed: Mapping[str, int] = {}  # Waiting requests by API: Fetch, Produce.
    fetch_session_count: int = 0


def exported_families(
    metrics: Metrics,
    node: Callable[[], NodeFigures],
    partitions: Callable[[], Iterable[PartitionFigures]],
    now_ms: int,
) -> Iterator[Family]:
    """The page of a broker; the two callables run when their part is due."""
    yield from topic_families(metrics)
    yield from request_families(metrics.requests.apis)
    yield from node_families(node())
    yield from following_families(metrics.following)
    yield from cleaner_families(metrics.cleaner, now_ms)
    yield summary(
        "kafka_log_logflushstats_logflushrateandtimems",
        "Time of the syncs of a log.",
        [({}, metrics.log_flush)],
        _QUANTILES,
    )
    yield from partition_families(tuple(partitions()))


def topic_families(metrics: Metrics) -> Iterator[Family]:
    """Each counter for the broker as a whole, without a label, and for every topic."""
    total = metrics.all_topics()
    topics = tuple(metrics.topics.items())
    for name, field, help_text in _TOPIC_COUNTERS:
        yield Family(
            f"kafka_server_brokertopicmetrics_{name}_total",
            "counter",
            help_text,
            _topic_samples(field, total, topics),
        )


def request_families(apis: Mapping[int, ApiMetrics]) -> Iterator[Family]:
    """Counts by version and times by part of every API that was called."""
    named = [(name, metrics) for key, metrics in sorted(apis.items()) for name in _names(key)]
    prefix = "kafka_network_requestmetrics"
    yield Family(
        f"{prefix}_requests_total",
        "counter",
        "Requests answered.",
        [
            Sample(count, labels(request=name, version=version))
            for name, metrics in named
            for version, count in metrics.versions.items()
        ],
    )
    yield Family(
        f"{prefix}_errors_total",
        "counter",
        "Errors in responses, for a whole request or for a part of it.",
        [
            Sample(count, labels(request=name, error=ERROR_NAMES[code]))
            for name, metrics in named
            for code, count in metrics.errors.items()
        ],
    )
    for part, help_text, of in _REQUEST_TIMES:
        series = [({"request": name}, of(metrics)) for name, metrics in named]
        yield summary(f"{prefix}_{part}", help_text, series, _QUANTILES)


def node_families(node: NodeFigures) -> Iterator[Family]:
    """Gauges of the broker and of the controller in it."""
    replicas, controller = "kafka_server_replicamanager", "kafka_controller_kafkacontroller"
    sockets = "kafka_server_socketservermetrics"
    yield gauge(
        "kafka_server_kafkaserver_brokerstate", "3 while the broker serves.", node.broker_state
    )
    yield gauge(f"{replicas}_partitioncount", "Partitions here.", node.partition_count)
    yield gauge(f"{replicas}_leadercount", "Partitions led here.", node.leader_count)
    yield gauge(
        f"{replicas}_underreplicatedpartitions",
        "Partitions led here that lack a replica in sync.",
        node.under_replicated_count,
    )
    yield gauge(
        f"{replicas}_underminisrpartitioncount",
        "Partitions led here with fewer replicas in sync than acks=all needs.",
        node.under_min_isr_count,
    )
    yield gauge(
        f"{replicas}_atminisrpartitioncount",
        "Partitions led here with exactly as many replicas in sync as acks=all needs.",
        node.at_min_isr_count,
    )
    yield counter(
        f"{replicas}_isrexpands_total", "Replicas that came into sync.", node.isr_expansions
    )
    yield counter(
        f"{replicas}_isrshrinks_total", "Changes that left lagging replicas out.", node.isr_shrinks
    )
    yield counter(
        f"{replicas}_failedisrupdates_total",
        "Changes of in-sync replicas that the controller did not make.",
        node.isr_failures,
    )
    yield gauge(f"{controller}_globaltopiccount", "Topics in the cluster.", node.topic_count)
    yield gauge(
        f"{controller}_globalpartitioncount",
        "Partitions in the cluster.",
        node.global_partition_count,
    )
    yield gauge(
        f"{controller}_offlinepartitionscount",
        "Partitions without a leader.",
        node.offline_partition_count,
    )
    yield gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that failed.",
        node.offline_directory_count,
    )
    yield Family(
        f"{sockets}_connection_count",
        "gauge",
        "Connections that are open.",
        [Sample(count, labels(listener=name)) for name, count in node.connections.items()],
    )
    yield counter(
        f"{sockets}_connection_creation_total", "Connections taken.", node.connections_accepted
    )
    yield counter(
        f"{sockets}_connection_refused_total", "Connections refused.", node.connections_refused
    )
    yield counter(
        f"{sockets}_tls_handshake_failed_total",
        "TLS handshakes that failed.",
        node.tls_handshakes_failed,
    )
    yield counter(
        f"{sockets}_certificate_rejected_total",
        "New certificates that could not be used, so that the old ones stayed.",
        node.certificates_rejected,
    )
    yield Family(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "gauge",
        "Requests that wait to be answered.",
        [Sample(count, labels(delayedOperation=name)) for name, count in node.delayed.items()],
    )
    yield gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Incremental fetch sessions.",
        node.fetch_session_count,
    )


def cleaner_families(cleaner: CleanerMetrics, now_ms: int) -> Iterator[Family]:
    """The progress of log compaction."""
    one, all_ = "kafka_log_logcleaner", "kafka_log_logcleanermanager"
    recopied = 100 * cleaner.bytes_written // cleaner.bytes_read if cleaner.bytes_read else 0
    yield counter(f"{one}_runs_total", "Logs compacted.", cleaner.runs)
    yield counter(f"{one}_bytesread_total", "Bytes that compaction read.", cleaner.bytes_read)
    yield counter(f"{one}_byteswritten_total", "Bytes that it wrote.", cleaner.bytes_written)
    yield gauge(f"{one}_cleaner_recopy_percent", "The part of a log that was kept.", recopied)
    yield gauge(f"{one}_max_clean_time_secs", "The longest run.", cleaner.clean_time_max_s)
    yield gauge(
        f"{all_}_max_dirty_percent",
        "The dirtiest log at the last round.",
        cleaner.dirty_percent_max,
    )
    yield gauge(
        f"{all_}_uncleanable_partitions_count",
        "Partitions that compaction cannot clean.",
        cleaner.uncleanable_partitions,
    )
    since = max(now_ms - cleaner.last_run_ms, 0) if cleaner.last_run_ms else 0
    yield gauge(f"{all_}_time_since_last_run_ms", "Time since the last round.", since)


def partition_families(partitions: Sequence[PartitionFigures]) -> Iterator[Family]:
    """Size and offsets of every partition; lazily, because there may be thousands."""
    for name, field, help_text in _PARTITION_GAUGES:
        yield Family(name, "gauge", help_text, _partition_samples(field, partitions))


def _topic_samples(
    field: str, total: TopicMetrics, topics: Sequence[tuple[str, TopicMetrics]]
) -> Iterator[Sample]:
    yield Sample(getattr(total, field))
    for topic, metrics in topics:
        yield Sample(getattr(metrics, field), labels(topic=topic))


def _partition_samples(field: str, partitions: Sequence[PartitionFigures]) -> Iterator[Sample]:
    value_of = attrgetter(field)
    for figures in partitions:
        # Topic names hold nothing that needs escaping.
        where = f'{{topic="{figures.topic}",partition="{figures.partition}"}}'
        yield Sample(value_of(figures), where)


def _names(key: int) -> tuple[str, ...]:
    """Kafka's name of an API: `ListOffsets` for LIST_OFFSETS.

    Kafka counts fetches by their origin as well, and dashboards select by it.
    """
    if key == ApiKey.FETCH:
        return ("Fetch", "FetchConsumer")
    return ("".join(word.capitalize() for word in ApiKey(key).name.split("_")),)


def _with_none(durations: Durations, count: int) -> Durations:
    """A summary of durations, which also counts requests without a duration."""
    none = Durations()
    none.buckets[0] = count
    return durations.merged(none)


_REQUEST_TIMES: tuple[tuple[str, str, Callable[[ApiMetrics], Durations]], ...] = (
    (
        "totaltimems",
        "Time from a request to its answer.",
        lambda api: api.at_once.merged(api.total),
    ),
    (
        "localtimems",
        "Time that the broker worked on a request.",
        lambda api: api.at_once.merged(api.local),
    ),
    (
        "requestqueuetimems",
        "Time that a request waited for its turn.",
        lambda api: _with_none(api.queued, api.at_once.count),
    ),
    (
        "remotetimems",
        "Time that a request waited for records, for a disk or for other nodes.",
        lambda api: _with_none(api.waited, api.at_once.count),
    ),
)
