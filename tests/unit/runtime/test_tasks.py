"""Background work: rounds that survive an error, threads off the loop, an end that waits."""

import asyncio
import logging
import threading

import pytest

from headrace.runtime.tasks import Tasks


async def test_rounds_continue_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks(asyncio.get_running_loop())
    done = asyncio.Event()
    rounds = 0

    def work() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise OSError("disk gone")
        done.set()

    tasks.every(lambda: 1, work, "retention")
    await asyncio.wait_for(done.wait(), 5)
    await tasks.stop()
    assert [vars(one)["task"] for one in caplog.records] == ["retention"]
    assert "disk gone" in caplog.text


async def test_an_action_may_be_awaited_and_start_at_once() -> None:
    tasks = Tasks(asyncio.get_running_loop())
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    tasks.every(lambda: 1 << 63, work, "checkpoints", first_ms=0)
    await asyncio.wait_for(done.wait(), 5)
    await tasks.stop()


async def test_threads_run_off_the_loop_and_are_waited_for() -> None:
    tasks = Tasks(asyncio.get_running_loop())
    assert await tasks.in_thread(threading.get_ident) != threading.get_ident()
    release = threading.Event()
    late = tasks.in_thread(release.wait, timeout=5)
    release.set()
    await tasks.stop()
    assert await late


async def test_a_task_that_dies_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks(asyncio.get_running_loop())

    async def die() -> None:
        raise RuntimeError("no more")

    task = tasks.start(die(), "watcher")
    with caplog.at_level(logging.ERROR):
        await asyncio.wait([task])
        await asyncio.sleep(0)
    assert vars(caplog.records[0])["task"] == "watcher"


async def test_stopping_cancels_running_tasks() -> None:
    tasks = Tasks(asyncio.get_running_loop())
    task = tasks.start(asyncio.sleep(1000), "sleeper")
    await tasks.stop()
    assert task.cancelled()
