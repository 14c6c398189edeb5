"""What becomes of tasks that a command could not do."""

import pytest

from headrace.cli.queue_trials import Fate, Tally, cannot_run, fate_of, is_last, pause_s, told


@pytest.mark.parametrize(
    ("code", "deliveries", "limit", "fate"),
    [
        (0, 5, 5, Fate.DONE),
        (65, 1, 5, Fate.REJECTED),
        (1, 1, 5, Fate.GIVEN_BACK),
        (1, 5, 5, Fate.GIVEN_UP),
        (-9, 4, 5, Fate.GIVEN_BACK),
        (1, 99, None, Fate.GIVEN_BACK),
    ],
)
def test_the_exit_code_and_the_delivery_count_decide(
    code: int, deliveries: int, limit: int | None, fate: Fate
) -> None:
    """RMQ-1"""
    assert fate_of(code, deliveries, limit) is fate


def test_a_shell_says_what_it_cannot_run() -> None:
    assert [cannot_run(code) for code in (1, 126, 127)] == [
        None,
        "is not executable",
        "is not found",
    ]


def test_pauses_grow_to_a_bound() -> None:
    pauses = [pause_s(deliveries) for deliveries in range(1, 30)]
    assert pauses[0] > 0
    assert pauses == sorted(pauses)
    assert pauses[-1] == pauses[-2] <= 10


def test_words_tell_how_many_tries_are_left_and_were_made() -> None:
    assert told(1, Fate.GIVEN_BACK, 2, 5) == "exit code 1, given back (try 2 of 5)"
    assert told(1, Fate.GIVEN_UP, 5, 5) == "exit code 1, given up after 5 tries"
    assert told(65, Fate.REJECTED, 1, 5) == "exit code 65, rejected"


def test_the_last_delivery_is_known_where_the_limit_is() -> None:
    assert (is_last(4, 5), is_last(5, 5), is_last(9, None)) == (False, True, False)


def test_a_task_that_is_done_in_the_end_has_not_failed() -> None:
    tally = Tally()
    tally.note((0, 1), Fate.GIVEN_BACK)
    assert tally.has_failures()
    tally.note((0, 1), Fate.DONE)
    assert not tally.has_failures()
    assert tally.summary() == "1 done"


def test_a_summary_names_what_went_wrong() -> None:
    tally = Tally()
    fates = (Fate.DONE, Fate.GIVEN_UP, Fate.REJECTED, Fate.GIVEN_BACK, Fate.NOT_SETTLED)
    for offset, fate in enumerate(fates):
        tally.note((0, offset), fate)
    assert tally.has_failures()
    assert tally.summary() == "1 done, 1 rejected, 1 given back, 1 given up, 1 not settled"
