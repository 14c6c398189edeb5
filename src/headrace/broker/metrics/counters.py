"""Counters for the hot path: plain integers, summed and named only on a scrape.

A request does `metrics.bytes_in += n`; a scrape reads the integers. `exported_metrics.py` has
Kafka's names for them.
"""

from collections.abc import Mapping
from time import perf_counter_ns
from typing import TYPE_CHECKING

from headrace.coordination.metrics import CoordinatorMetrics
from headrace.replication.metrics import FollowingMetrics, IsrMetrics, TopicMetrics
from headrace.runtime.durations import BUCKETS, UNIT_NS_SHIFT, Durations
from headrace.storage.compaction.cleaner import CleanerMetrics

if TYPE_CHECKING:
    from headrace.security.audit import AuditCounts
    from headrace.security.sasl.reports import LoginMetrics

_VERSIONS = 24  # More than any API has.
_SUM = BUCKETS
_FIRST_VERSION = _SUM + 1


class ApiMetrics:
    """The requests of one API.

    Nearly all are answered immediately, so their total time is their local time. They are counted
    in `cells`, one flat list of a histogram, the sum of the durations and the requests per version,
    because counting is part of the hot path. The parts of all other requests are counted
    separately.
    """

    __slots__ = ("cells", "errors", "local", "queued", "total", "waited")

    def __init__(self) -> None:
        self.cells = [0] * (_FIRST_VERSION + _VERSIONS)
        self.total = Durations()
        self.queued = Durations()
        self.local = Durations()
        self.waited = Durations()
        self.errors: dict[int, int] = {}

    @property
    def at_once(self) -> Durations:
        durations = Durations()
        durations.buckets = self.cells[:BUCKETS]
        durations.units = self.cells[_SUM]
        return durations

    @property
    def versions(self) -> dict[int, int]:
        """The requests of each version that was used."""
        counts = enumerate(self.cells[_FIRST_VERSION:])
        return {version: count for version, count in counts if count}


class RequestMetrics:
    """The requests of every API, by Kafka's API key."""

    __slots__ = ("_cells", "apis")

    def __init__(self) -> None:
        self.apis: dict[int, ApiMetrics] = {}
        self._cells: dict[int, list[int]] = {}

    def api(self, key: int) -> ApiMetrics:
        found = self.apis.get(key)
        if found is None:
            found = self.apis[key] = ApiMetrics()
            self._cells[key] = found.cells
        return found

    def served(self, key: int, version: int, duration_ns: int, count: int = 1) -> None:
        """Count requests that were answered immediately, each in the same time."""
        cells = self._cells.get(key)
        if cells is None:
            cells = self.api(key).cells
        units = duration_ns >> UNIT_NS_SHIFT
        cells[(units * units).bit_length()] += count
        cells[_SUM] += units * count
        cells[_FIRST_VERSION + version] += count

    def served_since(self, began_ns: int, queued_ns: int, key: int, version: int) -> None:
        """Count a request that was answered just now; `queued_ns` is 0 if it was not queued."""
        now_ns = perf_counter_ns()
        if queued_ns:
            total_ns, queued_for_ns = now_ns - queued_ns, began_ns - queued_ns
            self.served_late(key, version, total_ns, queued_ns=queued_for_ns)
        else:
            self.served(key, version, now_ns - began_ns)

    def served_late(
        self, key: int, version: int, total_ns: int, *, queued_ns: int = 0, waited_ns: int = 0
    ) -> None:
        """Count a request that was queued, or waited for records, a disk or another node."""
        metrics = self.api(key)
        metrics.cells[_FIRST_VERSION + version] += 1
        metrics.total.add_ns(total_ns)
        metrics.local.add_ns(max(total_ns - queued_ns - waited_ns, 0))
        metrics.queued.add_ns(queued_ns)
        metrics.waited.add_ns(waited_ns)

    def failed(self, key: int, error_code: int, count: int = 1) -> None:
        """Count the occurrences of an error in responses."""
        errors = self.api(key).errors
        errors[error_code] = errors.get(error_code, 0) + count


class Metrics:
    """All counters of one broker; handed down in parts."""

    __slots__ = (
        "_gone",
        "audit",
        "cleaner",
        "coordinators",
        "failed_fetch_requests",
        "failed_produce_requests",
        "following",
        "isr",
        "log_flush",
        "logins",
        "requests",
        "topics",
    )

    def __init__(self) -> None:
        self.requests = RequestMetrics()
        self.topics: dict[str, TopicMetrics] = {}
        self.cleaner = CleanerMetrics()
        self.coordinators = CoordinatorMetrics()
        self.isr = IsrMetrics()
        self.following = FollowingMetrics()
        self.log_flush = Durations()
        self.audit: AuditCounts | None = None
        self.logins: Mapping[str, LoginMetrics] = {}
        """By SASL listener."""
        # Requests that failed before their topic was known.
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self._gone = TopicMetrics()

    def topic(self, name: str) -> TopicMetrics:
        """The counters of a topic; callers keep the object."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicMetrics()
        return found

    def forget_topic(self, name: str) -> None:
        """Drop the counters of a deleted topic, and keep them in the totals of the broker."""
        gone = self.topics.pop(name, None)
        if gone is not None:
            self._gone.add(gone)

    def all_topics(self) -> TopicMetrics:
        """The totals of the broker, including deleted topics."""
        total = TopicMetrics()
        total.add(self._gone)
        for metrics in self.topics.values():
            total.add(metrics)
        total.failed_produce_requests += self.failed_produce_requests
        total.failed_fetch_requests += self.failed_fetch_requests
        return total
