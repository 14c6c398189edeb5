"""Positions as text."""

import pytest

from headrace.http.errors import HttpError
from headrace.rest.push.positions import parsed, partitions, written


def test_positions_are_parsed_from_their_text() -> None:
    given = {10: 5, 2: 0, 0: 1 << 40}
    assert parsed(written(given), "offsets") == given


def test_partitions_are_written_in_order() -> None:
    assert written({2: 7, 0: 3}) == "0:3,2:7"


@pytest.mark.parametrize(
    "text", ["", "0", "0:", ":1", "0:-1", "-1:0", "0:1,0:2", "0:x", "0:1,", "9" * 30 + ":1"]
)
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(HttpError):
        parsed(text, "offsets")


def test_partitions_are_each_named_once() -> None:
    assert partitions("2, 0,2", "partitions") == (0, 2)
