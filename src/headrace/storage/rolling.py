"""When the active segment has had its time (`segment.ms`)."""

from os import urandom

from headrace.storage.config import LogConfig

_NEVER = (1 << 63) - 1
_ASK_ALWAYS = -2
"""A deadline below any timestamp: the slow check is made at each append."""


class RollClock:
    """Counts from the timestamp of a segment's first batch; without timestamps, by the clock.

    The hot path compares a batch's timestamp with `deadline` and asks further only beyond it.
    """

    __slots__ = ("_since_ms", "deadline")

    def __init__(self) -> None:
        self.deadline = _NEVER
        self._since_ms = 0

    def start(self, first_timestamp: int, now_ms: int, config: LogConfig) -> None:
        """The first batch is in the segment.

        The jitter keeps partitions that were written first together from rolling together.
        """
        self._since_ms = now_ms
        if first_timestamp < 0:
            self.deadline = _ASK_ALWAYS
            return
        jitter_ms = config.segment_jitter_ms
        if jitter_ms:
            jitter_ms = int.from_bytes(urandom(6)) % jitter_ms
        self.deadline = first_timestamp + config.roll_ms - jitter_ms

    def stop(self) -> None:
        """The segment is empty."""
        self.deadline = _NEVER

    def move(self, difference_ms: int) -> None:
        """`segment.ms` was changed."""
        if self.deadline not in (_NEVER, _ASK_ALWAYS):
            self.deadline += difference_ms

    def is_over(self, timestamp: int, now_ms: int, config: LogConfig) -> bool:
        if self.deadline == _ASK_ALWAYS:
            return now_ms - self._since_ms > config.roll_ms
        return timestamp > self.deadline
