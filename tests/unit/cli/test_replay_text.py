"""What a replay tells before it switches."""

import pytest

from headrace.cli.replay_text import print_comparison
from headrace.lake.comparing import Contents
from headrace.pipelines.running.replaying import Compared, Replay


def test_what_differs_is_told_by_column_and_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    changed = Contents(
        rows_before=2,
        rows_after=2,
        only_before=1,
        only_after=1,
        columns={"price": 1},
        columns_added=("tax",),
        examples=(("-", {"id": 7, "price": 1.5}), ("+", {"id": 7, "price": 3.0})),
    )
    same = Contents(rows_before=9, rows_after=9)
    compared = (Compared("raw.o", same), Compared("refined.o", changed))
    print_comparison(Replay({"raw.o": 2, "refined.o": 2}, compared))
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["raw.o", "2", "9", "9", "0", "0"]
    assert "refined.o differs: price in 1 row, tax is new" in lines
    assert [line.split() for line in lines[-2:]] == [["-", "7", "1.5"], ["+", "7", "3"]]


def test_rows_whose_values_have_changed_places_are_told_in_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mixed = Contents(rows_before=2, rows_after=2, only_before=2, only_after=2)
    print_comparison(Replay({"raw.o": 2}, (Compared("raw.o", mixed),)))
    assert "raw.o differs: the same values, in other rows" in capsys.readouterr().out
