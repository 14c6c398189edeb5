"""Progress of an application through its records, and the offsets that may be committed.

Records arrive in batches and are returned as a whole or one by one. A record is processed when the
application requests more. This module has neither clock nor client, only lists and offsets.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from operator import length_hint

from confluent_kafka import Message

Place = tuple[str, int]
"""A topic and a partition."""


class ReadProgress:
    """The progress of one consumer."""

    def __init__(self) -> None:
        self.only_topic: str | None = None
        """The only topic of all records, if known, which makes counting cheaper."""
        self.positions: dict[Place, int] = {}
        """The offset after the last processed record."""
        self.uncommitted: dict[Place, int] = {}
        """Positions without a commit."""
        self._batch: list[Message | None] = []
        self._rest: Iterator[Message | None] | None = None
        self._counted = 0
        self._unread: list[Message] = []

    @property
    def has_unread(self) -> bool:
        return bool(self._unread)

    def keep_unread(self, batch: list[Message]) -> None:
        """Add received records."""
        self._unread += batch

    def hand_out(self) -> list[Message]:
        """Return all unread records."""
        self._begin()
        return list(self._batch)  # type: ignore[arg-type]  # Only records handed out turn to None.

    def hand_out_within(self, bytes_max: int, size_of: Callable[[Message], int]) -> list[Message]:
        """Return unread records up to a size, at least one; the others stay unread."""
        left, count = bytes_max, 0
        for message in self._unread:
            left -= size_of(message)
            if left < 0 and count:
                break
            count += 1
        self._batch, self._unread = [*self._unread[:count]], self._unread[count:]
        self._rest, self._counted = None, 0
        return list(self._batch)  # type: ignore[arg-type]  # As above.

    def hand_out_singly(self) -> Iterator[Message]:
        """Iterate over unread records; those that are not consumed stay unread."""
        self._begin()
        self._rest = iter(self._batch)
        return self._rest  # type: ignore[return-value]

    def settle(self) -> bool:
        """Mark the returned records as processed; return whether there were any."""
        handed = self._handed()
        left = [message for message in self._batch[handed:] if message is not None]
        self._unread = left + self._unread
        offsets = self._offsets(handed)
        self._batch, self._rest, self._counted = [], None, 0
        self.positions |= offsets
        self.uncommitted |= offsets
        return bool(offsets)

    def settle_after_error(self) -> None:
        """Mark returned records as processed, except for the record or batch in progress."""
        handed = max(self._counted, self._handed() - 1) if self._rest is not None else self._counted
        del self._batch[handed:]
        self._rest = None
        self.settle()

    def to_commit(self) -> dict[Place, int]:
        """Return the offsets after all records returned since the last commit."""
        return self.uncommitted | self._offsets(self._handed())

    def note_commit(self) -> None:
        """Mark all returned records as committed."""
        self.positions |= self._offsets(self._handed())
        self._counted = self._handed()
        self.uncommitted.clear()

    def position(self, place: Place) -> int | None:
        """Return the offset after the last returned record."""
        return self._offsets(self._handed()).get(place, self.positions.get(place))

    def first_offsets(self) -> dict[Place, int]:
        """Return the first offsets of the batch in progress."""
        batch = [message for message in self._batch[: self._handed()] if message is not None]
        return {place_of(message): offset_of(message) for message in reversed(batch)}

    def drop(self, places: Collection[Place]) -> None:
        """Drop the records of partitions that are revoked or continue at another offset.

        Returned records keep their index in the list, because an iterator runs over it.
        """
        handed = self._handed()
        self._batch[handed:] = [
            message
            for message in self._batch[handed:]
            if message is not None and place_of(message) not in places
        ]
        for index, message in enumerate(self._batch[:handed]):
            if message is not None and place_of(message) in places:
                self._batch[index] = None
        self._unread = [one for one in self._unread if place_of(one) not in places]
        for place in places:
            self.positions.pop(place, None)
            self.uncommitted.pop(place, None)

    def _begin(self) -> None:
        self._batch = [*self._unread]
        self._unread = []
        self._rest = None
        self._counted = 0

    def _handed(self) -> int:
        """Return the number of returned records of the batch."""
        return len(self._batch) - (0 if self._rest is None else length_hint(self._rest))

    def _offsets(self, handed: int) -> dict[Place, int]:
        batch = self._batch[self._counted : handed]
        # Runs for every record; the last one of each partition remains.
        last: Iterable[Message]
        if self.only_topic is not None:
            last = {one.partition(): one for one in batch if one is not None}.values()
        else:
            last = {
                (one.topic(), one.partition()): one for one in batch if one is not None
            }.values()
        return {place_of(message): offset_of(message) + 1 for message in last}


def place_of(message: Message) -> Place:
    return message.topic() or "", message.partition() or 0


def offset_of(message: Message) -> int:
    offset = message.offset()
    assert offset is not None, "a record has an offset"
    return offset
