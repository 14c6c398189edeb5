"""Requests to stop a run of pipelines, by signal or command."""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from headrace.pipelines.model import Pipeline
from headrace.pipelines.running.state.folders import state_of
from headrace.runtime.signals import ending_signals


class StopRequest:
    """Reports whether the run is to end: by Ctrl-C, a signal, or `pipelines stop`.

    Signals are handled only in the main thread; the earlier handlers are restored afterwards.
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
        """Handle the signals, again after the start of a Spark session, which replaces handlers."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {
            number: signal.signal(number, lambda *_: self._ask()) for number in ending_signals()
        }

    def _ask(self) -> None:
        """Stop, and announce it; a terminal that was closed is not an error."""
        if self._asked.is_set():
            return
        self._asked.set()
        with suppress(OSError):
            os.write(2, b"\nstopping ...\n")
