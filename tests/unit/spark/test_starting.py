"""Starts of Spark that are called off: what is told, what is ended, and what comes after."""

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from subprocess import PIPE, Popen
from typing import Any

import pytest

from headrace.runtime.signals import ENDING
from headrace.spark import starting
from headrace.spark.starting import StartCalledOff, ended_by_signals

pytest.importorskip("pyspark")

pytestmark = pytest.mark.usefixtures("heeds_hangups")

DEAF = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


@pytest.fixture
def launched() -> "Iterator[list[Popen[bytes]]]":
    """What a test has launched in a JVM's place; none outlives it."""
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
    told: list[str] = []

    def start() -> None:
        with ended_by_signals(lambda: told.append("stopping")):
            launch(launched, "sleep", "600")
            interrupt(number)

    with pytest.raises(StartCalledOff):
        start()
    assert (told, launched[0].returncode) == (["stopping"], -signal.SIGTERM)


def test_a_signal_that_meets_the_birth_of_the_jvm_ends_that_too(
    launched: "list[Popen[bytes]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    born = Popen.__init__

    def born_into_a_signal(self: "Popen[bytes]", *arguments: Any, **settings: Any) -> None:
        born(self, *arguments, **settings)
        launched.append(self)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Popen, "__init__", born_into_a_signal)
    with pytest.raises(StartCalledOff), ended_by_signals(lambda: None):
        launch([], "sleep", "60")
    assert launched[0].returncode == -signal.SIGTERM


def test_a_jvm_that_does_not_end_by_itself_is_killed(launched: "list[Popen[bytes]]") -> None:
    def start() -> None:
        with ended_by_signals(lambda: None):
            output = launch(launched, "sh", "-c", DEAF).stdout
            assert output is not None
            output.readline()
            interrupt()

    with pytest.raises(StartCalledOff):
        start()
    assert launched[0].returncode == -signal.SIGKILL


def test_a_terminal_that_is_gone_does_not_keep_the_jvm_alive(
    launched: "list[Popen[bytes]]",
) -> None:
    """Who closes a terminal sends SIGHUP, and nobody reads what is written to it."""

    def tell() -> None:
        raise BrokenPipeError

    def start() -> None:
        with ended_by_signals(tell):
            launch(launched, "sleep", "600")
            interrupt(signal.SIGHUP)

    with pytest.raises(StartCalledOff):
        start()
    assert launched[0].returncode == -signal.SIGTERM


def test_a_jvm_that_was_launched_in_spite_of_the_signal_is_killed(
    launched: "list[Popen[bytes]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_WAIT_S_MAX", 0.1)

    def start() -> None:
        with ended_by_signals(lambda: None):
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            launch(launched, "sleep", "600")

    with pytest.raises(StartCalledOff):
        start()
    assert launched[0].returncode == -signal.SIGKILL


def test_an_interrupt_that_a_library_has_swallowed_still_counts() -> None:
    with pytest.raises(StartCalledOff), ended_by_signals(lambda: None), suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_what_fails_because_its_jvm_was_ended_is_no_failure_of_spark() -> None:
    def start() -> None:
        try:
            interrupt()
        finally:
            raise ConnectionError("the JVM does not answer")

    with pytest.raises(StartCalledOff), ended_by_signals(lambda: None):
        start()


def test_a_failure_of_spark_stays_what_it_is() -> None:
    with pytest.raises(ConnectionError), ended_by_signals(lambda: pytest.fail("was told")):
        raise ConnectionError("the JVM does not answer")


def test_an_impatient_user_is_told_once() -> None:
    told: list[str] = []

    def start() -> None:
        try:
            interrupt()
        finally:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(StartCalledOff), ended_by_signals(lambda: told.append("stopping")):
        start()
    assert told == ["stopping"]


def test_nothing_is_started_that_someone_has_called_off_before() -> None:
    with pytest.raises(StartCalledOff), ended_by_signals(lambda: None, lambda: True):
        pytest.fail("it was begun")


def test_signals_are_given_back_but_for_what_a_session_has_taken() -> None:
    def of_session(*_: Any) -> None:
        """Spark's own, which ends its jobs."""

    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        with ended_by_signals(lambda: None):
            signal.signal(signal.SIGINT, of_session)
        after = {number: signal.getsignal(number) for number in ENDING}
    finally:
        signal.signal(signal.SIGINT, before[signal.SIGINT])
    assert after == {**before, signal.SIGINT: of_session}


def test_a_thread_that_cannot_take_signals_starts_spark_all_the_same() -> None:
    begun: list[bool] = []

    def start() -> None:
        with ended_by_signals(lambda: None):
            begun.append(True)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert begun == [True]
