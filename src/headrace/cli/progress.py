"""Progress of a command: a live line on the terminal, and messages about outages."""

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from headrace.cli.output import counted, warn

WIDTH_MIN = 20


class ProgressLine:
    """A line that shows the latest text a few times a second, on terminals only."""

    def __init__(self, stream: TextIO | None = None, *, interval_s: float = 0.2) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._interval_s = interval_s
        self._next_s = time.monotonic() + interval_s
        self._length = 0
        # A dumb terminal cannot return to the start of its line, and would fill up.
        self.is_shown = self._stream.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        """Return the width of the line; a line that wraps could not be overwritten."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 80
        return max(WIDTH_MIN, (columns or 80) - 1)

    def is_due(self) -> bool:
        """Return whether a new text is due, so that callers build texts only when needed."""
        return self.is_shown and time.monotonic() >= self._next_s

    def show(self, text: str) -> None:
        """Replace the text of the line."""
        if not self.is_shown:
            return
        self._next_s = time.monotonic() + self._interval_s
        text = text[: self.width]
        self._stream.write("\r" + text.ljust(min(self._length, self.width)))
        self._stream.flush()
        self._length = len(text)

    def clear(self) -> None:
        """Clear the line for the next output."""
        if self._length:
            self.show("")
            self._stream.write("\r")
            self._stream.flush()
            self._length = 0


class OutageNotice:
    """Reports once that no broker answers, and once that a broker answers again."""

    def __init__(self, report: Callable[[str], None] = warn) -> None:
        self._report = report
        self._is_reported = False

    def look(self, outage: str | None, meanwhile: str, before: Callable[[], None]) -> None:
        """Report a change of state; `before` clears the line for the message."""
        if (outage is not None) == self._is_reported:
            return
        self._is_reported = outage is not None
        before()
        if outage is None:
            self._report("a broker answers again")
        else:
            self._report(f"no broker answers ({outage}); {meanwhile}")


def rate_text(count: int, seconds: float) -> str:
    """Format a count and a rate: `1,200,000 records, 410,000/s`."""
    return f"{counted(count, 'record')}, {count / max(seconds, 1e-9):,.0f}/s"
