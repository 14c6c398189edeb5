"""An event loop whose clock jumps to the next timer, for tests of timers without waiting."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_TIME_MAX_S = 3600.0
_TURNS_AT_ONE_TIME_MAX = 200_000
START_MS = 1_800_000_000_000


class _Jumping(selectors.DefaultSelector):
    """Never blocks: time passes at once if no file is ready."""

    now_s = 0.0
    _turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        self._turns += 1
        assert self._turns < _TURNS_AT_ONE_TIME_MAX, "the code under test runs in a circle"
        if not ready:
            assert timeout is not None, "the test waits for something that never happens"
            self.now_s += timeout
            self._turns = self._turns if not timeout else 0
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


class LoopClock:
    """The clock of the running loop."""

    def now_ms(self) -> int:
        return START_MS + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)


def in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; one that waits for a virtual hour fails."""

    async def bounded() -> T:
        async with asyncio.timeout(_TIME_MAX_S):
            return await work

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(bounded())
