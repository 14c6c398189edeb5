"""Which records an application has been given, and so which offsets may be committed.

Records come in batches and are handed out as a whole or one by one. A record is processed when the
application asks for more. No clock, no client: only lists of records and offsets.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from operator import length_hint

from confluent_kafka import Message

Place = tuple[str, int]
"""A topic and a partition of it."""


class Progress:
    """The account of one consumer."""

    def __init__(self) -> None:
        self.only_topic: str | None = None
        """The one topic that all records are of, where that is known: it makes counting cheap."""
        self.positions: dict[Place, int] = {}
        """The offset after the last processed record."""
        self.uncommitted: dict[Place, int] = {}
        """Those of the positions that no commit has told the group yet."""
        self._batch: list[Message | None] = []
        self._rest: Iterator[Message | None] | None = None
        self._counted = 0
        self._unread: list[Message] = []

    @property
    def has_unread(self) -> bool:
        return bool(self._unread)

    def keep_unread(self, batch: list[Message]) -> None:
        """Records that have arrived."""
        self._unread += batch

    def hand_out(self) -> list[Message]:
        """All that is unread, at once."""
        self._begin()
        return list(self._batch)  # type: ignore[arg-type]  # Only records handed out turn to None.

    def hand_out_within(self, bytes_max: int, size_of: Callable[[Message], int]) -> list[Message]:
        """As much of the unread as fits, and at least one record; the rest stays unread."""
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
        """All that is unread, one by one; what the application leaves is unread again."""
        self._begin()
        self._rest = iter(self._batch)
        return self._rest  # type: ignore[return-value]

    def settle(self) -> bool:
        """The application asks for more: what it was given is processed. Whether that was any."""
        handed = self._handed()
        left = [message for message in self._batch[handed:] if message is not None]
        self._unread = left + self._unread
        offsets = self._offsets(handed)
        self._batch, self._rest, self._counted = [], None, 0
        self.positions |= offsets
        self.uncommitted |= offsets
        return bool(offsets)

    def settle_after_error(self) -> None:
        """Work has failed: the record or the batch that was worked on is not processed."""
        handed = max(self._counted, self._handed() - 1) if self._rest is not None else self._counted
        del self._batch[handed:]
        self._rest = None
        self.settle()

    def to_commit(self) -> dict[Place, int]:
        """The offsets after everything that was handed out since the last commit."""
        return self.uncommitted | self._offsets(self._handed())

    def note_commit(self) -> None:
        """Everything that was handed out is committed."""
        self.positions |= self._offsets(self._handed())
        self._counted = self._handed()
        self.uncommitted.clear()

    def position(self, place: Place) -> int | None:
        """The offset after the last record that was handed out."""
        return self._offsets(self._handed()).get(place, self.positions.get(place))

    def first_offsets(self) -> dict[Place, int]:
        """Where the batch began that is in the application's hands."""
        batch = [message for message in self._batch[: self._handed()] if message is not None]
        return {place_of(message): offset_of(message) for message in reversed(batch)}

    def drop(self, places: Collection[Place]) -> None:
        """Forget partitions, because they have gone or are read from elsewhere.

        Records in hand stay where they are in the list, as an iterator runs over it.
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
        """How many records of the batch the application has."""
        return len(self._batch) - (0 if self._rest is None else length_hint(self._rest))

    def _offsets(self, handed: int) -> dict[Place, int]:
        batch = self._batch[self._counted : handed]
        # This runs for every record; the last of each partition stays.
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
