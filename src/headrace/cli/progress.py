"""A line on the terminal that is written over while a command works, and word of outages."""

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from headrace.cli.output import counted, warn

WIDTH_MIN = 20


class ProgressLine:
    """Shows the latest text a few times a second on a terminal, and nothing anywhere else."""

    def __init__(self, stream: TextIO | None = None, *, interval_s: float = 0.2) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._interval_s = interval_s
        self._next_s = time.monotonic() + interval_s
        self._length = 0
        # A terminal that cannot go back to the start of its line would be filled with them.
        self.is_shown = self._stream.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        """How much fits on the line; one that wraps could not be written over."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 80
        return max(WIDTH_MIN, (columns or 80) - 1)

    def is_due(self) -> bool:
        """Whether it is time for a new text; asked often, so that texts are built rarely."""
        return self.is_shown and time.monotonic() >= self._next_s

    def show(self, text: str) -> None:
        """Replace what stands on the line."""
        if not self.is_shown:
            return
        self._next_s = time.monotonic() + self._interval_s
        text = text[: self.width]
        self._stream.write("\r" + text.ljust(min(self._length, self.width)))
        self._stream.flush()
        self._length = len(text)

    def clear(self) -> None:
        """Leave the line empty for what is printed next."""
        if self._length:
            self.show("")
            self._stream.write("\r")
            self._stream.flush()
            self._length = 0


class OutageNotice:
    """Says once that no broker answers, and once that one does again."""

    def __init__(self, tell: Callable[[str], None] = warn) -> None:
        self._tell = tell
        self._is_told = False

    def look(self, outage: str | None, meanwhile: str, before: Callable[[], None]) -> None:
        """Compare with what was told last; `before` makes way for a line."""
        if (outage is not None) == self._is_told:
            return
        self._is_told = outage is not None
        before()
        if outage is None:
            self._tell("a broker answers again")
        else:
            self._tell(f"no broker answers ({outage}); {meanwhile}")


def rate_text(count: int, seconds: float) -> str:
    """How much was done, and how fast: `1,200,000 records, 410,000/s`."""
    return f"{counted(count, 'record')}, {count / max(seconds, 1e-9):,.0f}/s"
