"""Parse and compare schemas in threads: a large one takes a second or more.

The loop replays records while a thread reads the state, so a thread may see a mix of two states.
`steady` therefore compares the number of replayed records before and after, both in the loop. A
result or an error with a record in between is dropped (`Moved`) and never answered or written.
`Checks.look` then repeats the work on a copy of the state.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from headrace.errors import HeadraceError
from headrace.registry.deciding.candidates import Candidate
from headrace.registry.errors import TooBusy
from headrace.registry.model.state import State
from headrace.serdes.schemas import SchemaType

THREADS: Final = 2
"""A small check does not wait for a large one; more threads would slow down the loop."""
WAITING_MAX: Final = 64
LIGHT_MAX: Final = 16 << 10
"""Characters of schemas that are parsed within milliseconds."""

T = TypeVar("T")


class Moved(HeadraceError):
    """Records were replayed while the state was read."""


class Checks:
    """A few threads for reading a state, and a bounded queue."""

    def __init__(self, threads: int = THREADS, waiting_max: int = WAITING_MAX) -> None:
        self._executor = ThreadPoolExecutor(threads, "registry-checks")
        self._places = threading.BoundedSemaphore(threads + waiting_max)

    async def look(self, state: State, look: Callable[[State], T]) -> T:
        """Return the result of a function on the state, or on a copy if the state changes."""
        try:
            return await steady(state, lambda: self._run(lambda: look(state)))
        except Moved:
            copy = state.copy()
            return await self._run(lambda: look(copy))

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _run(self, call: Callable[[], T]) -> T:
        if not self._places.acquire(blocking=False):
            raise TooBusy("too many schemas wait to be compared; try again")
        future = self._executor.submit(call)
        # The request may end before its thread does, which holds the place until then.
        future.add_done_callback(lambda _: self._places.release())
        return await asyncio.wrap_future(future)


async def steady(state: State, attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of an attempt; raise `Moved` if records were replayed meanwhile."""
    before = state.changes
    try:
        result = await attempt()
    except Exception as error:
        if state.changes != before:
            raise Moved("the state has changed meanwhile") from error
        raise
    if state.changes != before:
        raise Moved("the state has changed meanwhile")
    return result


def is_light(state: State, candidate: Candidate) -> bool:
    """Return whether searching a candidate in its subject is fast enough for the event loop.

    Protobuf is never: a process compiles each text, even a short one.
    """
    if candidate.references or candidate.type == SchemaType.PROTOBUF:
        return False
    size = len(candidate.text)
    for subject in state.spellings(candidate.subject):
        for entry in state.subjects.get(subject, {}).values():
            size += len(entry.value.schema)
            if size > LIGHT_MAX or entry.value.references:
                return False
    return size <= LIGHT_MAX
