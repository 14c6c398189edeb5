"""Printing the result of a replay before it switches."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.cli.output import counted, print_line, print_table
from headrace.cli.table_rows import cell

if TYPE_CHECKING:
    from headrace.lake.table_comparison import Contents
    from headrace.pipelines.running.correcting.replay import Replay


def print_comparison(built: "Replay") -> None:
    """Print one line per table, then the differences with sample rows."""
    print_table(
        (
            "table",
            "generation",
            "rows before",
            "rows after",
            "changed",
            "only before",
            "only after",
        ),
        [
            (
                one.table,
                # A merged view of two layers has no table of its own.
                max(built.generations.values()),
                one.contents.rows_before,
                one.contents.rows_after,
                one.contents.changed,
                one.contents.only_before,
                one.contents.only_after,
            )
            for one in built.compared
        ],
    )
    for one in built.compared:
        if not one.is_equal:
            print_line("")
            print_line(f"{one.table} differs: {difference_text(one.contents)}")
            _print_examples(one.contents.examples)


def difference_text(contents: "Contents") -> str:
    """Summarize differing columns and rows found on one side only, in one line."""
    parts = [f"{name} in {counted(rows, 'row')}" for name, rows in contents.columns.items()]
    for side, rows in (("before", contents.only_before), ("after", contents.only_after)):
        if rows:
            parts.append(f"{counted(rows, 'row')} only {side}")
    for word, names in (
        ("new", contents.columns_added),
        ("gone", contents.columns_removed),
        ("of another type", contents.columns_retyped),
    ):
        parts += [f"{name} is {word}" for name in names]
    return ", ".join(parts)


def _print_examples(examples: tuple[tuple[str, Mapping[str, Any]], ...]) -> None:
    if examples:
        columns = list(examples[0][1])
        print_table(
            ("", *columns),
            [(sign, *(cell(row[name]) for name in columns)) for sign, row in examples],
        )
