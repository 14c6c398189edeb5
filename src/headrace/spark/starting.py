"""A start of Spark that can be called off: at once, and with all that was begun.

PySpark launches a JVM and waits for it, then for the session, seconds in which a signal is heard
only when they are over. So whoever starts Spark takes the signals for as long as that lasts.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from subprocess import Popen, TimeoutExpired
from typing import Any

from headrace.errors import HeadraceError
from headrace.runtime.signals import heeded

_JVM_S_MAX = 1.0
"""How long a JVM may take to remove its own files; nothing else was begun."""
_WAIT_S_MAX = 2 * _JVM_S_MAX
"""By then it was killed, unless it was launched after the start was called off."""


class StartCalledOff(HeadraceError):
    """Someone has asked for an end before Spark had started."""

    exit_code = 130  # As after Ctrl-C.

    def __init__(self) -> None:
        super().__init__("stopped as asked, before Spark had started: nothing was read or written")


@contextmanager
def ended_by_signals(
    tell: Callable[[], object], is_stopped: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """While Spark is started: let a signal end that, telling so at once, by `StartCalledOff`.

    Only the main thread can be interrupted. `is_stopped` is whether someone has asked before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    start = _Start(tell)
    try:
        with start.signals_taken():
            if is_stopped():
                raise StartCalledOff
            with _launches_noted(start):
                yield
    except KeyboardInterrupt:
        start.call_off()
    except Exception:
        if not start.is_called_off:
            raise  # Else it has failed because its JVM was ended.
    if start.is_called_off:
        start.clear_up()
        raise StartCalledOff


class _Start:
    """What was launched for a session, and whether that is still wanted."""

    def __init__(self, tell: Callable[[], object]) -> None:
        self.launched: list[Popen[bytes]] = []
        self.is_called_off = False
        self._is_launching = False
        self._is_asked = False
        self._tell = tell

    @contextmanager
    def signals_taken(self) -> Iterator[None]:
        """A session takes Ctrl-C for itself when it is there, and keeps it."""
        previous = {number: signal.signal(number, self._on_signal) for number in heeded()}
        try:
            yield
        finally:
            for number, handler in previous.items():
                if signal.getsignal(number) == self._on_signal:
                    signal.signal(number, handler)

    def _on_signal(self, *_: object) -> None:
        """Raise in whatever waits just now; a second signal does not disturb what follows."""
        if self._is_launching:
            self._is_asked = True
        elif not self.is_called_off:
            self.call_off()
            raise KeyboardInterrupt

    @contextmanager
    def launching(self) -> Iterator[None]:
        """Heed signals when a process is noted: between its birth and that nobody would end it."""
        self._is_launching = True
        try:
            yield
        finally:
            self._is_launching = False
            if self._is_asked:
                self._on_signal()

    def call_off(self) -> None:
        """End the JVM before PySpark asks it for anything on its way out.

        Told after that: whoever closes a terminal ends us too, and there is nobody to tell.
        """
        if self.is_called_off:
            return
        self.is_called_off = True
        for process in self.launched:
            process.terminate()
            killing = threading.Timer(_JVM_S_MAX, process.kill)
            killing.daemon = True
            killing.start()
        with suppress(OSError):
            self._tell()

    def clear_up(self) -> None:
        """See the end of the JVM, and let a later start in this process launch another."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        for process in self.launched:
            try:
                process.wait(_WAIT_S_MAX)
            except TimeoutExpired:
                process.kill()
                process.wait()
        gateway = SparkContext._gateway
        if gateway is not None and vars(gateway).get("proc") in self.launched:
            SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
            SparkSession._instantiatedSession = None


@contextmanager
def _launches_noted(start: _Start) -> Iterator[None]:
    """Note each process that PySpark launches; it tells of a JVM only when that is ready."""
    from pyspark import java_gateway

    class Noted(Popen[bytes]):
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            with start.launching():
                super().__init__(*arguments, **settings)
                start.launched.append(self)

    launcher: Any = java_gateway
    usual, launcher.Popen = launcher.Popen, Noted
    try:
        yield
    finally:
        launcher.Popen = usual
