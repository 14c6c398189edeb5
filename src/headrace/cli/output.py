"""Output of commands: tables for people with rich, JSON for programs with msgspec."""

import datetime as dt
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from headrace.client.descriptions import Outcome

Cell = str | int | float | None
_Row = TypeVar("_Row")

_GAP = 3
"""Spaces between two columns."""
_NUMBER = re.compile(r"-|-?[\d,]+(\.\d+)?")
_FOLDED_MIN = 12
"""Minimum width of folded text; a column of single letters is unreadable."""


def print_json(document: Any) -> None:
    """Print one indented JSON document on standard output."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    sys.stdout.write(text.decode() + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table as wide as its content, with numbers aligned right.

    Text folds on a narrow terminal. If the terminal is too narrow even for that, each row becomes
    a block of lines.
    """
    from rich import box
    from rich.table import Table

    content = [list(row) for row in rows]
    numeric = [
        bool(content) and all(_is_number(row[index]) for row in content)
        for index in range(len(columns))
    ]
    console = _console()
    if narrowest(columns, content, numeric) > console.width:
        for line in blocks(columns, content):
            print_line(line)
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column, is_number in zip(columns, numeric, strict=True):
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=is_number)
    for row in content:
        table.add_row(*map(cell_text, row))
    console.print(table)


def print_rows(
    found: Sequence[_Row],
    columns: Mapping[str, Callable[[_Row], Cell]],
    *,
    as_json: bool = False,
) -> None:
    """Print values as a JSON list for programs, or as a table with a function for each column."""
    if as_json:
        print_json(found)
    else:
        print_table(
            list(columns), [[value_of(one) for value_of in columns.values()] for one in found]
        )


def narrowest(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], numeric: Sequence[bool]
) -> int:
    """Return the width of a table with folded texts and unfolded numbers."""
    width = _GAP * (len(columns) - 1)
    for index, (column, is_number) in enumerate(zip(columns, numeric, strict=True)):
        texts = [column, *(cell_text(row[index]) for row in rows)]
        longest = max(len(line) for text in texts for line in text.split("\n"))
        width += longest if is_number else min(longest, max(len(column), _FOLDED_MIN))
    return width


def blocks(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """Format each row as lines of name and value, with an empty line between rows."""
    width = max(map(len, columns), default=0)
    for index, row in enumerate(rows):
        if index:
            yield ""
        for column, value in zip(columns, row, strict=True):
            lines = plain_text(value).split("\n")
            yield f"{column:<{width}}  {lines[0]}".rstrip()
            yield from (f"{'':<{width}}  {line}" for line in lines[1:])


def print_line(text: str) -> None:
    """Print one plain line on standard output."""
    sys.stdout.write(text + "\n")


def warn(text: str) -> None:
    """Print one line on standard error, which keeps standard output clean."""
    sys.stdout.flush()
    sys.stderr.write(f"headrace: {text}\n")


def report(
    outcomes: Sequence["Outcome"],
    *,
    done: str,
    as_json: bool,
    forgiven: Mapping[str, str] | None = None,
) -> int:
    """Print the outcome of each change; return 1 if one failed unexpectedly."""
    expected = forgiven or {}
    if as_json:
        print_json(outcomes)
    failed = 0
    for outcome in outcomes:
        if outcome.error is None or outcome.error in expected:
            if not as_json:
                print_line(f"{outcome.name} {expected.get(outcome.error or '', done)}")
        else:
            failed = 1
            text = f"{outcome.message} ({outcome.error})" if outcome.message else outcome.error
            warn(f"{outcome.name}: {text}")
    return failed


def cell_text(value: Cell) -> str:
    """Convert a value to a table cell; rich's markup in it is not interpreted."""
    from rich.markup import escape

    return escape(plain_text(value))


def plain_text(value: Cell) -> str:
    """Convert a value to text."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return str(value)


def counted(count: int, noun: str) -> str:
    """Format a count with its noun: `1 task`, `1,200 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size_text(size_bytes: int) -> str:
    """Format a size for people: 1.5 MiB."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def time_text(timestamp_ms: int) -> str:
    """Format a timestamp in UTC with milliseconds; a negative one means no timestamp."""
    if timestamp_ms < 0:
        return "-"
    try:
        moment = dt.datetime.fromtimestamp(timestamp_ms / 1000, tz=dt.UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_number(value: Cell) -> bool:
    return not isinstance(value, str) or _NUMBER.fullmatch(value) is not None


def _console() -> Any:
    """Return a console with unlimited width in files and pipes, where nothing must fold."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=10_000, no_color=True)
