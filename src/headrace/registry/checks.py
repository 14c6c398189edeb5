"""Reading and comparing schemas beside the event loop: a large one takes a second or more.

The loop replays records while a thread looks at the state, so what a thread has seen may be of two
states at once. `steady` therefore counts the replayed records before and after: a result, or an
error, that a record came in between of is thrown away (`Moved`) and never answered or written.
Both counts are taken in the loop, where a replay is never half done. Whoever must not be put off
by a busy topic asks once more, of a copy of the state that nobody changes.
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
"""A small check need not wait for one large one; more threads would only take from the loop."""
WAITING_MAX: Final = 64
LIGHT_MAX: Final = 16 << 10
"""Characters of schemas that are read within milliseconds."""

T = TypeVar("T")


class Moved(HeadraceError):
    """Records came in while the state was looked at."""


class Checks:
    """A few threads for looks at a state, and a bound on the looks that wait for one."""

    def __init__(self, threads: int = THREADS, waiting_max: int = WAITING_MAX) -> None:
        self._executor = ThreadPoolExecutor(threads, "registry-checks")
        self._places = threading.BoundedSemaphore(threads + waiting_max)

    async def look(self, state: State, look: Callable[[State], T]) -> T:
        """What a function makes of the state: as it is, or of a copy if it does not keep still."""
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
        # Who has asked may be gone before the thread is done: its place is free only then.
        future.add_done_callback(lambda _: self._places.release())
        return await asyncio.wrap_future(future)


async def steady(state: State, attempt: Callable[[], Awaitable[T]]) -> T:
    """The outcome of an attempt during which no record came in, else `Moved`."""
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
    """Whether a candidate is found, or not found, in its subject without holding up the loop.

    Protobuf has a process compile each text, however short.
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
