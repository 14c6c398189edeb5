"""Values of tables as text and as JSON."""

import datetime as dt
from decimal import Decimal

import pytest

from headrace.cli.table_rows import cell, plain_row


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (3, 3),
        (True, "true"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (b"caf\xc3\xa9 \xff", "café \\xff"),
        ("two\nlines\tand tab", "two\\nlines\\tand tab"),
        ("x" * 80, "x" * 59 + "…"),
        (dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC), "2026-03-01 12:00:00Z"),
        (dt.date(2026, 3, 1), "2026-03-01"),
        (Decimal("1.10"), "1.10"),
        ({"a": [1, Decimal("2.50")]}, '{"a":[1,"2.50"]}'),
    ],
)
def test_values_stand_on_one_line(value: object, text: object) -> None:
    assert cell(value) == text


def test_no_digit_of_a_decimal_is_lost_in_json() -> None:
    row = plain_row({"price": Decimal("0.10"), "parts": [{"n": Decimal(1)}], "id": 7})
    assert row == {"price": "0.10", "parts": [{"n": "1"}], "id": 7}
