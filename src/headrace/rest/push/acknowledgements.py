"""Acknowledgements of a client, and the offsets that its group may commit."""

from collections import deque

from headrace.rest.errors import RestError, bad_request


class Acknowledgements:
    """Tracks sent records; an acknowledgement covers all records up to its offset."""

    def __init__(self, unacknowledged_max: int) -> None:
        self._unacknowledged_max = unacknowledged_max
        self._sent: dict[int, deque[int]] = {}
        self._seen: dict[int, int] = {}
        self._count = 0

    @property
    def is_full(self) -> bool:
        """True if the client must acknowledge records before it gets more."""
        return self._count >= self._unacknowledged_max

    @property
    def room(self) -> int:
        return max(0, self._unacknowledged_max - self._count)

    def sent(self, partition: int, offset: int) -> None:
        self._sent.setdefault(partition, deque()).append(offset)
        self._seen[partition] = offset
        self._count += 1

    def passed_over(self, partition: int, offset: int) -> bool:
        """Note a filtered record; return whether it may be committed immediately."""
        self._seen[partition] = offset
        return not self._sent.get(partition)

    def acknowledge(self, partition: int, offset: int) -> int:
        """Acknowledge up to an offset; return the last offset to commit."""
        waiting = self._sent.get(partition)
        if waiting is None or offset > self._seen[partition]:
            raise _never_sent(partition, offset)
        while waiting and waiting[0] <= offset:
            waiting.popleft()
            self._count -= 1
        return waiting[0] - 1 if waiting else self._seen[partition]


def _never_sent(partition: int, offset: int) -> RestError:
    return bad_request(f"partition {partition}, offset {offset} is acknowledged but was not sent")
