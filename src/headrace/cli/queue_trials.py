"""Outcomes of tasks run by a command: decided by exit code and number of deliveries.

Every delivery counts, and the broker gives a task up at the group's limit. So a failed task is
held before it is released, longer each time: a temporary failure may be over by then, and without
the pause all deliveries would be used up within a second.
"""

from collections import Counter
from enum import Enum

EX_DATAERR = 65  # EX_DATAERR of sysexits.h: the input is invalid, so a retry would fail too.
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
_PAUSE_S = 0.5
_PAUSE_MAX_S = 8.0

Place = tuple[int, int]
"""A task's partition and offset."""


class Outcome(Enum):
    """Outcome of one try of a task; the value is shown to people."""

    DONE = "done"
    REJECTED = "rejected"
    GIVEN_BACK = "given back"
    GIVEN_UP = "given up"
    NOT_SETTLED = "not settled"


def cannot_run(exit_code: int) -> str | None:
    """Return why the shell could not start the command, or None if it did."""
    return {_NOT_EXECUTABLE: "is not executable", _NOT_FOUND: "is not found"}.get(exit_code)


def outcome_of(exit_code: int, deliveries: int, limit: int | None) -> Outcome:
    """Return the outcome of a task; without a known limit it is released and the broker decides."""
    if exit_code == 0:
        return Outcome.DONE
    if exit_code == EX_DATAERR:
        return Outcome.REJECTED
    return Outcome.GIVEN_UP if is_last(deliveries, limit) else Outcome.GIVEN_BACK


def is_last(deliveries: int, limit: int | None) -> bool:
    """Return whether a task released now will not be redelivered."""
    return limit is not None and deliveries >= limit


def pause_s(deliveries: int) -> float:
    """Return how long to hold a failed task before its release."""
    return min(_PAUSE_S * 2.0 ** min(deliveries - 1, 10), _PAUSE_MAX_S)


def failure_text(exit_code: int, outcome: Outcome, deliveries: int, limit: int | None) -> str:
    """Describe a failed try."""
    if outcome is Outcome.GIVEN_UP:
        return f"exit code {exit_code}, given up after {tries(deliveries)}"
    if outcome is Outcome.GIVEN_BACK:
        of = "" if limit is None else f" of {limit}"
        return f"exit code {exit_code}, given back (try {deliveries}{of})"
    return f"exit code {exit_code}, {outcome.value}"


def tries(count: int) -> str:
    return "1 try" if count == 1 else f"{count:,} tries"


class TaskOutcomes:
    """Outcomes of a run's tasks: a task that succeeds on a retry has not failed."""

    def __init__(self) -> None:
        self._ended: Counter[Outcome] = Counter()
        self._pending: dict[Place, Outcome] = {}

    def note(self, place: Place, outcome: Outcome) -> None:
        """Record a task's latest outcome; a redelivery may replace it."""
        self._pending.pop(place, None)
        if outcome in (Outcome.GIVEN_BACK, Outcome.NOT_SETTLED):
            self._pending[place] = outcome
        else:
            self._ended[outcome] += 1

    def count(self, outcome: Outcome) -> int:
        return self._ended[outcome] + sum(one is outcome for one in self._pending.values())

    def has_failures(self) -> bool:
        return any(self.count(outcome) for outcome in Outcome if outcome is not Outcome.DONE)

    def summary(self) -> str:
        """Summarize as `12 done, 1 given up`: always the done tasks, and other nonzero counts."""
        shown = [outcome for outcome in Outcome if outcome is Outcome.DONE or self.count(outcome)]
        return ", ".join(f"{self.count(outcome):,} {outcome.value}" for outcome in shown)
