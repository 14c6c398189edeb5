"""Requests that wait: tried once per turn when something changed, and once more at the end."""

import asyncio
from collections.abc import Iterator

import pytest

from headrace.broker.delayed import Attempt, Delayed, WakeUps


class Thing:
    """Something that changes."""

    def __init__(self) -> None:
        self.waiters: dict[Delayed, None] = {}


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def turn(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(asyncio.sleep(0))


def unexpected() -> None:
    raise AssertionError("no attempt has failed")


def failing(*, is_last: bool) -> bool:
    raise OSError("the disk is gone")


def counting(answers: list[bool]) -> tuple[list[bool], Attempt]:
    """An attempt that notes how it was called and answers as told."""
    calls: list[bool] = []

    def attempt(*, is_last: bool) -> bool:
        calls.append(is_last)
        return answers.pop(0)

    return calls, attempt


def test_a_change_tries_each_waiter_once_per_turn(loop: asyncio.AbstractEventLoop) -> None:
    first, second = Thing(), Thing()
    calls, attempt = counting([True])
    Delayed(attempt, unexpected).park(loop, (first, second), 60)
    wake_ups = WakeUps(loop)
    for thing in (first, second, first):
        wake_ups.changed(thing)
    turn(loop)
    assert calls == [False]
    assert [dict(thing.waiters) for thing in (first, second)] == [{}, {}]


def test_who_is_not_content_waits_on(loop: asyncio.AbstractEventLoop) -> None:
    thing = Thing()
    calls, attempt = counting([False, True])
    Delayed(attempt, unexpected).park(loop, (thing,), 60)
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
    Delayed(attempt, unexpected).park(loop, (thing,), 0)
    turn(loop)
    turn(loop)
    assert calls == [True]
    assert not thing.waiters


def test_an_abandoned_request_is_never_tried(loop: asyncio.AbstractEventLoop) -> None:
    thing = Thing()
    calls, attempt = counting([])
    delayed = Delayed(attempt, unexpected)
    delayed.park(loop, (thing,), 0)
    wake_ups = WakeUps(loop)
    wake_ups.changed(thing)
    delayed.abandon()
    turn(loop)
    turn(loop)
    assert calls == []
    assert not thing.waiters


def test_an_attempt_that_fails_ends_its_connection_and_nobody_elses_turn(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    thing = Thing()
    closed: list[str] = []
    Delayed(failing, lambda: closed.append("first")).park(loop, (thing,), 60)
    calls, attempt = counting([True])
    Delayed(attempt, unexpected).park(loop, (thing,), 60)
    wake_ups = WakeUps(loop)
    wake_ups.changed(thing)
    turn(loop)
    assert (closed, calls) == (["first"], [False])
    assert not thing.waiters
    assert "the disk is gone" in caplog.text


def test_a_last_attempt_that_fails_ends_its_connection(loop: asyncio.AbstractEventLoop) -> None:
    closed: list[str] = []
    Delayed(failing, lambda: closed.append("late")).park(loop, (Thing(),), 0)
    turn(loop)
    turn(loop)
    assert closed == ["late"]
