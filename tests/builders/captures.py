"""Records for captures that no broker has sent."""

from collections.abc import Mapping, Sequence

from confluent_kafka import Message

from headrace.protocol.uuids import ZERO


def record(
    offset: int, value: bytes = b"", headers: Sequence[tuple[str, bytes | None]] = ()
) -> Message:
    return Message("t", 0, offset, b"k", value, list(headers), timestamp=(1, 5))


class Runs:
    """A topic of one partition whose records come in runs, as a consumer gives them."""

    topic, group, outage = "t", "g", None

    def __init__(
        self,
        runs: Sequence[Sequence[Message]],
        *,
        committed: int | None = None,
        committed_end: int = 0,
        end: int = 0,
    ) -> None:
        self._runs = list(runs)
        self._committed = committed
        self._ends = committed_end, end

    @property
    def is_at_end(self) -> bool:
        return not self._runs

    def read(self) -> list[Message]:
        return list(self._runs.pop(0)) if self._runs else []

    def partitions(self) -> list[int]:
        return [0]

    def topic_id(self) -> bytes:
        return ZERO

    def committed(self, partitions: list[int]) -> dict[int, int]:
        return {} if self._committed is None else {0: self._committed}

    def bounds(self, partition: int) -> tuple[int, int]:
        return 0, self._ends[0]

    def high_watermark(self, partition: int) -> int:
        return self._ends[1]

    def begin(self, offsets: Mapping[int, int | None]) -> None: ...

    def first_offset(self, partition: int) -> int:
        return -1

    def commit_offsets(self, offsets: Mapping[int, int]) -> None: ...
