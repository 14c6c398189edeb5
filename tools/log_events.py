"""Compares the log events in the code with those of `docs/internals/logging.md`.

An event is a call of a module's logger with a constant text. In the client, a text may end with
`: %s` for a value that `extra=` carries too: programs with another formatter show the text alone.
Without options the program prints the rows that the page lacks, and the rows whose event is gone;
`--areas` prints all events.
"""

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "headrace"
PAGE = ROOT / "docs" / "internals" / "logging.md"
LEVELS = {name: name.upper() for name in ("debug", "info", "warning", "error", "critical")}
LEVELS["exception"] = "ERROR"
LOGGERS = {"_log", "log", "_logger", "logger"}
HEADING = re.compile(r"^## .*\(`(\w+)`\)$")
ROW = re.compile(r"^\| ([^|]+?) \| (DEBUG|INFO|WARNING|ERROR|CRITICAL) \| (.+) \|$")


class Event(NamedTuple):
    """One kind of line in the log; the area is the package below `headrace`."""

    area: str
    text: str
    level: str

    def row(self) -> str:
        return f"| {self.text} | {self.level} | (meaning, and the operator's action) |"


class Call(NamedTuple):
    """A logging call; its text is None unless it is a constant without placeholders."""

    path: Path
    line: int
    level: str
    text: str | None
    has_extra: bool


def main() -> int:
    """Print the differences; fail if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--areas", action="store_true", help="print all events of the code")
    if parser.parse_args().areas:
        for event in sorted(events_in_code()):
            print(f"{event.area}: {event.row()}")
        return 0
    found = differences(PAGE.read_text())
    print(*found, sep="\n")
    return 1 if found else 0


def differences(page: str) -> list[str]:
    """Return an instruction for each row that must be added to or removed from the page."""
    code, rows = events_in_code(), set(events_on_page(page))
    where = PAGE.relative_to(ROOT)
    add = [
        f"{where}: add below the heading with (`{event.area}`): {event.row()}"
        for event in sorted(code - rows)
    ]
    remove = [
        f"{where}: remove from below the heading with (`{event.area}`): "
        f"| {event.text} | {event.level} | ... |"
        for event in sorted(rows - code)
    ]
    return add + remove


def events_in_code() -> set[Event]:
    return {
        Event(area_of(call.path), call.text, call.level)
        for call in calls()
        if call.text is not None
    }


def events_on_page(page: str) -> Iterator[Event]:
    area = ""
    for line in page.splitlines():
        if heading := HEADING.match(line):
            area = heading[1]
        elif row := ROW.match(line):
            yield Event(area, row[1], row[2])


def calls_without_event() -> dict[str, list[str]]:
    """Return the calls whose text has placeholders or is computed, by area."""
    found = defaultdict(list)
    for call in calls():
        if call.text is None:
            found[area_of(call.path)].append(f"{call.path.relative_to(ROOT)}:{call.line}")
    return found


def calls_without_fields() -> list[str]:
    """Return the calls at WARNING and above that do not name the affected thing in `extra=`."""
    return [
        f"{call.path.relative_to(ROOT)}:{call.line}"
        for call in calls()
        if call.level not in {"DEBUG", "INFO"} and not call.has_extra
    ]


@cache
def calls() -> tuple[Call, ...]:
    """Return the logging calls of all modules."""
    return tuple(call for path in sorted(SOURCE.rglob("*.py")) for call in calls_in(path))


def calls_in(path: Path) -> Iterator[Call]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(ast.Name(logger), method)) if (
                logger in LOGGERS and method in LEVELS
            ):
                text = constant_text(node, area_of(path))
                yield Call(path, node.lineno, LEVELS[method], text, has_extra(node))


def constant_text(call: ast.Call, area: str) -> str | None:
    match call.args:
        case [ast.Constant(value=str(text))] if "%" not in text:
            return text
        case [ast.Constant(value=str(text)), _] if area == "client" and has_extra(call):
            event = text.removesuffix(": %s")
            return None if "%" in event else event
    return None


def has_extra(call: ast.Call) -> bool:
    return any(keyword.arg == "extra" for keyword in call.keywords)


def area_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0].removesuffix(".py")


if __name__ == "__main__":
    sys.exit(main())
