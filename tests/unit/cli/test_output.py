"""Tables: as wide as their content, folded where they must, blocks of lines where that fails."""

import os
from unittest import mock

import pytest

from headrace.cli import output
from headrace.cli.output import blocks, narrowest, print_table

COLUMNS = ("topic", "partition", "lag")
ROWS = [("orders", 0, 12), ("a-topic-with-a-long-name", 1, None)]


def printed(capsys: pytest.CaptureFixture[str], width: int) -> list[str]:
    from rich.console import Console

    console = Console(width=width, no_color=True)
    with mock.patch.object(output, "_console", return_value=console):
        print_table(COLUMNS, ROWS)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_numbers_are_aligned_on_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, 80)[2:] == [
        "orders                             0    12",
        "a-topic-with-a-long-name           1     -",
    ]


def test_texts_fold_where_a_line_would_not_hold_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, 36)[2:] == [
        "orders                       0    12",
        "a-topic-with-a-lon           1     -",
        "g-name",
    ]


def test_a_terminal_that_is_too_narrow_gets_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, 20)[:4] == [
        "topic      orders",
        "partition  0",
        "lag        12",
        "",
    ]


def test_the_narrowest_table_folds_texts_and_keeps_numbers() -> None:
    assert narrowest(COLUMNS, ROWS, (False, True, True)) == 12 + 3 + 9 + 3 + 3


def test_a_block_keeps_the_lines_of_a_value() -> None:
    assert list(blocks(("name", "v"), [("a", "1\n2")])) == ["name  a", "v     1", "      2"]


def test_output_that_is_no_terminal_has_no_colours_and_no_edge(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with mock.patch.dict(os.environ, {"FORCE_COLOR": "", "COLUMNS": "20"}):
        print_table(COLUMNS, ROWS)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "a-topic-with-a-long-name           1     -" in shown
