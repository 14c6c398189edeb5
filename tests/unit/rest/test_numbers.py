"""Numbers in requests."""

import pytest

from headrace.rest.numbers import INT32_MAX, whole


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), (str(INT32_MAX), INT32_MAX), (str(INT32_MAX + 1), None), ("-1", None)],
)
def test_digits_within_the_bounds_are_a_number(text: str, number: int | None) -> None:
    assert whole(text) == number


@pytest.mark.parametrize("text", ["", " 1", "+1", "1_0", "1.0", "²", "٣", "9" * 5000, "0" * 5000])
def test_other_texts_of_any_length_are_not_numbers(text: str) -> None:
    assert whole(text, 0, 1 << 63) is None


def test_bounds_belong_to_the_range() -> None:
    assert [whole(text, 2, 3) for text in "1234"] == [None, 2, 3, None]
