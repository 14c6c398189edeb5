"""The plan of `headrace bench`, the reports of its workers, and the results."""

import msgspec

from headrace.cli.histogram import Histogram, Summary

STAMP_BYTES = 8


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One load, as configured by the user."""

    bootstrap: str
    topic: str
    records: int | None
    """In total; no limit when there is a duration."""
    duration_s: float | None
    size_bytes: int
    rate: float | None
    """Records per second, by all producers together; unlimited if absent."""
    acks: str
    compression: str
    linger_ms: float
    keys: int
    producers: int
    consumers: int
    partitions: int
    properties: dict[str, str] = {}


class WorkerShare(msgspec.Struct, frozen=True):
    """One worker's part of a plan."""

    plan: LoadPlan
    index: int

    @property
    def records(self) -> int | None:
        """Return this producer's number of records; the first producers send the remainder."""
        if self.plan.records is None:
            return None
        each, rest = divmod(self.plan.records, self.plan.producers)
        return each + (self.index < rest)

    @property
    def rate(self) -> float | None:
        return None if self.plan.rate is None else self.plan.rate / self.plan.producers

    @property
    def partitions(self) -> list[int]:
        """Return this consumer's partitions; surplus consumers share some."""
        plan = self.plan
        if plan.consumers >= plan.partitions:
            return [self.index % plan.partitions]
        return list(range(self.index, plan.partitions, plan.consumers))


class Ready(msgspec.Struct, frozen=True, tag=True):
    """A worker is connected and warm."""


class LoadProgress(msgspec.Struct, frozen=True, tag=True):
    """Progress of a worker."""

    records: int
    size_bytes: int


class Done(msgspec.Struct, frozen=True, tag=True):
    """A worker's results."""

    records: int
    size_bytes: int
    failed: int
    seconds: float
    latencies: Histogram
    errors: dict[str, int]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A worker failed."""

    reason: str


Report = Ready | LoadProgress | Done | Failed


class LoadResult(msgspec.Struct, frozen=True):
    """Results of one side of the load."""

    records: int
    failed: int
    seconds: float
    records_per_s: float
    mb_per_s: float
    latency_ms: Summary | None
    errors: dict[str, int]


def combined(parts: list[Done]) -> LoadResult:
    """Combine the results of all workers of one side, which ran at the same time."""
    latencies = Histogram()
    errors: dict[str, int] = {}
    for part in parts:
        latencies.merge(part.latencies)
        for message, count in part.errors.items():
            errors[message] = errors.get(message, 0) + count
    records = sum(part.records for part in parts)
    seconds = max((part.seconds for part in parts), default=0.0)
    per_s = 1 / seconds if seconds else 0.0
    return LoadResult(
        records=records,
        failed=sum(part.failed for part in parts),
        seconds=round(seconds, 3),
        records_per_s=round(records * per_s, 1),
        mb_per_s=round(sum(part.size_bytes for part in parts) * per_s / 1e6, 3),
        latency_ms=latencies.summary(),
        errors=errors,
    )
