"""What `headrace bench` shall do, what its workers tell while they do it, and what comes out."""

import msgspec

from headrace.cli.histogram import Histogram, Summary

STAMP_BYTES = 8


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One load, as the user models it."""

    bootstrap: str
    topic: str
    records: int | None
    """In total; no limit when there is a duration."""
    duration_s: float | None
    size_bytes: int
    rate: float | None
    """Records a second of all producers together; as fast as possible when absent."""
    acks: str
    compression: str
    linger_ms: float
    keys: int
    producers: int
    consumers: int
    partitions: int
    properties: dict[str, str] = {}


class Share(msgspec.Struct, frozen=True):
    """One worker's part of a plan."""

    plan: Plan
    index: int

    @property
    def records(self) -> int | None:
        """How many of the records this producer sends; the first ones take the remainder."""
        if self.plan.records is None:
            return None
        each, rest = divmod(self.plan.records, self.plan.producers)
        return each + (self.index < rest)

    @property
    def rate(self) -> float | None:
        return None if self.plan.rate is None else self.plan.rate / self.plan.producers

    @property
    def partitions(self) -> list[int]:
        """The partitions that this consumer reads; more consumers than partitions share some."""
        plan = self.plan
        if plan.consumers >= plan.partitions:
            return [self.index % plan.partitions]
        return list(range(self.index, plan.partitions, plan.consumers))


class Ready(msgspec.Struct, frozen=True, tag=True):
    """A worker is connected and warm."""


class Progress(msgspec.Struct, frozen=True, tag=True):
    """How far a worker is."""

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
    """A worker could not do its part."""

    reason: str


Report = Ready | Progress | Done | Failed


class Result(msgspec.Struct, frozen=True):
    """What one side of the load reached."""

    records: int
    failed: int
    seconds: float
    records_per_s: float
    mb_per_s: float
    latency_ms: Summary | None
    errors: dict[str, int]


def combined(parts: list[Done]) -> Result:
    """The results of all workers of one side; they ran at the same time."""
    latencies = Histogram()
    errors: dict[str, int] = {}
    for part in parts:
        latencies.merge(part.latencies)
        for message, count in part.errors.items():
            errors[message] = errors.get(message, 0) + count
    records = sum(part.records for part in parts)
    seconds = max((part.seconds for part in parts), default=0.0)
    per_s = 1 / seconds if seconds else 0.0
    return Result(
        records=records,
        failed=sum(part.failed for part in parts),
        seconds=round(seconds, 3),
        records_per_s=round(records * per_s, 1),
        mb_per_s=round(sum(part.size_bytes for part in parts) * per_s / 1e6, 3),
        latency_ms=latencies.summary(),
        errors=errors,
    )
