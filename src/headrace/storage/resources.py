"""What all logs of a node share: descriptors, index memory, and files that wait to be unlinked.

A node has thousands of partitions, and each has many segments. What a segment can open or load
again is therefore held only while there is room, the oldest going first.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from headrace.runtime import files

OPEN_FILES_MAX = 512
INDEX_BYTES_MAX = 16 << 20


class Holder(Protocol):
    """A segment, which opens and loads again what it was told to let go of."""

    def let_go_of_file(self) -> None: ...

    def let_go_of_indexes(self) -> None: ...


class Bounded:
    """The holders of something of which there is only so much."""

    __slots__ = ("_let_go", "_max", "_total", "_weights")

    def __init__(self, total_max: int, let_go: Callable[[Holder], None]) -> None:
        self._max = total_max
        self._let_go = let_go
        self._weights: dict[Holder, int] = {}
        self._total = 0

    def __len__(self) -> int:
        return len(self._weights)

    @property
    def total(self) -> int:
        return self._total

    def add(self, holder: Holder, weight: int = 1) -> None:
        """Note a new holder and make room for it."""
        self.remove(holder)
        self._weights[holder] = weight
        self._total += weight
        while self._total > self._max and len(self._weights) > 1:
            oldest = next(iter(self._weights))
            self.remove(oldest)
            self._let_go(oldest)

    def remove(self, holder: Holder) -> None:
        self._total -= self._weights.pop(holder, 0)


class Deletions:
    """Files renamed to `.deleted` that go away after a while, so that readers can finish.

    The clock starts when `due` first sees a file: storage itself knows no time of day.
    """

    __slots__ = ("_new", "_waiting")

    def __init__(self) -> None:
        self._new: list[tuple[str, int]] = []
        self._waiting: deque[tuple[int, str]] = deque()

    def __len__(self) -> int:
        return len(self._new) + len(self._waiting)

    def add(self, path: str, delay_ms: int) -> None:
        self._new.append((path, delay_ms))

    def take_over(self, others: "Deletions") -> None:
        """Add what others have noted, none of which was looked at yet."""
        self._new += others._new
        others._new = []

    def due(self, now_ms: int) -> list[str]:
        """Take out the paths whose time has come, for `unlink_all` in a thread."""
        if self._new:
            waiting = [*self._waiting, *((now_ms + delay, path) for path, delay in self._new)]
            self._waiting = deque(sorted(waiting))
            self._new.clear()
        paths = []
        while self._waiting and self._waiting[0][0] <= now_ms:
            paths.append(self._waiting.popleft()[1])
        return paths


def unlink_all(paths: list[str]) -> None:
    """Remove files, and directories whole, that nobody reads any more. Runs in a thread."""
    for path in paths:
        if path.endswith("-delete"):
            files.remove_tree(path)
        else:
            files.unlink_if_there(path)


class Resources:
    """One per node, handed to each log; a log on its own makes itself one."""

    __slots__ = ("deletions", "indexes", "open_files")

    def __init__(
        self, open_files_max: int = OPEN_FILES_MAX, index_bytes_max: int = INDEX_BYTES_MAX
    ) -> None:
        self.open_files = Bounded(open_files_max, lambda segment: segment.let_go_of_file())
        self.indexes = Bounded(index_bytes_max, lambda segment: segment.let_go_of_indexes())
        self.deletions = Deletions()
