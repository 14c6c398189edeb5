"""Cleaning in a process of its own."""

import os
import signal
from pathlib import Path

import pytest

from headrace.errors import CorruptMessage
from headrace.storage.compaction.cleaner import Cleaner
from headrace.storage.compaction.cleaning import Cleaning, CleaningGivenUp, CleaningTask
from headrace.storage.compaction.cleaning_process import CleaningProcess, clean_aside
from headrace.storage.log import Log
from tests.builders.compacted_logs import NOW, Settings, at_once, new_log, pairs_in, run, write


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = new_log(tmp_path)
    for value in "12345":
        write(log, [(f"k{number}", value) for number in range(50)])
        log.roll()
    return log


def processes(begun: list[CleaningProcess]) -> Cleaner:
    """A cleaner that works in processes only, and leaves them for inspection."""

    def begin(task: CleaningTask) -> CleaningProcess:
        begun.append(CleaningProcess(task))
        return begun[-1]

    return Cleaner(Settings(), at_once, begin=begin)


def test_cleaning_in_a_process_leaves_the_same_log_as_in_a_thread(log: Log) -> None:
    begun: list[CleaningProcess] = []
    assert run(processes(begun).run([log], NOW))
    assert pairs_in(log) == [(200 + number, f"k{number}", "5") for number in range(50)]
    assert len(begun) == 1


def test_the_process_ends_with_its_work(log: Log) -> None:
    begun: list[CleaningProcess] = []
    run(processes(begun).run([log], NOW))
    assert has_ended(begun[0])


def test_the_process_ends_when_the_broker_is_gone(log: Log) -> None:
    work = CleaningProcess(task_of(log))
    assert work.next() is not None
    del work._to_process  # As the kernel does it when the broker has died.
    assert has_ended(work)
    work.stop()


def has_ended(work: CleaningProcess) -> bool:
    """Return whether the output of the process has ended, at the latest with the process."""
    return os.read(work._from_process.fd, 1) == b""


def test_errors_in_the_process_are_raised_in_the_caller(log: Log) -> None:
    path = Path(log.segments[0].path(".log"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    work = CleaningProcess(task_of(log))
    with pytest.raises(CorruptMessage):
        work.next()
    work.stop()


def test_a_missing_file_raises_file_not_found(log: Log) -> None:
    task = task_of(log)
    os.unlink(log.segments[0].path(".log"))
    work = CleaningProcess(task)
    with pytest.raises(FileNotFoundError):
        work.next()
    work.stop()


def test_a_process_that_is_killed_only_costs_the_round(log: Log) -> None:
    work = CleaningProcess(task_of(log))
    os.kill(work._pid, signal.SIGKILL)
    with pytest.raises(CleaningGivenUp):
        work.next()
    work.stop()


def test_stopping_in_the_middle_leaves_no_process(log: Log) -> None:
    work = CleaningProcess(task_of(log))
    assert work.next() is not None
    work.stop()
    with pytest.raises(CleaningGivenUp):
        work.next()


def test_small_tasks_stay_in_a_thread(log: Log) -> None:
    assert isinstance(clean_aside(task_of(log)), Cleaning)


def task_of(log: Log) -> CleaningTask:
    tasks: list[CleaningTask] = []

    class Noted(Cleaning):
        def __init__(self, task: CleaningTask) -> None:
            tasks.append(task)
            super().__init__(task)

        def next(self) -> None:
            return None

    run(Cleaner(Settings(), at_once, begin=Noted).run([log], NOW))
    return tasks[0]
