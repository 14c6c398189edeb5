"""The age limit of the active segment (`segment.ms`)."""

from headrace.runtime import chance
from headrace.storage.config import LogConfig

_NEVER = (1 << 63) - 1
_ASK_ALWAYS = -2
"""A deadline below any timestamp, so that each append makes the slow check."""


class RollClock:
    """The age from the timestamp of a segment's first batch; without timestamps, by the clock.

    The hot path compares a batch's timestamp with `deadline` and checks further only beyond it.
    """

    __slots__ = ("_since_ms", "deadline")

    def __init__(self) -> None:
        self.deadline = _NEVER
        self._since_ms = 0

    def start(self, first_timestamp: int, now_ms: int, config: LogConfig) -> None:
        """Start with the first batch of the segment.

        The jitter keeps partitions that were written first together from rolling together.
        """
        self._since_ms = now_ms
        if first_timestamp < 0:
            self.deadline = _ASK_ALWAYS
            return
        jitter_ms = config.segment_jitter_ms
        if jitter_ms:
            jitter_ms = int.from_bytes(chance.urandom(6)) % jitter_ms
        self.deadline = first_timestamp + config.roll_ms - jitter_ms

    def stop(self) -> None:
        """Stop: the segment is empty."""
        self.deadline = _NEVER

    def move(self, difference_ms: int) -> None:
        """Move the deadline after a change of `segment.ms`."""
        if self.deadline not in (_NEVER, _ASK_ALWAYS):
            self.deadline += difference_ms

    def is_over(self, timestamp: int, now_ms: int, config: LogConfig) -> bool:
        if self.deadline == _ASK_ALWAYS:
            return now_ms - self._since_ms > config.roll_ms
        return timestamp > self.deadline
