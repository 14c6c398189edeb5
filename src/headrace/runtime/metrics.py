"""Counters that the hot path can afford: plain integers, added up and named only on a scrape.

Nothing here knows Kafka's metric names or the text format. Whoever counts does
`metrics.bytes_in += n`; a scrape reads the integers (`broker/metrics/exported_metrics.py`).

Durations go into buckets that grow by the square root of two. The bucket of a duration is the bit
length of its square, one multiplication and no search, and a quantile read back from it is
within a fifth of the true one.
"""

from collections.abc import Sequence

_UNIT_NS_SHIFT = 10  # Durations are counted in units of 1,024 ns.
_BUCKETS = 88  # The square of twelve days has 80 bits.
_VERSIONS = 24  # More than any API has.
_SUM = _BUCKETS
_FIRST_VERSION = _SUM + 1


class TopicMetrics:
    """What went in and out of one topic since the broker started."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_requests",
        "messages_in",
        "produce_requests",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0

    def count_failed_produce(self, size_bytes: int) -> None:
        self.failed_produce_requests += 1
        self.bytes_rejected += size_bytes

    def add(self, other: "TopicMetrics") -> None:
        """Count everything that the other counted as well."""
        for name in TopicMetrics.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Durations:
    """How long something took, often: a count, a sum and a histogram in fixed space."""

    __slots__ = ("buckets", "units")

    def __init__(self) -> None:
        self.buckets = [0] * _BUCKETS
        self.units = 0

    def add_ns(self, duration_ns: int) -> None:
        units = duration_ns >> _UNIT_NS_SHIFT
        self.units += units
        self.buckets[(units * units).bit_length()] += 1

    @property
    def count(self) -> int:
        return sum(self.buckets)

    @property
    def sum_ms(self) -> float:
        return _milliseconds(self.units)

    def quantiles_ms(self, quantiles: Sequence[float]) -> list[float]:
        """The duration that each part of all stayed under; 0 while there was none."""
        return [_quantile_ms(self.buckets, quantile) for quantile in quantiles]

    def merged(self, other: "Durations") -> "Durations":
        """A new histogram of both."""
        both = Durations()
        both.units = self.units + other.units
        both.buckets = [mine + its for mine, its in zip(self.buckets, other.buckets, strict=True)]
        return both


class ApiMetrics:
    """The requests of one API.

    Nearly all are answered at once: their total time is their local time. They are counted in
    `cells`, one flat list of a histogram, the sum of the durations and the requests per
    version, because counting them is part of the hot path. The others have their parts
    counted one by one.
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
        durations.buckets = self.cells[:_BUCKETS]
        durations.units = self.cells[_SUM]
        return durations

    @property
    def versions(self) -> dict[int, int]:
        """How many requests came in each version that was ever used."""
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
        """Count requests that were answered as soon as they were read, in the same time each."""
        cells = self._cells.get(key)
        if cells is None:
            cells = self.api(key).cells
        units = duration_ns >> _UNIT_NS_SHIFT
        cells[(units * units).bit_length()] += count
        cells[_SUM] += units * count
        cells[_FIRST_VERSION + version] += count

    def served_late(
        self, key: int, version: int, total_ns: int, *, queued_ns: int = 0, waited_ns: int = 0
    ) -> None:
        """Count a request that lay in a queue, or waited for records, a disk or another node."""
        metrics = self.api(key)
        metrics.cells[_FIRST_VERSION + version] += 1
        metrics.total.add_ns(total_ns)
        metrics.local.add_ns(max(total_ns - queued_ns - waited_ns, 0))
        metrics.queued.add_ns(queued_ns)
        metrics.waited.add_ns(waited_ns)

    def failed(self, key: int, error_code: int, count: int = 1) -> None:
        """Count an error that an answer tells, once or several times."""
        errors = self.api(key).errors
        errors[error_code] = errors.get(error_code, 0) + count


class CleanerMetrics:
    """What log compaction did last, and since the start."""

    __slots__ = (
        "bytes_read",
        "bytes_written",
        "clean_time_max_s",
        "dirty_percent_max",
        "last_run_ms",
        "runs",
        "uncleanable_partitions",
    )

    def __init__(self) -> None:
        self.runs = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.clean_time_max_s = 0.0
        self.dirty_percent_max = 0
        self.uncleanable_partitions = 0
        self.last_run_ms = 0


class CoordinatorMetrics:
    """What coordinators did since the start; what they have is counted when somebody asks."""

    __slots__ = (
        "completed_rebalances",
        "offset_commits",
        "rebalances",
        "share_state_writes",
        "verification_failures",
    )

    def __init__(self) -> None:
        self.offset_commits = 0
        self.completed_rebalances = 0
        self.rebalances: dict[str, int] = {}  # Of the newer kinds of groups, by kind.
        self.verification_failures = 0
        self.share_state_writes = 0


class Metrics:
    """All counters of one broker; handed down in parts."""

    __slots__ = (
        "_gone",
        "cleaner",
        "coordinators",
        "failed_fetch_requests",
        "failed_produce_requests",
        "log_flush",
        "requests",
        "topics",
    )

    def __init__(self) -> None:
        self.requests = RequestMetrics()
        self.topics: dict[str, TopicMetrics] = {}
        self.cleaner = CleanerMetrics()
        self.coordinators = CoordinatorMetrics()
        self.log_flush = Durations()
        # Requests that failed before a topic was found to count them on.
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self._gone = TopicMetrics()

    def topic(self, name: str) -> TopicMetrics:
        """The counters of a topic; keep the object rather than asking again."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicMetrics()
        return found

    def forget_topic(self, name: str) -> None:
        """Drop a deleted topic's own counters; the totals of the broker never go back."""
        gone = self.topics.pop(name, None)
        if gone is not None:
            self._gone.add(gone)

    def all_topics(self) -> TopicMetrics:
        """The totals of the broker, with the topics that were deleted."""
        total = TopicMetrics()
        total.add(self._gone)
        for metrics in self.topics.values():
            total.add(metrics)
        total.failed_produce_requests += self.failed_produce_requests
        total.failed_fetch_requests += self.failed_fetch_requests
        return total


def _milliseconds(units: float) -> float:
    return units * (1 << _UNIT_NS_SHIFT) / 1e6


def _quantile_ms(buckets: Sequence[int], quantile: float) -> float:
    """Find the bucket that holds the rank and assume its durations evenly spread."""
    rank = quantile * sum(buckets)
    for bits, count in enumerate(buckets):
        if count and rank <= count:
            low, high = _bounds(bits)
            return _milliseconds(low + (high - low) * rank / count)
        rank -= count
    return 0.0


def _bounds(bits: int) -> tuple[float, float]:
    """The durations whose squares have this many bits."""
    if not bits:
        return 0.0, 0.0
    return 2.0 ** ((bits - 1) / 2), 2.0 ** (bits / 2)
