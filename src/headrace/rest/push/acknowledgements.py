"""What a client has acknowledged, and how far its group may commit by that."""

from collections import deque

from headrace.rest.errors import RestError, bad_request


class Acknowledgements:
    """An acknowledgement covers a record and all before it in its partition."""

    def __init__(self, unacknowledged_max: int) -> None:
        self._unacknowledged_max = unacknowledged_max
        self._sent: dict[int, deque[int]] = {}
        self._seen: dict[int, int] = {}
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether so much is unacknowledged that the client is sent no more for now."""
        return self._count >= self._unacknowledged_max

    @property
    def room(self) -> int:
        return max(0, self._unacknowledged_max - self._count)

    def sent(self, partition: int, offset: int) -> None:
        self._sent.setdefault(partition, deque()).append(offset)
        self._seen[partition] = offset
        self._count += 1

    def passed_over(self, partition: int, offset: int) -> bool:
        """A record that the client does not want; whether it may be committed at once."""
        self._seen[partition] = offset
        return not self._sent.get(partition)

    def acknowledge(self, partition: int, offset: int) -> int:
        """The last offset that may be committed now."""
        waiting = self._sent.get(partition)
        if waiting is None or offset > self._seen[partition]:
            raise _never_sent(partition, offset)
        while waiting and waiting[0] <= offset:
            waiting.popleft()
            self._count -= 1
        return waiting[0] - 1 if waiting else self._seen[partition]


def _never_sent(partition: int, offset: int) -> RestError:
    return bad_request(f"partition {partition}, offset {offset} is acknowledged but was not sent")
