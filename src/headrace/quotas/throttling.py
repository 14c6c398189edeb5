"""Throttle times: how long a client that exceeds its quota is held back.

A client with the rate O and the quota T is held back for (O - T) / T of the measured time. Without
further traffic its rate is then T. The times of requests and of connections are limited to one
window, as in Kafka; those of bytes are not.
"""

import math

from headrace.errors import ThrottlingQuotaExceeded
from headrace.quotas.rates import Rate, TokenBucket

THROTTLE_MS_MAX = (1 << 31) - 1
"""The largest throttle time that an answer can contain."""


def throttle_ms(rate: float, limit: float, window_ms: int) -> int:
    """Return the time after which a rate over `window_ms` is back at its limit; 0 if it is not."""
    if rate <= limit:
        return 0
    if limit <= 0:
        return THROTTLE_MS_MAX
    return min(_rounded((rate - limit) / limit * window_ms), THROTTLE_MS_MAX)


class Limited:
    """The rate of one owner of a quota, with the limit that is in force."""

    __slots__ = ("_rate", "delay_max_ms", "limit")

    def __init__(self, rate: Rate, limit: float, delay_max_ms: int = THROTTLE_MS_MAX) -> None:
        self._rate = rate
        self.limit = limit
        self.delay_max_ms = delay_max_ms

    def record(self, value: float, now_ms: int) -> int:
        """Count a value, and return the throttle time that it causes."""
        self._rate.record(value, now_ms)
        return self.delay_ms(now_ms)

    def undo(self, value: float, now_ms: int) -> None:
        """Take back a value that was counted, because it is not sent."""
        self._rate.record(-value, now_ms)

    def note(self, value: float, now_ms: int) -> None:
        """Count a value that is not held back, for those after it."""
        self._rate.record(value, now_ms)

    def delay_ms(self, now_ms: int) -> int:
        delay_ms = throttle_ms(self._rate.measure(now_ms), self.limit, self._rate.window_ms(now_ms))
        return min(delay_ms, self.delay_max_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        return self._rate.measure(now_ms) > self.limit

    def is_alone(self, value: float, now_ms: int) -> bool:
        """Return whether a value beyond the burst is the only one that counts at present."""
        return value > self.burst and self._rate.total(now_ms) <= value

    def rate(self, now_ms: int) -> float:
        return self._rate.measure(now_ms)

    @property
    def burst(self) -> float:
        """The largest value that is not throttled if nothing was counted before."""
        return self.limit * self._rate.windows.full_s


class Mutations:
    """The controller mutations of one request, against the bucket of its client (KIP-599).

    A strict quota rejects mutations while the bucket is below zero. A permissive one, for requests
    whose version has no error for that, accepts them and has the client held back.
    """

    __slots__ = ("_bucket", "_delay_ms", "_limit", "_recorded_ms", "is_strict")

    def __init__(self, bucket: TokenBucket, limit: float, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._limit = limit
        self.is_strict = is_strict
        self._delay_ms = 0
        self._recorded_ms = 0

    def record(self, count: int, now_ms: int) -> None:
        """Take tokens; raise THROTTLING_QUOTA_EXCEEDED if a strict bucket is below zero."""
        if not self.is_strict:
            self._note(self._bucket.take(count, self._limit, now_ms), now_ms)
            return
        left = self._bucket.tokens(self._limit, now_ms)
        if left < 0:
            self._note(left, now_ms)
            raise ThrottlingQuotaExceeded("The throttling quota has been exceeded.")
        self._bucket.take(count, self._limit, now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """Return the rest of the throttle time that the request has caused."""
        return max(0, self._delay_ms - (now_ms - self._recorded_ms))

    def _note(self, tokens: float, now_ms: int) -> None:
        if tokens < 0:
            self._delay_ms = bucket_delay_ms(tokens, self._limit)
            self._recorded_ms = now_ms


def bucket_delay_ms(tokens: float, limit: float) -> int:
    """Return the time after which a bucket with less than no tokens is at zero again."""
    if limit <= 0:
        return THROTTLE_MS_MAX
    return min(_rounded(-tokens / limit * 1000), THROTTLE_MS_MAX)


def _rounded(value: float) -> int:
    return math.floor(value + 0.5)
