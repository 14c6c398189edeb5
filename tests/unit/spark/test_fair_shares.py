"""Which pool has to give a slot, and when."""

from headrace.spark.fair_shares import PATIENCE_LOOKS, Fairness, Share

STARVED = Share("streams", kept=1, running=0, has_waiting=True)
IDLE = Share("urgent", kept=1, running=0, has_waiting=False)
RICH = Share("batch", kept=1, running=2, has_waiting=False)


def after_looks(*shares: Share) -> str | None:
    fairness = Fairness()
    return [fairness.giver(shares) for _ in range(PATIENCE_LOOKS)][-1]


def test_a_pool_that_stays_without_a_slot_gets_one_of_the_pool_with_most_to_spare() -> None:
    """ARC-5"""
    richer = Share("patient", kept=0, running=3, has_waiting=True)
    assert after_looks(STARVED, IDLE, RICH, richer) == "patient"


def test_a_task_that_is_about_to_end_is_given_the_time() -> None:
    assert Fairness().giver([STARVED, RICH]) is None


def test_who_was_served_in_between_begins_to_wait_anew() -> None:
    fairness = Fairness()
    fairness.giver([STARVED, RICH])
    fairness.giver([IDLE, RICH])
    assert fairness.giver([STARVED, RICH]) is None


def test_nobody_gives_who_has_no_more_than_the_slot_that_is_kept_for_it() -> None:
    assert after_looks(STARVED, Share("batch", kept=1, running=1, has_waiting=True)) is None


def test_one_slot_is_asked_for_at_a_time() -> None:
    fairness = Fairness()
    given = [fairness.giver([STARVED, RICH]) for _ in range(2 * PATIENCE_LOOKS)]
    assert given == [None, "batch"] * 2


def test_pools_that_nobody_waits_in_are_left_alone() -> None:
    assert after_looks(IDLE, RICH) is None
