"""Steps over tokens."""

import pytest

from headrace.serdes.protobuf.cursor import DEPTH_MAX, Cursor, whole_number
from headrace.serdes.protobuf.reading import read
from headrace.serdes.schemas import InvalidSchema


def test_a_name_may_have_a_package_and_a_dot_before_it() -> None:
    assert Cursor(".a . b /* c */ .d;").name() == ".a.b.d"


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("0x1f", 31), ("017", 15), ("0", 0)])
def test_numbers_are_decimal_hexadecimal_or_octal(text: str, number: int) -> None:
    assert whole_number(text) == number


def test_a_number_may_be_below_zero() -> None:
    assert Cursor("- 5").integer() == -5


def test_a_cursor_at_its_end_stays_there() -> None:
    cursor = Cursor("a")
    cursor.word()
    assert cursor.step() is cursor.step() is cursor.next


@pytest.mark.parametrize("opening", ["message A { ", "option x = { y "])
def test_nesting_has_a_bound(opening: str) -> None:
    text = opening + opening.removeprefix("option x = ") * DEPTH_MAX
    with pytest.raises(InvalidSchema, match="nests more than"):
        read(text)
