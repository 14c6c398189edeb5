"""Lines from a stream, many at a time: a program can feed a million of them in seconds."""

import os
import select
from collections.abc import Callable, Iterator

CHUNK_BYTES = 1 << 20


class LineSplitter:
    """Cuts chunks into lines; what follows the last newline waits for the next chunk."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def push(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their newlines."""
        end = chunk.find(b"\n")
        if end < 0:
            # Collected, not joined: one line over many chunks must not cost their square.
            self._rest.append(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._rest:
            lines[0] = b"".join([*self._rest, lines[0]])
        last = lines.pop()
        self._rest = [last] if last else []
        return lines

    def finish(self) -> list[bytes]:
        """The last line, when the stream does not end with a newline."""
        last = b"".join(self._rest)
        self._rest = []
        return [last] if last else []


def read_lines(
    descriptor: int, idle: Callable[[], None], *, interval_s: float = 0.5
) -> Iterator[list[bytes]]:
    """Lists of lines as they come; `idle` is called now and then while none do."""
    splitter = LineSplitter()
    while True:
        if not select.select([descriptor], [], [], interval_s)[0]:
            idle()
            continue
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            break
        if lines := splitter.push(chunk):
            yield lines
    if lines := splitter.finish():
        yield lines
