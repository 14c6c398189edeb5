"""A line on the terminal that is written over while a command works."""

import sys
import time
from typing import TextIO


class ProgressLine:
    """Shows the latest text a few times a second on a terminal, and nothing anywhere else."""

    def __init__(self, stream: TextIO | None = None, *, interval_s: float = 0.2) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._interval_s = interval_s
        self._next_s = time.monotonic() + interval_s
        self._width = 0
        self.is_shown = self._stream.isatty()

    def is_due(self) -> bool:
        """Whether it is time for a new text; asked often, so that texts are built rarely."""
        return self.is_shown and time.monotonic() >= self._next_s

    def show(self, text: str) -> None:
        """Replace what stands on the line."""
        if not self.is_shown:
            return
        self._next_s = time.monotonic() + self._interval_s
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Leave the line empty for what is printed next."""
        if self._width:
            self.show("")
            self._stream.write("\r")
            self._stream.flush()
            self._width = 0


def rate_text(count: int, seconds: float) -> str:
    """How much was done, and how fast: `1,200,000 records, 410,000/s`."""
    return f"{count:,} records, {count / max(seconds, 1e-9):,.0f}/s"
