"""The line that is written over, and word of outages."""

import io
import os
from unittest import mock

import pytest

from headrace.cli.progress import OutageNotice, ProgressLine


class Terminal(io.StringIO):
    """A stream that claims to be a terminal of some width."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 99


def shown(columns: int, *texts: str) -> str:
    stream = Terminal()
    size = os.terminal_size((columns, 24))
    with mock.patch("os.get_terminal_size", return_value=size):
        line = ProgressLine(stream)
        for text in texts:
            line.show(text)
        line.clear()
    return stream.getvalue()


def test_a_text_never_wraps() -> None:
    """A line that has wrapped cannot be written over."""
    assert shown(30, "x" * 100) == "\r" + "x" * 29 + "\r" + " " * 29 + "\r"


def test_a_shorter_text_leaves_nothing_of_the_longer_behind() -> None:
    assert shown(80, "longer", "short") == "\rlonger\rshort \r     \r"


def test_nothing_is_shown_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    ProgressLine(stream).show("10 records")
    monkeypatch.setenv("TERM", "dumb")
    dumb = Terminal()
    ProgressLine(dumb).show("10 records")
    assert stream.getvalue() == dumb.getvalue() == ""


def test_an_outage_and_its_end_are_each_reported_once() -> None:
    reported: list[str] = []
    notice = OutageNotice(reported.append)
    for outage in (None, "refused", "refused", None, None):
        notice.look(outage, "2 records wait", lambda: None)
    assert reported == ["no broker answers (refused); 2 records wait", "a broker answers again"]
