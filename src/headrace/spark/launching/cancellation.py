"""Cancelling the start of Spark by a signal.

PySpark launches a JVM and waits for it and for the session, and signals would be handled only
afterwards, seconds later. So signals are handled here during a start, and end the JVM at once.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from subprocess import Popen, TimeoutExpired
from typing import Any

from headrace.errors import HeadraceError
from headrace.runtime.signals import ending_signals

_JVM_S_MAX = 1.0
"""The time for a JVM to remove its own files before it is killed."""
_WAIT_S_MAX = 2 * _JVM_S_MAX
"""Beyond the kill, for a JVM that was launched after the cancellation."""


class StartCancelled(HeadraceError):
    """A signal ended the start of Spark."""

    exit_code = 130  # As after Ctrl-C.

    def __init__(self) -> None:
        super().__init__("stopped before Spark had started: nothing was read or written")


@contextmanager
def cancelled_by_signals(
    on_cancel: Callable[[], object], is_stopped: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Let a signal cancel the start of Spark in this context, which raises `StartCancelled`.

    Only the main thread can be interrupted. `on_cancel` is called at the signal; `is_stopped`
    returns whether a stop was requested before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    start = _Start(on_cancel)
    try:
        with start.signals_taken():
            if is_stopped():
                raise StartCancelled
            with _launches_recorded(start):
                yield
    except KeyboardInterrupt:
        start.cancel()
    except Exception:
        if not start.is_cancelled:
            raise  # After a cancellation, the start fails because its JVM was ended.
    if start.is_cancelled:
        start.clean_up()
        raise StartCancelled


class _Start:
    """The processes launched for a session, and the state of its cancellation."""

    def __init__(self, on_cancel: Callable[[], object]) -> None:
        self.launched: list[Popen[bytes]] = []
        self.is_cancelled = False
        self._is_launching = False
        self._is_signalled = False
        self._on_cancel = on_cancel

    @contextmanager
    def signals_taken(self) -> Iterator[None]:
        """Handle the signals; a started session installs a handler of Ctrl-C that stays."""
        previous = {number: signal.signal(number, self._on_signal) for number in ending_signals()}
        try:
            yield
        finally:
            for number, handler in previous.items():
                if signal.getsignal(number) == self._on_signal:
                    signal.signal(number, handler)

    def _on_signal(self, *_: object) -> None:
        """Cancel and interrupt the main thread; further signals are ignored."""
        if self._is_launching:
            self._is_signalled = True
        elif not self.is_cancelled:
            self.cancel()
            raise KeyboardInterrupt

    @contextmanager
    def launching(self) -> Iterator[None]:
        """Delay signals until a launched process is recorded, so that it is ended too."""
        self._is_launching = True
        try:
            yield
        finally:
            self._is_launching = False
            if self._is_signalled:
                self._on_signal()

    def cancel(self) -> None:
        """End the JVM, before PySpark sends it further requests.

        `on_cancel` comes last, because it may fail where a closed terminal sent the signal.
        """
        if self.is_cancelled:
            return
        self.is_cancelled = True
        for process in self.launched:
            process.terminate()
            killing = threading.Timer(_JVM_S_MAX, process.kill)
            killing.daemon = True
            killing.start()
        with suppress(OSError):
            self._on_cancel()

    def clean_up(self) -> None:
        """Wait for the JVM's end, and let a later start in this process launch another."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        for process in self.launched:
            try:
                process.wait(_WAIT_S_MAX)
            except TimeoutExpired:
                process.kill()
                process.wait()
        # PySpark has no public way to drop a JVM that was ended before its session was complete.
        gateway = SparkContext._gateway
        if gateway is not None and vars(gateway).get("proc") in self.launched:
            SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
            SparkSession._instantiatedSession = None


@contextmanager
def _launches_recorded(start: _Start) -> Iterator[None]:
    """Record each process that PySpark launches, which returns a JVM only when that is ready."""
    from pyspark import java_gateway

    class Recorded(Popen[bytes]):
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            with start.launching():
                super().__init__(*arguments, **settings)
                start.launched.append(self)

    launcher: Any = java_gateway
    usual, launcher.Popen = launcher.Popen, Recorded
    try:
        yield
    finally:
        launcher.Popen = usual
