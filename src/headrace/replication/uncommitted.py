"""Produced records that wait for their replicas (acks=all), in the order of their offsets.

Each waiting request has the offset that the high watermark must reach. One look at the high
watermark finds all requests that are done, and one timer serves all of them.
"""

import asyncio
import logging
from bisect import insort
from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple, Protocol

from headrace.errors import KafkaError, NotEnoughReplicasAfterAppend, RequestTimedOut
from headrace.replication.delayed import Awaited, Waiter

_log = logging.getLogger(__name__)

Done = Callable[[KafkaError | None], None]
"""Called with None when the records are committed, else with the error for the producer."""

_by_offset = attrgetter("end_offset")


class Committing(Protocol):
    """The partition that the producers wait for."""

    is_led: bool

    @property
    def name(self) -> str: ...

    @property
    def is_maximal_isr_under_min(self) -> bool: ...

    def is_committed(self, end_offset: int) -> bool: ...

    def commit_failure(self) -> KafkaError | None: ...


class _Waiting(NamedTuple):
    end_offset: int
    deadline_s: float
    done: Done


class Uncommitted:
    """The producers that wait for the replicas of one partition."""

    __slots__ = ("_changed", "_partition", "_timer", "_timer_s", "_waiting", "waiters")

    def __init__(self, partition: Committing, changed: Callable[[Awaited], None]) -> None:
        self._partition = partition
        self._changed = changed
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0
        self.waiters: tuple[Waiter] = (self,)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, end_offset: int, timeout_ms: int, done: Done) -> None:
        """Call `done` once records before an offset are committed, or when they cannot be.

        It is never called from here: a producer that is answered may send the next request.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        waiting = _Waiting(end_offset, deadline_s, done)
        if self._waiting and end_offset < self._waiting[-1].end_offset:
            insort(self._waiting, waiting, key=_by_offset)  # A duplicate of an earlier batch.
        else:
            self._waiting.append(waiting)
        if self._timer is None or deadline_s < self._timer_s:
            self._set_timer(loop, deadline_s)
        partition = self._partition
        if partition.is_committed(end_offset) or not partition.is_led:
            self._changed(self)

    def try_again(self) -> None:
        """Answer the producers whose records are committed; all of them if that cannot happen."""
        if not self._waiting:
            return
        partition = self._partition
        failure = partition.commit_failure()
        if failure is not None:
            waiting, self._waiting = self._waiting, []
            self._call(waiting, failure)
            return
        count = 0
        for one in self._waiting:
            if not partition.is_committed(one.end_offset):
                break
            count += 1
        if not count:
            return
        committed = self._waiting[:count]
        del self._waiting[:count]
        # The records are stored by fewer replicas than their producers asked for.
        is_under_min = partition.is_maximal_isr_under_min
        self._call(
            committed,
            NotEnoughReplicasAfterAppend(
                f"the in-sync replicas of {partition.name} became fewer than "
                "min.insync.replicas after the append"
            )
            if is_under_min
            else None,
        )

    def _set_timer(self, loop: asyncio.AbstractEventLoop, at_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_s = at_s
        self._timer = loop.call_at(at_s, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now_s = max(loop.time(), self._timer_s)
        expired = [one for one in self._waiting if one.deadline_s <= now_s]
        if expired:
            self._waiting = [one for one in self._waiting if one.deadline_s > now_s]
        if self._waiting:
            self._set_timer(loop, min(one.deadline_s for one in self._waiting))
        if expired:
            self._call(
                expired,
                RequestTimedOut("the in-sync replicas did not store the records in time"),
            )

    def _call(self, waiting: list[_Waiting], error: KafkaError | None) -> None:
        for one in waiting:
            try:
                one.done(error)
            except Exception:
                _log.exception(
                    "answering a producer failed", extra={"partition": self._partition.name}
                )
