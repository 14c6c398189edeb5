"""Requests that wait: tried once per turn when something changed, and once more at the end."""

import asyncio
from collections.abc import Iterator

import pytest

from headrace.replication.delayed import Attempt, Delayed, Waiter, WakeUps, until


class Thing:
    """Something that changes."""

    def __init__(self) -> None:
        self.waiters: dict[Waiter, None] = {}


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def turn(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(asyncio.sleep(0))


class Requester:
    """A connection that notes when it is closed."""

    def __init__(self) -> None:
        self.peer = "127.0.0.1:4711"
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def failing(*, is_last: bool) -> bool:
    raise OSError("the disk is gone")


def counting(answers: list[bool]) -> tuple[list[bool], Attempt]:
    """An attempt that records its calls and returns a configured answer."""
    calls: list[bool] = []

    def attempt(*, is_last: bool) -> bool:
        calls.append(is_last)
        return answers.pop(0)

    return calls, attempt


def test_a_change_tries_each_waiter_once_per_turn(loop: asyncio.AbstractEventLoop) -> None:
    first, second = Thing(), Thing()
    calls, attempt = counting([True])
    Delayed(attempt, Requester()).park(loop, (first, second), 60)
    wake_ups = WakeUps(loop)
    for thing in (first, second, first):
        wake_ups.changed(thing)
    turn(loop)
    assert calls == [False]
    assert [dict(thing.waiters) for thing in (first, second)] == [{}, {}]


def test_a_failed_attempt_keeps_waiting(loop: asyncio.AbstractEventLoop) -> None:
    thing = Thing()
    calls, attempt = counting([False, True])
    Delayed(attempt, Requester()).park(loop, (thing,), 60)
    wake_ups = WakeUps(loop)
    wake_ups.changed(thing)
    turn(loop)
    assert len(thing.waiters) == 1
    wake_ups.changed(thing)
    turn(loop)
    assert calls == [False, False]
    assert not thing.waiters


def test_the_end_of_the_time_is_the_last_attempt(loop: asyncio.AbstractEventLoop) -> None:
    thing = Thing()
    calls, attempt = counting([True])
    Delayed(attempt, Requester()).park(loop, (thing,), 0)
    turn(loop)
    turn(loop)
    assert calls == [True]
    assert not thing.waiters


def test_an_abandoned_request_is_never_tried(loop: asyncio.AbstractEventLoop) -> None:
    thing = Thing()
    calls, attempt = counting([])
    delayed = Delayed(attempt, Requester())
    delayed.park(loop, (thing,), 0)
    wake_ups = WakeUps(loop)
    wake_ups.changed(thing)
    delayed.abandon()
    turn(loop)
    turn(loop)
    assert calls == []
    assert not thing.waiters


def test_an_attempt_that_fails_closes_its_connection_only(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    thing = Thing()
    first, second = Requester(), Requester()
    Delayed(failing, first).park(loop, (thing,), 60)
    calls, attempt = counting([True])
    Delayed(attempt, second).park(loop, (thing,), 60)
    wake_ups = WakeUps(loop)
    wake_ups.changed(thing)
    turn(loop)
    assert (first.is_closed, second.is_closed, calls) == (True, False, [False])
    assert not thing.waiters
    assert "the disk is gone" in caplog.text
    assert vars(caplog.records[0])["connection"] == first.peer


def test_a_last_attempt_that_fails_ends_its_connection(loop: asyncio.AbstractEventLoop) -> None:
    late = Requester()
    Delayed(failing, late).park(loop, (Thing(),), 0)
    turn(loop)
    turn(loop)
    assert late.is_closed


async def test_a_task_waits_until_its_condition_holds() -> None:
    thing = Thing()
    wake_ups = WakeUps(asyncio.get_running_loop())
    done: list[int] = []
    waiting = asyncio.create_task(until(lambda: len(done) == 2, (thing,), 60))
    for number in range(2):
        await asyncio.sleep(0)
        assert not waiting.done()
        done.append(number)
        wake_ups.changed(thing)
    assert await waiting
    assert thing.waiters == {}


async def test_a_task_stops_waiting_when_the_time_is_up() -> None:
    thing = Thing()
    assert not await until(lambda: False, (thing,), 0.001)
    assert thing.waiters == {}


async def test_a_condition_that_holds_is_not_waited_for() -> None:
    assert await until(lambda: True, (), 0)
