"""The time of a coroutine: its steps, without its waits."""

import asyncio
from collections.abc import Coroutine
from time import perf_counter_ns

import pytest

from headrace.runtime.stopwatch import Stopwatch


async def run(watch: Stopwatch[int]) -> int:
    return await watch


async def test_the_result_is_that_of_the_coroutine() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    watch = Stopwatch(work())
    assert await asyncio.create_task(run(watch)) == 7
    assert watch.spent_ns > 0


async def test_waits_do_not_count() -> None:
    async def work() -> int:
        await asyncio.sleep(0.02)
        return 7

    began = perf_counter_ns()
    watch = Stopwatch(work())
    await asyncio.create_task(run(watch))
    assert watch.spent_ns < perf_counter_ns() - began - 10_000_000


async def test_errors_and_cancellations_reach_the_coroutine() -> None:
    seen: list[str] = []

    async def work(wait: Coroutine[None, None, None]) -> int:
        try:
            await wait
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Stopwatch(work(asyncio.sleep(0)))
    task = asyncio.create_task(run(Stopwatch(work(asyncio.sleep(60)))))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]
