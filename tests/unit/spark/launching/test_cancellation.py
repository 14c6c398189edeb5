"""Cancelled starts of Spark: the message, the ended processes, and later starts."""

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from subprocess import PIPE, Popen
from typing import Any

import pytest

from headrace.runtime.signals import ENDING
from headrace.spark.launching import cancellation
from headrace.spark.launching.cancellation import StartCancelled, cancelled_by_signals

pytest.importorskip("pyspark")

pytestmark = pytest.mark.usefixtures("heeds_hangups")

DEAF = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


@pytest.fixture
def launched() -> "Iterator[list[Popen[bytes]]]":
    """Processes that a test launches in place of a JVM; all end with the test."""
    processes: list[Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def launch(processes: "list[Popen[bytes]]", *command: str) -> "Popen[bytes]":
    """As PySpark launches a JVM."""
    from pyspark import java_gateway

    launcher: Any = java_gateway
    process: Popen[bytes] = launcher.Popen(command, stdout=PIPE)
    processes.append(process)
    return process


def interrupt(number: signal.Signals = signal.SIGINT) -> None:
    signal.raise_signal(number)
    pytest.fail("it went on")


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_start_of_spark_with_its_jvm(
    number: signal.Signals, launched: "list[Popen[bytes]]"
) -> None:
    """Ctrl-C while Spark starts is answered at once, and leaves no JVM behind."""
    messages: list[str] = []

    def start() -> None:
        with cancelled_by_signals(lambda: messages.append("stopping")):
            launch(launched, "sleep", "600")
            interrupt(number)

    with pytest.raises(StartCancelled):
        start()
    assert (messages, launched[0].returncode) == (["stopping"], -signal.SIGTERM)


def test_a_signal_during_the_launch_of_the_jvm_kills_it(
    launched: "list[Popen[bytes]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    born = Popen.__init__

    def born_into_a_signal(self: "Popen[bytes]", *arguments: Any, **settings: Any) -> None:
        born(self, *arguments, **settings)
        launched.append(self)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Popen, "__init__", born_into_a_signal)
    with pytest.raises(StartCancelled), cancelled_by_signals(lambda: None):
        launch([], "sleep", "60")
    assert launched[0].returncode == -signal.SIGTERM


def test_a_jvm_that_ignores_signals_is_killed(launched: "list[Popen[bytes]]") -> None:
    def start() -> None:
        with cancelled_by_signals(lambda: None):
            output = launch(launched, "sh", "-c", DEAF).stdout
            assert output is not None
            output.readline()
            interrupt()

    with pytest.raises(StartCancelled):
        start()
    assert launched[0].returncode == -signal.SIGKILL


def test_a_terminal_that_is_gone_does_not_keep_the_jvm_alive(
    launched: "list[Popen[bytes]]",
) -> None:
    """Closing a terminal sends SIGHUP, and later writes to the terminal fail."""

    def tell() -> None:
        raise BrokenPipeError

    def start() -> None:
        with cancelled_by_signals(tell):
            launch(launched, "sleep", "600")
            interrupt(signal.SIGHUP)

    with pytest.raises(StartCancelled):
        start()
    assert launched[0].returncode == -signal.SIGTERM


def test_a_jvm_that_was_launched_in_spite_of_the_signal_is_killed(
    launched: "list[Popen[bytes]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancellation, "_WAIT_S_MAX", 0.1)

    def start() -> None:
        with cancelled_by_signals(lambda: None):
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            launch(launched, "sleep", "600")

    with pytest.raises(StartCancelled):
        start()
    assert launched[0].returncode == -signal.SIGKILL


def test_an_interrupt_that_a_library_has_swallowed_still_counts() -> None:
    with (
        pytest.raises(StartCancelled),
        cancelled_by_signals(lambda: None),
        suppress(KeyboardInterrupt),
    ):
        signal.raise_signal(signal.SIGTERM)


def test_errors_after_an_interrupted_launch_are_no_failures_of_spark() -> None:
    def start() -> None:
        try:
            interrupt()
        finally:
            raise ConnectionError("the JVM does not answer")

    with pytest.raises(StartCancelled), cancelled_by_signals(lambda: None):
        start()


def test_a_failure_of_spark_is_raised_unchanged() -> None:
    with (
        pytest.raises(ConnectionError),
        cancelled_by_signals(lambda: pytest.fail("called")),
    ):
        raise ConnectionError("the JVM does not answer")


def test_an_impatient_user_gets_one_message() -> None:
    messages: list[str] = []

    def start() -> None:
        try:
            interrupt()
        finally:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(StartCancelled), cancelled_by_signals(lambda: messages.append("stopping")):
        start()
    assert messages == ["stopping"]


def test_a_cancelled_start_does_not_begin() -> None:
    with pytest.raises(StartCancelled), cancelled_by_signals(lambda: None, lambda: True):
        pytest.fail("it was begun")


def test_signal_handlers_are_restored_except_those_of_a_session() -> None:
    def of_session(*_: Any) -> None:
        """Spark's own, which ends its jobs."""

    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        with cancelled_by_signals(lambda: None):
            signal.signal(signal.SIGINT, of_session)
        after = {number: signal.getsignal(number) for number in ENDING}
    finally:
        signal.signal(signal.SIGINT, before[signal.SIGINT])
    assert after == {**before, signal.SIGINT: of_session}


def test_a_thread_that_cannot_take_signals_starts_spark_all_the_same() -> None:
    begun: list[bool] = []

    def start() -> None:
        with cancelled_by_signals(lambda: None):
            begun.append(True)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert begun == [True]
