"""How a run of pipelines is asked to end, and how it takes the signals that ask for it."""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from headrace.pipelines.model import Pipeline
from headrace.pipelines.running.state import state_of
from headrace.runtime.signals import heeded


class StopRequest:
    """Whether someone wants the run to end: by Ctrl-C, a signal, or `pipelines stop`.

    Signals are taken only where they can be, in the main thread, and given back afterwards.
    """

    def __init__(
        self, pipelines: Sequence[Pipeline], is_stopped: Callable[[], bool] | None
    ) -> None:
        self._states = [state_of(pipeline) for pipeline in pipelines]
        self._is_stopped = is_stopped
        self._asked = threading.Event()
        self._previous: dict[int, Any] = {}

    def __call__(self) -> bool:
        return (
            self._asked.is_set()
            or any(state.is_asked_to_stop() for state in self._states)
            or (self._is_stopped is not None and self._is_stopped())
        )

    def __enter__(self) -> Self:
        self._previous = self.take()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def take(self) -> dict[int, Any]:
        """Take the signals, again after someone else did: a Spark session does when it starts."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, lambda *_: self._ask()) for number in heeded()}

    def _ask(self) -> None:
        """Stop, and then say so: a terminal that was closed has nobody to tell, and is no error."""
        if self._asked.is_set():
            return
        self._asked.set()
        with suppress(OSError):
            os.write(2, b"\nstopping ...\n")
