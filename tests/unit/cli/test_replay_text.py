"""The comparison that a replay prints before it switches."""

import pytest

from headrace.cli.replay_text import print_comparison
from headrace.lake.table_comparison import Contents
from headrace.pipelines.running.correcting.replay import Compared, Replay


def test_differences_are_shown_by_column_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    changed = Contents(
        rows_before=2,
        rows_after=2,
        changed=1,
        columns={"price": 1},
        columns_added=("tax",),
        examples=(("-", {"id": 7, "price": 1.5}), ("+", {"id": 7, "price": 3.0})),
    )
    same = Contents(rows_before=9, rows_after=9)
    compared = (Compared("raw.o", same), Compared("refined.o", changed))
    print_comparison(Replay({"raw.o": 2, "refined.o": 2}, compared))
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["raw.o", "2", "9", "9", "0", "0", "0"]
    assert "refined.o differs: price in 1 row, tax is new" in lines
    assert [line.split() for line in lines[-2:]] == [["-", "7", "1.5"], ["+", "7", "3"]]


def test_rows_without_a_counterpart_are_counted_by_their_side(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A removed row has no changed columns."""
    gone = Contents(rows_before=3, rows_after=2, only_before=1)
    more = Contents(rows_before=1, rows_after=3, changed=1, only_after=2, columns={"reason": 1})
    compared = (Compared("raw.o", gone), Compared("quarantine.raw__o", more))
    print_comparison(Replay({"raw.o": 2, "quarantine.raw__o": 2}, compared))
    lines = capsys.readouterr().out.splitlines()
    assert "raw.o differs: 1 row only before" in lines
    assert "quarantine.raw__o differs: reason in 1 row, 2 rows only after" in lines


def test_a_view_of_two_layers_has_the_generation_of_its_tables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    same = Contents(rows_before=9, rows_after=9)
    layers = {"refined.n__batch": 2, "refined.n__speed": 2}
    print_comparison(Replay(layers, (Compared("refined.n", same),)))
    assert capsys.readouterr().out.splitlines()[-1].split()[:3] == ["refined.n", "2", "9"]
