"""Counters of traffic and of changes of in-sync replicas: plain integers."""

from collections.abc import Callable, Iterable
from typing import NamedTuple


class TopicMetrics:
    """Traffic of one topic since the broker started."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_requests",
        "messages_in",
        "produce_requests",
        "replication_bytes_out",
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
        self.replication_bytes_out = 0

    def count_produced(self, requests: int, size_bytes: int, messages: int) -> None:
        self.produce_requests += requests
        self.bytes_in += size_bytes
        self.messages_in += messages

    def count_failed_produce(self, size_bytes: int) -> None:
        self.failed_produce_requests += 1
        self.bytes_rejected += size_bytes

    def add(self, other: "TopicMetrics") -> None:
        """Add the counts of another object."""
        for name in TopicMetrics.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class IsrMetrics:
    """Changes of in-sync replicas that this node has made as a leader since it started."""

    __slots__ = ("expansions", "failures", "shrinks")

    def __init__(self) -> None:
        self.expansions = 0
        self.shrinks = 0
        self.failures = 0


class Lag(NamedTuple):
    """The committed records of a leader that a follower lacks."""

    topic: str
    partition: int
    records: int


class FetcherMetrics:
    """Traffic of one connection through which this broker follows another."""

    __slots__ = ("bytes", "lags", "name", "requests")

    def __init__(self, name: str, lags: Callable[[], Iterable[Lag]]) -> None:
        self.name = name
        self.lags = lags
        """The lag of each partition that is followed through the connection."""
        self.requests = 0
        self.bytes = 0


class FollowingMetrics:
    """Counters of this broker as a follower of others."""

    __slots__ = ("bytes_in", "failed_partitions", "fetchers")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.failed_partitions = 0
        """Partitions that are not fetched any more, until their metadata changes."""
        self.fetchers: dict[str, FetcherMetrics] = {}
