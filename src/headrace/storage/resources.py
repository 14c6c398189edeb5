"""Resources that all logs of a node share: descriptors, index memory, and files to unlink.

A node has thousands of partitions, and each has many segments. Open files and loaded indexes are
therefore cached up to a limit; the least recently opened are released first.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from headrace.runtime import files

OPEN_FILES_MAX = 512
INDEX_BYTES_MAX = 16 << 20


class Holder(Protocol):
    """A segment, which can reopen and reload released resources."""

    def release_file(self) -> None: ...

    def release_indexes(self) -> None: ...


class Bounded:
    """The holders of a limited resource; the oldest are released first."""

    __slots__ = ("_max", "_release", "_total", "_weights")

    def __init__(self, total_max: int, release: Callable[[Holder], None]) -> None:
        self._max = total_max
        self._release = release
        self._weights: dict[Holder, int] = {}
        self._total = 0

    def __len__(self) -> int:
        return len(self._weights)

    @property
    def total(self) -> int:
        return self._total

    def add(self, holder: Holder, weight: int = 1) -> None:
        """Add a holder, and release others beyond the limit."""
        self.remove(holder)
        self._weights[holder] = weight
        self._total += weight
        while self._total > self._max and len(self._weights) > 1:
            oldest = next(iter(self._weights))
            self.remove(oldest)
            self._release(oldest)

    def remove(self, holder: Holder) -> None:
        self._total -= self._weights.pop(holder, 0)


class Deletions:
    """Files renamed to `.deleted` that are unlinked after a delay, so that readers can finish.

    The delay starts when `due` first sees a file, because storage itself has no clock.
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
        """Add the files of other deletions, none of which is due yet."""
        self._new += others._new
        others._new = []

    def due(self, now_ms: int) -> list[str]:
        """Remove and return the paths that are due, for `unlink_all` in a thread."""
        if self._new:
            waiting = [*self._waiting, *((now_ms + delay, path) for path, delay in self._new)]
            self._waiting = deque(sorted(waiting))
            self._new.clear()
        paths = []
        while self._waiting and self._waiting[0][0] <= now_ms:
            paths.append(self._waiting.popleft()[1])
        return paths


def unlink_all(paths: list[str]) -> None:
    """Remove files and whole directories without readers. Runs in a thread."""
    for path in paths:
        if path.endswith("-delete"):
            files.remove_tree(path)
        else:
            files.unlink_if_there(path)


class Resources:
    """The shared resources: one object per node, or one for a single log."""

    __slots__ = ("deletions", "indexes", "open_files")

    def __init__(
        self, open_files_max: int = OPEN_FILES_MAX, index_bytes_max: int = INDEX_BYTES_MAX
    ) -> None:
        self.open_files = Bounded(open_files_max, lambda segment: segment.release_file())
        self.indexes = Bounded(index_bytes_max, lambda segment: segment.release_indexes())
        self.deletions = Deletions()
