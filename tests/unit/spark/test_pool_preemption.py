"""Which pool has to give a slot, and when."""

from headrace.spark.pool_preemption import LOOKS_BEFORE_PREEMPTION, Preemption, Share

STARVED = Share("streams", kept=1, running=0, has_waiting=True)
IDLE = Share("urgent", kept=1, running=0, has_waiting=False)
RICH = Share("batch", kept=1, running=2, has_waiting=False)


def after_looks(*shares: Share) -> str | None:
    preemption = Preemption()
    return [preemption.victim(shares) for _ in range(LOOKS_BEFORE_PREEMPTION)][-1]


def test_a_starved_pool_gets_a_slot_of_the_richest_pool() -> None:
    """ARC-5"""
    richer = Share("patient", kept=0, running=3, has_waiting=True)
    assert after_looks(STARVED, IDLE, RICH, richer) == "patient"


def test_a_task_that_is_about_to_end_is_waited_for() -> None:
    assert Preemption().victim([STARVED, RICH]) is None


def test_the_wait_of_a_pool_restarts_after_it_gets_a_slot() -> None:
    preemption = Preemption()
    preemption.victim([STARVED, RICH])
    preemption.victim([IDLE, RICH])
    assert preemption.victim([STARVED, RICH]) is None


def test_a_pool_within_its_kept_slots_is_not_preempted() -> None:
    assert after_looks(STARVED, Share("batch", kept=1, running=1, has_waiting=True)) is None


def test_one_slot_is_asked_for_at_a_time() -> None:
    preemption = Preemption()
    given = [preemption.victim([STARVED, RICH]) for _ in range(2 * LOOKS_BEFORE_PREEMPTION)]
    assert given == [None, "batch"] * 2


def test_no_task_is_preempted_for_an_idle_pool() -> None:
    assert after_looks(IDLE, RICH) is None
