"""An event loop in a thread of its own."""

import asyncio
import threading

import pytest

from headrace.runtime.loop_thread import LoopThread


async def test_coroutines_run_on_the_other_loop() -> None:
    thread = LoopThread("other")

    async def work() -> tuple[bool, str]:
        return asyncio.get_running_loop() is thread.loop, threading.current_thread().name

    assert await thread.run(work()) == (True, "other")
    await thread.stop()


async def test_errors_come_back() -> None:
    thread = LoopThread("other")

    async def work() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await thread.run(work())
    await thread.stop()


async def test_this_loop_goes_on_meanwhile() -> None:
    thread = LoopThread("other")
    loop, seen = asyncio.get_running_loop(), asyncio.Event()

    async def work() -> None:
        back = asyncio.run_coroutine_threadsafe(signal(), loop)
        await asyncio.wrap_future(back)

    async def signal() -> None:
        seen.set()

    await thread.run(work())
    assert seen.is_set()
    await thread.stop()


async def test_a_cancelled_caller_cancels_the_work() -> None:
    thread = LoopThread("other")
    begun, ended = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    running = asyncio.ensure_future(thread.run(work()))
    await asyncio.to_thread(begun.wait, 10)
    running.cancel()
    assert await asyncio.to_thread(ended.wait, 10)
    await thread.stop()


async def test_the_loop_ends_with_its_thread() -> None:
    thread = LoopThread("other")
    await thread.stop()
    assert thread.loop.is_closed()
    assert "other" not in {one.name for one in threading.enumerate()}
