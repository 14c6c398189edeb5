"""Finds the connections that have bytes to read, with one epoll behind one file of the event loop.

A reader of the loop costs a handle, a context and a callback whenever its socket is ready. Here
the loop sees one descriptor, and one callback serves all sockets that are ready. Such a round has a
beginning and an end, so work can be gathered over it (`produce/rounds.py`), and answers can be held
until all sockets have been read: a client is woken once for several answers instead of once for
each. A round is bounded in time; sockets that it does not reach are served in the next one.

A connection that has used up its time with many requests queues for another turn. In each turn of
the loop one queued connection is served, and every socket that has become ready since.
"""

import select
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

_SOCKETS_PER_ROUND = 256
_SOCKETS_PER_LOOK = 16  # Between two looks at the clock.
_ROUND_NS = 20_000_000  # Timers and other tasks of the loop run between two rounds.
_READABLE = select.EPOLLIN
_END = select.EPOLLRDHUP
_ONLY_LOSS = 0  # epoll always reports errors and hang-ups.


class Round(Protocol):
    """Work that begins while several sockets are read and finishes when all have been read."""

    def begin(self) -> None: ...

    def end(self) -> None: ...


class Holder(Protocol):
    """A connection whose answers are held until the round ends."""

    def release(self) -> None: ...


class ReadySockets:
    """Calls the reader of each socket that has bytes to read, an end, or an error."""

    def __init__(self, loop: "asyncio.AbstractEventLoop", round_: Round) -> None:
        self._loop = loop
        self._round = round_
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._is_round = False
        self._holders: list[Holder] = []
        self._queue: deque[Callable[[], None]] = deque()
        self._left: list[tuple[int, int]] = []  # Ready sockets that the last round did not reach.
        loop.add_reader(self._epoll.fileno(), self._serve)

    def add(self, fd: int, on_readable: Callable[[], None]) -> None:
        self._readers[fd] = on_readable
        self._epoll.register(fd, _READABLE)

    def pause(self, fd: int) -> None:
        """Call the reader only if the peer is lost, until `unpause`."""
        self._epoll.modify(fd, _ONLY_LOSS)

    def pause_until_end(self, fd: int) -> None:
        """Call the reader only if the peer is lost or sends no more, until `unpause`."""
        self._epoll.modify(fd, _END)

    def unpause(self, fd: int) -> None:
        self._epoll.modify(fd, _READABLE)

    def queue(self, take_turn: Callable[[], None]) -> None:
        """Call a function after other sockets had their turn; a socket queues once at a time."""
        if not self._queue:
            self._loop.call_soon(self._serve_queue)
        self._queue.append(take_turn)

    def remove(self, fd: int) -> None:
        """Call before the descriptor is closed: its number may be reused for another client."""
        del self._readers[fd]
        self._epoll.unregister(fd)

    def hold(self, holder: Holder) -> bool:
        """Return whether a round is open; `release` is then called when it ends."""
        if self._is_round:
            self._holders.append(holder)
        return self._is_round

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _serve(self) -> None:
        ready = self._left or self._epoll.poll(0, _SOCKETS_PER_ROUND)
        self._left = []
        reader_of = self._readers.get
        if len(ready) == 1:  # Without a round one socket costs 7 % less.
            reader_of(ready[0][0], _ignore)()
            return
        self._round.begin()
        self._is_round = True
        end_ns = perf_counter_ns() + _ROUND_NS
        try:
            while ready:
                for fd, _events in ready[:_SOCKETS_PER_LOOK]:
                    # A connection that was served before may have closed this one.
                    reader_of(fd, _ignore)()
                ready = ready[_SOCKETS_PER_LOOK:]
                if perf_counter_ns() >= end_ns:
                    # The others are still readable, so the loop calls again at once.
                    self._left = ready
                    break
        finally:
            self._is_round = False
            try:
                self._round.end()
            finally:
                self._release()

    def _release(self) -> None:
        holders, self._holders = self._holders, []
        for holder in holders:
            holder.release()

    def _serve_queue(self) -> None:
        """Serve the first; it stays in the queue meanwhile, so that `queue` schedules no call."""
        self._round.begin()
        try:
            self._queue[0]()
        finally:
            self._round.end()
            self._queue.popleft()
            if self._queue:
                self._loop.call_soon(self._serve_queue)


def _ignore() -> None:
    """Replace the reader of a socket that was closed during the round."""
