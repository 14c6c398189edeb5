"""Which clients have sent something: one epoll of our own, behind one file of the event loop.

A reader of the loop costs a handle, a context and a callback whenever its socket is ready. Here
the loop sees one descriptor, and one callback serves all sockets that are ready. It is known when
such a round begins and when it ends, so work can be gathered over it (`produce_rounds.py`), and
answers can be held until all have been read: a client that waits is woken by its first answer,
and finds the others there when it looks, instead of being woken again for each.

A client that has sent more than it may have served in one go queues for another turn. In each turn
of the loop one of those who queue is served, and everyone who has sent something since.
"""

import select
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

_SOCKETS_PER_ROUND = 256  # Others on the loop, timers above all, get their turn in between.
_READABLE = select.EPOLLIN
_ONLY_LOSS = 0  # Errors and hang-ups are always told.


class Round(Protocol):
    """Work that is begun while several sockets are read and finished when all have been."""

    def begin(self) -> None: ...

    def end(self) -> None: ...


class Holder(Protocol):
    """Somebody whose answers are held until the round ends."""

    def release(self) -> None: ...


class ReadySockets:
    """Calls the reader of each socket that has bytes to read, or an end or an error to tell."""

    def __init__(self, loop: "asyncio.AbstractEventLoop", round_: Round) -> None:
        self._loop = loop
        self._round = round_
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._is_round = False
        self._holders: list[Holder] = []
        self._queue: deque[Callable[[], None]] = deque()
        loop.add_reader(self._epoll.fileno(), self._serve)

    def add(self, fd: int, on_readable: Callable[[], None]) -> None:
        self._readers[fd] = on_readable
        self._epoll.register(fd, _READABLE)

    def pause(self, fd: int) -> None:
        """Call its reader only if the peer is lost, until `unpause`."""
        self._epoll.modify(fd, _ONLY_LOSS)

    def unpause(self, fd: int) -> None:
        self._epoll.modify(fd, _READABLE)

    def queue(self, take_turn: Callable[[], None]) -> None:
        """Call this when others had their turn; a socket queues once at a time."""
        if not self._queue:
            self._loop.call_soon(self._serve_queue)
        self._queue.append(take_turn)

    def remove(self, fd: int) -> None:
        """Before the descriptor is closed: its number may belong to another client soon."""
        del self._readers[fd]
        self._epoll.unregister(fd)

    def hold(self, holder: Holder) -> bool:
        """Whether its answers may wait for the end of a round; then it is told of the end."""
        if self._is_round:
            self._holders.append(holder)
        return self._is_round

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _serve(self) -> None:
        ready = self._epoll.poll(0, _SOCKETS_PER_ROUND)
        reader_of = self._readers.get
        if len(ready) == 1:  # Nothing to gather: one alone is served sooner without a round.
            reader_of(ready[0][0], _nobody)()
            return
        self._round.begin()
        self._is_round = True
        try:
            for fd, _events in ready:
                # One that was served before may have had this one closed.
                reader_of(fd, _nobody)()
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
        """The first stays in the queue while it is served, so that it does not call us twice."""
        self._round.begin()
        try:
            self._queue[0]()
        finally:
            self._round.end()
            self._queue.popleft()
            if self._queue:
                self._loop.call_soon(self._serve_queue)


def _nobody() -> None:
    """Reads nothing."""
