"""Questions that came while another was being answered, answered together.

A statement costs DuckDB half a millisecond before it has looked at a row, and three more lookups
in it cost less than one of their own. So of several threads with one kind of question one asks at
a time; those that come meanwhile wait, and the first of them then asks for all. Nobody waits for
company: who finds no one asking asks alone, at once.

Together is a shortcut and no more. What goes wrong with it, be it one asker's bad value or that
the one who asks was stopped, is nobody's answer: each then asks alone.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Generic, TypeVar

Value = TypeVar("Value")
Found = TypeVar("Found")

TOGETHER_MAX = 8


class _Turn(Enum):
    WAITING = auto()
    ASKS = auto()
    """For itself and for `others`."""
    ANSWERED = auto()


@dataclass(slots=True, eq=False)
class _Asker(Generic[Value, Found]):
    value: Value
    turn: _Turn = _Turn.WAITING
    others: "Sequence[_Asker[Value, Found]]" = ()
    found: "Sequence[Found]" = ()
    """One, once it is answered."""
    wait: threading.Lock = field(default_factory=threading.Lock)
    """Held until it may ask, was answered, or nobody could answer for it; cheaper than an Event."""


class Gathering(Generic[Value, Found]):
    """The questions of one kind that are being asked, and those that wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_asking = False
        self._waiting: deque[_Asker[Value, Found]] = deque()

    def ask(
        self,
        value: Value,
        *,
        alone: Callable[[], Found],
        together: Callable[[Sequence[Value]], Sequence[Found] | None],
        seconds: float,
    ) -> Found:
        """The answer for a value; `together` has one for each of several values, or None.

        Who has waited so many seconds for others asks alone.
        """
        me = _Asker[Value, Found](value)
        if not self._begins(me):
            me.wait.acquire(timeout=max(seconds, 0))
            turn = self._leave(me)
            if turn is not _Turn.ASKS:
                return me.found[0] if turn is _Turn.ANSWERED else alone()
        try:
            if not me.others:
                return alone()
            found = together([value, *(one.value for one in me.others)])
            if found is not None:
                for one, its in zip(me.others, found[1:], strict=True):
                    one.found, one.turn = [its], _Turn.ANSWERED
                return found[0]
        finally:
            self._end(me.others)
        return alone()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _begins(self, me: _Asker[Value, Found]) -> bool:
        """Whether nobody else is asking; else this one is put among those that wait."""
        with self._lock:
            if self._is_asking:
                me.wait.acquire()
                self._waiting.append(me)
                return False
            self._is_asking = True
            return True

    def _leave(self, me: _Asker[Value, Found]) -> _Turn:
        """The end of a wait: who asks takes along who waits; who waited too long just leaves."""
        with self._lock:
            if me.turn is _Turn.ASKS:
                count = min(len(self._waiting), TOGETHER_MAX - 1)
                me.others = [self._waiting.popleft() for _ in range(count)]
            elif me in self._waiting:
                self._waiting.remove(me)
            return me.turn

    def _end(self, others: Sequence[_Asker[Value, Found]]) -> None:
        """Let those go who were asked for, and let the next one ask."""
        for one in others:
            one.wait.release()
        with self._lock:
            if not self._waiting:
                self._is_asking = False
                return
            following = self._waiting.popleft()
            following.turn = _Turn.ASKS
        following.wait.release()
