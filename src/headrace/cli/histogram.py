"""Latency histograms: constant memory, mergeable, exact to one part in sixty."""

from collections import Counter

import msgspec

_STEP_BITS = 6
_EXACT_BELOW = 1 << (_STEP_BITS + 1)

PERCENTILES = (50.0, 95.0, 99.0, 99.9)


class Summary(msgspec.Struct, frozen=True):
    """Summary of a distribution, in milliseconds."""

    p50: float
    p95: float
    p99: float
    p99_9: float
    max: float
    mean: float
    samples: int


class Histogram(msgspec.Struct):
    """Counts values of microseconds; 64 buckets for each power of two."""

    buckets: Counter[int] = msgspec.field(default_factory=Counter)
    count: int = 0
    total_us: int = 0
    max_us: int = 0

    def add(self, value_us: int, count: int = 1) -> None:
        """Count a value; a negative one, caused by clocks that disagree, counts as zero."""
        value_us = max(0, value_us)
        self.buckets[bucket_of(value_us)] += count
        self.count += count
        self.total_us += value_us * count
        self.max_us = max(self.max_us, value_us)

    def merge(self, other: "Histogram") -> None:
        """Add the counts of another histogram."""
        self.buckets.update(other.buckets)
        self.count += other.count
        self.total_us += other.total_us
        self.max_us = max(self.max_us, other.max_us)

    def percentile_us(self, percent: float) -> int:
        """Return the percentile for a share of all values, exact to the width of a bucket."""
        rank = self.count * percent / 100
        passed = 0
        for bucket in sorted(self.buckets):
            passed += self.buckets[bucket]
            if passed >= rank:
                return min(top_of(bucket), self.max_us)
        return self.max_us

    def summary(self) -> Summary | None:
        """Return the usual figures, or None if nothing was counted."""
        if not self.count:
            return None
        p50, p95, p99, p99_9 = (self.percentile_us(percent) / 1000 for percent in PERCENTILES)
        mean = round(self.total_us / self.count / 1000, 3)
        return Summary(p50, p95, p99, p99_9, self.max_us / 1000, mean, self.count)


def bucket_of(value: int) -> int:
    """Return the index of a value's bucket; buckets are ordered by value."""
    if value < _EXACT_BELOW:
        return value
    shift = value.bit_length() - _STEP_BITS - 1
    return (shift << _STEP_BITS) + (value >> shift)


def top_of(bucket: int) -> int:
    """Return the largest value of a bucket."""
    if bucket < _EXACT_BELOW:
        return bucket
    shift = (bucket >> _STEP_BITS) - 1
    return (((bucket & ((1 << _STEP_BITS) - 1)) + (1 << _STEP_BITS) + 1) << shift) - 1
