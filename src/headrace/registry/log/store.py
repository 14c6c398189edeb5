"""The state and the log that it is read from: loads it, keeps it up to date, knows how far it is.

The event loop owns the state. Records come from the reader's thread and are replayed in the loop.
"""

import asyncio
import heapq
import itertools
import logging
import threading
from collections.abc import Callable

from headrace.errors import HeadraceError
from headrace.registry.errors import StoreTimedOut
from headrace.registry.log.reader import LogReader, Read
from headrace.registry.model.records import decoded
from headrace.registry.model.state import State
from headrace.serdes.schema_records import UnknownRecord

_log = logging.getLogger(__name__)

_TAKE_IN_S_MAX = 60.0


class Store:
    """What was written so far, as this instance has seen it."""

    def __init__(self, state: State, reader: LogReader) -> None:
        self.state = state
        self.skipped = 0
        """Records that could not be read, or are of a kind that there is no use for."""
        self.next_offset = 0
        self._reader = reader
        self._is_broken = False
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    def load(self) -> None:
        """Replay all that is there; nobody else looks at the state yet."""
        self.next_offset = self._reader.load(self._replay)

    def follow(self, on_failure: Callable[[Exception], None]) -> None:
        """Go on from there, until `close`, or until something cannot be taken in."""
        loop = asyncio.get_running_loop()

        def take(read: Read) -> None:
            taken = threading.Event()
            loop.call_soon_threadsafe(self._take_in, read, taken, on_failure)
            taken.wait(_TAKE_IN_S_MAX)

        def fail(error: HeadraceError) -> None:
            loop.call_soon_threadsafe(on_failure, error)

        self._reader.follow(take, fail)

    def close(self) -> None:
        self._reader.stop()

    async def reached(self, offset: int, seconds_max: float) -> None:
        """Wait until the record at an offset was replayed."""
        if offset < self.next_offset:
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (offset, next(self._numbers), future))
        try:
            async with asyncio.timeout(seconds_max):
                await future
        except TimeoutError as error:
            raise StoreTimedOut(
                f"what was written at offset {offset} was not read back within {seconds_max:g} s"
            ) from error

    def _take_in(
        self, read: Read, taken: threading.Event, on_failure: Callable[[Exception], None]
    ) -> None:
        """Replay what was read, unless something before it could not be: that leaves a gap."""
        try:
            if not self._is_broken:
                self._replay(read)
        except Exception as error:
            self._is_broken = True
            on_failure(error)
        finally:
            taken.set()
        while self._waiting and self._waiting[0][0] < self.next_offset:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)

    def _replay(self, read: Read) -> None:
        for record in read.records:
            try:
                self.state.replay(decoded(record.key, record.value), record.timestamp)
            except UnknownRecord as error:
                self.skipped += 1
                _log.info("the record at offset %d is skipped: %s", record.offset, error)
        self.next_offset = read.next_offset
