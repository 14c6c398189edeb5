"""The state of a registry, loaded from its log and kept up to date.

The event loop owns the state. The reader's thread passes records on; the loop replays them.
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

_REPLAY_S_MAX = 60.0


class Store:
    """The records written so far, as this instance has read them."""

    def __init__(self, state: State, reader: LogReader) -> None:
        self.state = state
        self.skipped = 0
        """Records that are unreadable or of an unknown kind."""
        self.next_offset = 0
        self._reader = reader
        self._is_broken = False
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    def load(self) -> None:
        """Replay all present records, before the state is in use."""
        self.next_offset = self._reader.load(self._replay)

    def follow(self, on_failure: Callable[[Exception], None]) -> None:
        """Replay further records until `close`, or until one fails."""
        loop = asyncio.get_running_loop()

        def take(read: Read) -> None:
            replayed = threading.Event()
            loop.call_soon_threadsafe(self._replay_and_wake, read, replayed, on_failure)
            replayed.wait(_REPLAY_S_MAX)

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
                f"the record at offset {offset} was not read back within {seconds_max:g} s"
            ) from error

    def _replay_and_wake(
        self, read: Read, replayed: threading.Event, on_failure: Callable[[Exception], None]
    ) -> None:
        """Replay records, unless an earlier replay failed: the state would have a gap."""
        try:
            if not self._is_broken:
                self._replay(read)
        except Exception as error:
            self._is_broken = True
            on_failure(error)
        finally:
            replayed.set()
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
                fields = {"offset": record.offset, "error": str(error)}
                _log.info("unknown record skipped", extra=fields)
        self.next_offset = read.next_offset
