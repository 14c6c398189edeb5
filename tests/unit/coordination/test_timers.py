"""Timers: each runs out once, at its last time, in order."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.coordination.timers import TimerQueue

operations = st.lists(
    st.tuples(st.sampled_from(("set", "cancel", "wait")), st.sampled_from("abc"), st.integers(0, 9))
)


@given(operations)
def test_timers_run_out_at_the_time_that_was_set_last(
    steps: list[tuple[str, str, int]],
) -> None:
    timers: TimerQueue[str] = TimerQueue()
    expected: dict[str, int] = {}
    now = 0
    for what, key, number in steps:
        if what == "set":
            timers.set(key, now + number)
            expected[key] = now + number
        elif what == "cancel":
            timers.cancel(key)
            expected.pop(key, None)
        else:
            now += number
            due = {one for one, at in expected.items() if at <= now}
            assert set(timers.pop_due(now)) == due
            expected = {one: at for one, at in expected.items() if one not in due}
        assert len(timers) == len(expected)
        if expected:
            assert timers.next_ms is not None
            assert timers.next_ms <= min(expected.values())


def test_the_earliest_is_first() -> None:
    timers: TimerQueue[str] = TimerQueue()
    timers.set("late", 30)
    timers.set("early", 20)
    timers.set("late", 10)
    assert timers.pop_due(50) == ["late", "early"]
    assert timers.next_ms is None


def test_a_postponed_timer_takes_no_further_memory() -> None:
    timers: TimerQueue[str] = TimerQueue()
    for at_ms in range(1000):
        timers.set("session", at_ms)
    assert len(timers._heap) == 1
