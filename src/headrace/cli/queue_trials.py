"""What becomes of tasks that a command tries: by its exit code, and by how often they were tried.

Every delivery counts, and the broker gives a task up when one more would pass the group's limit.
So a task that fails waits before it is given back, longer each time: whatever it needs may be
back by then, and a task that comes back at once would be worn out within a second.
"""

from collections import Counter
from enum import Enum

EX_DATAERR = 65  # As in sysexits.h: the input is wrong, and will be next time.
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
_PAUSE_S = 0.5
_PAUSE_MAX_S = 8.0

Place = tuple[int, int]
"""A task's partition and offset."""


class Fate(Enum):
    """How a try of a task ended; the value is what a person reads."""

    DONE = "done"
    REJECTED = "rejected"
    GIVEN_BACK = "given back"
    GIVEN_UP = "given up"
    NOT_SETTLED = "not settled"


def cannot_run(exit_code: int) -> str | None:
    """Why a shell could not start the command at all, when it says so."""
    return {_NOT_EXECUTABLE: "is not executable", _NOT_FOUND: "is not found"}.get(exit_code)


def fate_of(exit_code: int, deliveries: int, limit: int | None) -> Fate:
    """What becomes of a task; without a known limit it is given back and the broker decides."""
    if exit_code == 0:
        return Fate.DONE
    if exit_code == EX_DATAERR:
        return Fate.REJECTED
    return Fate.GIVEN_UP if is_last(deliveries, limit) else Fate.GIVEN_BACK


def is_last(deliveries: int, limit: int | None) -> bool:
    """Whether a task that is given back now will not come again."""
    return limit is not None and deliveries >= limit


def pause_s(deliveries: int) -> float:
    """How long a failed task waits before it is given back."""
    return min(_PAUSE_S * 2.0 ** min(deliveries - 1, 10), _PAUSE_MAX_S)


def told(exit_code: int, fate: Fate, deliveries: int, limit: int | None) -> str:
    """A failed try in words."""
    if fate is Fate.GIVEN_UP:
        return f"exit code {exit_code}, given up after {tries(deliveries)}"
    if fate is Fate.GIVEN_BACK:
        of = "" if limit is None else f" of {limit}"
        return f"exit code {exit_code}, given back (try {deliveries}{of})"
    return f"exit code {exit_code}, {fate.value}"


def tries(count: int) -> str:
    return "1 try" if count == 1 else f"{count:,} tries"


class Tally:
    """How a run's tasks ended: a task that is done in the end has not failed."""

    def __init__(self) -> None:
        self._ended: Counter[Fate] = Counter()
        self._pending: dict[Place, Fate] = {}

    def note(self, place: Place, fate: Fate) -> None:
        """A task's latest fate; one that comes back may still have another."""
        self._pending.pop(place, None)
        if fate in (Fate.GIVEN_BACK, Fate.NOT_SETTLED):
            self._pending[place] = fate
        else:
            self._ended[fate] += 1

    def count(self, fate: Fate) -> int:
        return self._ended[fate] + sum(one is fate for one in self._pending.values())

    def has_failures(self) -> bool:
        return any(self.count(fate) for fate in Fate if fate is not Fate.DONE)

    def summary(self) -> str:
        """`12 done, 1 given up`: always what is done, and else what there is."""
        shown = [fate for fate in Fate if fate is Fate.DONE or self.count(fate)]
        return ", ".join(f"{self.count(fate):,} {fate.value}" for fate in shown)
