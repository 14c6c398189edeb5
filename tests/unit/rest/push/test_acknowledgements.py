"""Acknowledgements of clients, and the offsets to commit."""

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


def test_acknowledging_all_records_covers_filtered_ones() -> None:
    waiting = sent(3, 4)
    waiting.passed_over(0, 9)
    assert waiting.acknowledge(0, 4) == 9


def test_a_filtered_record_waits_for_earlier_acknowledgements() -> None:
    assert not sent(3).passed_over(0, 4)


def test_a_filtered_record_without_earlier_ones_is_committed_at_once() -> None:
    waiting = sent(3)
    waiting.acknowledge(0, 3)
    assert waiting.passed_over(0, 4)


def test_the_window_is_full_until_a_record_is_acknowledged() -> None:
    waiting = sent(1, 2, most=2)
    was_full = waiting.is_full
    waiting.acknowledge(0, 1)
    assert (was_full, waiting.is_full) == (True, False)


@pytest.mark.parametrize(("partition", "offset"), [(0, 5), (1, 3)])
def test_an_unsent_record_cannot_be_acknowledged(partition: int, offset: int) -> None:
    with pytest.raises(HttpError):
        sent(3, 4).acknowledge(partition, offset)


def test_an_acknowledgement_may_be_repeated() -> None:
    waiting = sent(3, 4)
    assert [waiting.acknowledge(0, 3), waiting.acknowledge(0, 3)] == [3, 3]
