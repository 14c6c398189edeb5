"""An event loop whose time jumps to the next timer, so that minutes pass in milliseconds."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """Waits for nothing: the time that would have been waited passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1.0
        self.on_jump: Callable[[float], None] = lambda now_s: None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("all tasks wait, and no timer is set")
        if not ready and timeout:
            self.now_s += timeout
            self.on_jump(self.now_s)
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop without real time, for the tasks of one simulation."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def on_jump(self, callback: Callable[[float], None]) -> None:
        """Call back with the time after each jump."""
        self._jumping.on_jump = callback


def run_jumping(main: Callable[[JumpingLoop], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on a loop of its own, and cancel what it leaves behind."""
    loop = JumpingLoop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main(loop))
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        asyncio.set_event_loop(None)
        loop.close()
