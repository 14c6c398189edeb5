"""Rates over windows, and a bucket of tokens: what a quota measures.

Both follow Kafka, so that the same traffic is throttled for the same time. A rate is the sum over
the last windows, divided by their length. A rate that has just begun is divided by nearly the full
length, so a short burst is allowed. The bucket of KIP-599 fills at the rate of its quota, up to one
burst.
"""

from typing import NamedTuple

import msgspec

_MS = 1000.0


class Windows(NamedTuple):
    """The windows of a rate: their number and their length."""

    num: int = 11
    size_ms: int = 1000

    @property
    def burst_s(self) -> float:
        """Return the length of all windows in seconds."""
        return self.num * self.size_ms / _MS

    @property
    def full_s(self) -> float:
        """Return the length of the windows that are always complete."""
        return (self.num - 1) * self.size_ms / _MS


class _Sample(msgspec.Struct, gc=False):
    """The sum of one window; it begins with the first value that the window before has no room for.

    It counts as long as its last value is not older than all windows.
    """

    start_ms: int
    last_ms: int
    value: float = 0.0

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """Values per second over some windows."""

    __slots__ = ("_current", "_samples", "windows")

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        sample = self._sample(now_ms)
        if now_ms - sample.start_ms >= self.windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> float:
        """Return the rate per second."""
        window_ms = self.window_ms(now_ms)
        return sum(sample.value for sample in self._samples) / window_ms * _MS

    def total(self, now_ms: int) -> float:
        """Return the sum of the values that are not too old."""
        self._elapsed_ms(now_ms)
        return sum(sample.value for sample in self._samples)

    def window_ms(self, now_ms: int) -> int:
        """Return the length that the rate is measured over.

        The windows before the present one count as complete, also if the rate has just begun.
        """
        num, size_ms = self.windows
        elapsed_ms = self._elapsed_ms(now_ms)
        missing = num - 1 - elapsed_ms // size_ms
        return max(elapsed_ms + max(missing, 0) * size_ms, 1)

    def _elapsed_ms(self, now_ms: int) -> int:
        """Drop values that are too old, and return the age of the oldest window."""
        age_max_ms = self.windows.num * self.windows.size_ms
        self._sample(now_ms)
        for sample in self._samples:
            if now_ms - sample.last_ms >= age_max_ms:
                sample.reset(now_ms)
        return now_ms - min(sample.start_ms for sample in self._samples)

    def _sample(self, now_ms: int) -> _Sample:
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))
        return self._samples[self._current]

    def _advance(self, now_ms: int) -> _Sample:
        """Begin a window in the place of the oldest; one more than counted may overlap the end."""
        self._current = (self._current + 1) % (self.windows.num + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms, now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]


class SimpleRate(Rate):
    """A rate over the time since its oldest window, at least one window: for replication."""

    __slots__ = ()

    def window_ms(self, now_ms: int) -> int:
        return max(self._elapsed_ms(now_ms), self.windows.size_ms)


class Average:
    """The mean of the values of the last minute."""

    __slots__ = ("_counts", "_values")

    def __init__(self) -> None:
        windows = Windows(2, 30_000)
        self._values = Rate(windows)
        self._counts = Rate(windows)

    def record(self, value: float, now_ms: int) -> None:
        self._values.record(value, now_ms)
        self._counts.record(1, now_ms)

    def measure(self, now_ms: int) -> float:
        """Return the mean, or 0 without values."""
        count = self._counts.total(now_ms)
        return self._values.total(now_ms) / count if count else 0.0


class TokenBucket:
    """Tokens that come at the rate of a quota; a taker may leave the bucket below zero."""

    __slots__ = ("_filled_ms", "_tokens", "windows")

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._tokens = 0.0
        self._filled_ms: int | None = None

    def tokens(self, limit: float, now_ms: int) -> float:
        """Return the tokens in the bucket; below zero the quota is exceeded."""
        burst = self.windows.burst_s * limit
        if self._filled_ms is None:
            self._tokens = burst
        else:
            self._tokens += limit * (now_ms - self._filled_ms) / _MS
        self._tokens = min(self._tokens, burst)
        self._filled_ms = now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> float:
        """Take tokens, and return how many are left."""
        burst = self.windows.burst_s * limit
        self._tokens = min(self.tokens(limit, now_ms) - count, burst)
        return self._tokens
