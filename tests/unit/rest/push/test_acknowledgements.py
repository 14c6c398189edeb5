"""What clients have acknowledged, and what may be committed by that."""

import pytest

from headrace.http.errors import HttpError
from headrace.rest.push.acknowledgements import Acknowledgements


def sent(*offsets: int, most: int = 10) -> Acknowledgements:
    found = Acknowledgements(most)
    for offset in offsets:
        found.sent(0, offset)
    return found


def test_an_acknowledgement_covers_all_before_it() -> None:
    assert sent(3, 4, 7).acknowledge(0, 4) == 6


def test_all_acknowledged_is_all_that_was_seen() -> None:
    waiting = sent(3, 4)
    waiting.passed_over(0, 9)
    assert waiting.acknowledge(0, 4) == 9


def test_what_is_passed_over_waits_for_what_came_before() -> None:
    assert not sent(3).passed_over(0, 4)


def test_what_is_passed_over_with_nothing_before_is_done() -> None:
    waiting = sent(3)
    waiting.acknowledge(0, 3)
    assert waiting.passed_over(0, 4)


def test_it_is_full_until_something_is_acknowledged() -> None:
    waiting = sent(1, 2, most=2)
    was_full = waiting.is_full
    waiting.acknowledge(0, 1)
    assert (was_full, waiting.is_full) == (True, False)


@pytest.mark.parametrize(("partition", "offset"), [(0, 5), (1, 3)])
def test_what_was_not_sent_cannot_be_acknowledged(partition: int, offset: int) -> None:
    with pytest.raises(HttpError):
        sent(3, 4).acknowledge(partition, offset)


def test_an_acknowledgement_may_come_twice() -> None:
    waiting = sent(3, 4)
    assert [waiting.acknowledge(0, 3), waiting.acknowledge(0, 3)] == [3, 3]
