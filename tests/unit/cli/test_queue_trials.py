"""Outcomes of tasks whose command failed."""

import pytest

from headrace.cli.queue_trials import (
    Outcome,
    TaskOutcomes,
    cannot_run,
    failure_text,
    is_last,
    outcome_of,
    pause_s,
)


@pytest.mark.parametrize(
    ("code", "deliveries", "limit", "outcome"),
    [
        (0, 5, 5, Outcome.DONE),
        (65, 1, 5, Outcome.REJECTED),
        (1, 1, 5, Outcome.GIVEN_BACK),
        (1, 5, 5, Outcome.GIVEN_UP),
        (-9, 4, 5, Outcome.GIVEN_BACK),
        (1, 99, None, Outcome.GIVEN_BACK),
    ],
)
def test_the_exit_code_and_the_delivery_count_decide(
    code: int, deliveries: int, limit: int | None, outcome: Outcome
) -> None:
    """RMQ-1"""
    assert outcome_of(code, deliveries, limit) is outcome


def test_a_command_that_a_shell_cannot_run_is_recognised() -> None:
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


def test_the_text_of_a_failure_counts_the_tries() -> None:
    assert failure_text(1, Outcome.GIVEN_BACK, 2, 5) == "exit code 1, given back (try 2 of 5)"
    assert failure_text(1, Outcome.GIVEN_UP, 5, 5) == "exit code 1, given up after 5 tries"
    assert failure_text(65, Outcome.REJECTED, 1, 5) == "exit code 65, rejected"


def test_the_last_delivery_is_known_where_the_limit_is() -> None:
    assert (is_last(4, 5), is_last(5, 5), is_last(9, None)) == (False, True, False)


def test_a_task_that_is_done_in_the_end_has_not_failed() -> None:
    tally = TaskOutcomes()
    tally.note((0, 1), Outcome.GIVEN_BACK)
    assert tally.has_failures()
    tally.note((0, 1), Outcome.DONE)
    assert not tally.has_failures()
    assert tally.summary() == "1 done"


def test_a_summary_counts_failures_by_kind() -> None:
    tally = TaskOutcomes()
    outcomes = (
        Outcome.DONE,
        Outcome.GIVEN_UP,
        Outcome.REJECTED,
        Outcome.GIVEN_BACK,
        Outcome.NOT_SETTLED,
    )
    for offset, outcome in enumerate(outcomes):
        tally.note((0, offset), outcome)
    assert tally.has_failures()
    assert tally.summary() == "1 done, 1 rejected, 1 given back, 1 given up, 1 not settled"
