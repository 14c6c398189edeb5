"""Coroutines that are run without a task as far as they get."""

import asyncio

import pytest

from headrace.errors import InvalidRequest, NotCoordinator
from headrace.runtime.eager import finish_each, finish_now


async def quick(value: int) -> int:
    if value < 0:
        raise ValueError(value)
    return value


async def slow(gates: list[asyncio.Future[int]]) -> int:
    total = 0
    for gate in gates:
        try:
            total += await gate
        except ZeroDivisionError:
            total += 100
    return total


def test_a_coroutine_that_never_waits_is_finished_at_once() -> None:
    assert finish_now(quick(3)) == 3


def test_an_error_before_the_first_wait_is_raised_at_once() -> None:
    with pytest.raises(ValueError, match="-1"):
        finish_now(quick(-1))


async def test_a_coroutine_that_waits_is_returned_to_await() -> None:
    gates = [asyncio.get_running_loop().create_future() for _ in range(3)]
    rest = finish_now(slow(gates))
    assert asyncio.iscoroutine(rest)
    task = asyncio.ensure_future(rest)
    gates[0].set_result(1)
    await asyncio.sleep(0)
    gates[1].set_exception(ZeroDivisionError())
    gates[2].set_result(2)
    assert await task == 103


async def test_work_may_let_others_go_first() -> None:
    async def polite() -> int:
        for _ in range(3):
            await asyncio.sleep(0)
        return 3

    rest = finish_now(polite())
    assert asyncio.iscoroutine(rest)
    assert await rest == 3


async def test_a_cancellation_reaches_the_work() -> None:
    gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(finish_now(slow([gate])))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.cancelled()


async def test_several_may_wait_for_one_thing_before_any_task_runs() -> None:
    """Producers that find no ids left come in one turn of the loop, and wait for one block."""
    gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    rests = [finish_now(slow([gate])) for _ in range(3)]
    waiting = asyncio.gather(*rests)  # type: ignore[arg-type]
    await asyncio.sleep(0)
    late = finish_now(slow([gate]))
    gate.set_result(7)
    assert await waiting == [7, 7, 7]
    assert await late == 7  # type: ignore[misc]


async def now(value: int) -> int:
    return value


async def soon(value: int, began: list[int]) -> int:
    began.append(value)
    await asyncio.sleep(0)
    if value < 0:
        raise NotCoordinator("moved")
    return value


async def refused() -> int:
    raise InvalidRequest("no")


async def test_outcomes_are_in_the_order_of_the_operations() -> None:
    began: list[int] = []
    works = [soon(1, began), now(2), refused(), soon(-3, began), soon(4, began)]
    outcomes = await finish_each(works)
    assert [one if isinstance(one, int) else type(one) for one in outcomes] == [
        1,
        2,
        InvalidRequest,
        NotCoordinator,
        4,
    ]
    assert began == [1, -3, 4]


async def test_operations_that_never_wait_need_no_turn_of_the_loop() -> None:
    with pytest.raises(StopIteration) as done:
        finish_each([now(1), now(2)]).send(None)
    assert done.value.value == [1, 2]


async def broken() -> int:
    await asyncio.sleep(0)
    return 1 // 0


async def test_other_errors_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await finish_each([now(1), broken()])
