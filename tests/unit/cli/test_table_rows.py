"""Values of tables as text and as JSON."""

import datetime as dt
from decimal import Decimal

import pytest

from headrace.cli.table_rows import cell, made_by, plain_row
from headrace.lake.lineage import Lineage


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
        ("\x1b[2Jgone\x07\x9b", "\\x1b[2Jgone\\x07\\x9b"),
        (b"\x00\xff", "\\x00\\xff"),
        ("x" * 80, "x" * 59 + "…"),
        (dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC), "2026-03-01 12:00:00Z"),
        (dt.date(2026, 3, 1), "2026-03-01"),
        (Decimal("1.10"), "1.10"),
        ({"a": [1, Decimal("2.50")]}, '{"a":[1,"2.50"]}'),
    ],
)
def test_values_are_on_one_line(value: object, text: object) -> None:
    assert cell(value) == text


def test_no_digit_of_a_decimal_is_lost_in_json() -> None:
    row = plain_row({"price": Decimal("0.10"), "parts": [{"n": Decimal(1)}], "id": 7})
    assert row == {"price": "0.10", "parts": [{"n": "1"}], "id": 7}


@pytest.mark.parametrize(
    ("lineage", "texts"),
    [
        (None, ("-", "-")),
        (Lineage(flow="f"), ("-", "-")),
        (Lineage(pipeline="shop", pipeline_version="1"), ("shop 1", "-")),
        (Lineage(pipeline="shop", pipeline_fingerprint="1f2e"), ("shop", "1f2e")),
    ],
)
def test_the_pipeline_of_a_commit_is_shown_if_it_is_known(
    lineage: Lineage | None, texts: tuple[str, str]
) -> None:
    """Older commits have no fingerprint, and a version only if the pipeline had one."""
    assert made_by(lineage) == texts
