"""Cleaning in a process of its own, so that it takes no time from the broker's event loop.

Compaction reads every record. In a thread of the broker it would hold the interpreter lock: in a
measurement, a busy loop did a third of its work, with pauses of 15 ms. A process takes 50 ms to
start, and its end releases its memory. Small tasks stay in a thread.

Both sides exchange frames over pipes: the task, then a frame for each group, which the broker
confirms with a byte after it has swapped the segment in. If the broker dies, the pipe closes and
the process ends immediately: it must not write into a directory that the next broker has opened.
"""

import os
import sys
import threading
from signal import SIGKILL
from struct import Struct

import msgspec

from headrace.errors import CorruptMessage, HeadraceError
from headrace.runtime.files import OpenFile
from headrace.storage.compaction.cleaning import (
    CleanedGroup,
    Cleaning,
    CleaningGivenUp,
    CleaningTask,
)

IN_THREAD_BYTES_MAX = 1 << 20
"""Tasks up to this size delay the broker less than the start of a process."""

_NICENESS = 10
_GO_ON = b"\x01"
_LENGTH = Struct(">I")
_STDIN, _STDOUT = 0, 1


class Failure(msgspec.Struct, frozen=True):
    """The reason of a failed task."""

    message: str
    error_number: int = 0
    corrupt: bool = False

    def raised(self) -> Exception:
        if self.error_number:
            return OSError(self.error_number, self.message)
        return CorruptMessage(self.message) if self.corrupt else HeadraceError(self.message)


class Report(msgspec.Struct, frozen=True):
    """A message of the process: a group is ready, an error, or neither at the end."""

    group: CleanedGroup | None = None
    failure: Failure | None = None


def clean_aside(task: CleaningTask) -> "Cleaning | CleaningProcess":
    """Return the task as work in a thread or in a process, whichever delays the broker less."""
    if sum(source.size for source in task.sources) <= IN_THREAD_BYTES_MAX:
        return Cleaning(task)
    return CleaningProcess(task)


class CleaningProcess:
    """The broker's end. Created on the event loop; `next` blocks and is for threads."""

    def __init__(self, task: CleaningTask) -> None:
        self._task: CleaningTask | None = task
        self._has_ended = False
        from_us, to_process = map(OpenFile, os.pipe())
        from_process, to_us = map(OpenFile, os.pipe())
        self._to_process = to_process
        self._from_process = from_process
        self._pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", __name__],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, from_us.fd, _STDIN),
                (os.POSIX_SPAWN_DUP2, to_us.fd, _STDOUT),
            ],
            setpgroup=0,  # A Ctrl-C is for the broker, which then ends its helpers.
        )

    def next(self) -> CleanedGroup | None:
        """Wait for the next group; the one before it has been swapped in."""
        try:
            if self._task is not None:
                _write_frame(self._to_process.fd, msgspec.msgpack.encode(self._task))
                self._task = None
            else:
                os.write(self._to_process.fd, _GO_ON)
            frame = _read_frame(self._from_process.fd)
        except OSError as error:
            raise CleaningGivenUp(f"its process is gone: {error}") from error
        if frame is None:
            raise CleaningGivenUp("its process has ended")
        report = msgspec.msgpack.decode(frame, type=Report)
        if report.failure is not None:
            raise report.failure.raised()
        return report.group

    def stop(self) -> None:
        """Kill the process without waiting for its end.

        The pipes are closed with the last reference to this object: a thread may be in `next`.
        """
        if not self._has_ended:
            self._has_ended = True
            os.kill(self._pid, SIGKILL)
            threading.Thread(target=os.waitpid, args=(self._pid, 0), daemon=True).start()


def main() -> None:
    """The process: do one task and end."""
    os.nice(_NICENESS)
    frame = _read_frame(_STDIN)
    if frame is None:
        return
    task = msgspec.msgpack.decode(frame, type=CleaningTask)
    may_go_on = threading.Semaphore(0)
    threading.Thread(target=_listen, args=(may_go_on,), daemon=True).start()
    cleaning = Cleaning(task)
    while True:
        report = _next_report(cleaning)
        _write_frame(_STDOUT, msgspec.msgpack.encode(report))
        if report.group is None:
            return
        may_go_on.acquire()


def _next_report(cleaning: Cleaning) -> Report:
    try:
        return Report(cleaning.next())
    except OSError as error:
        return Report(failure=Failure(str(error), error.errno or 5))
    except CorruptMessage as error:
        return Report(failure=Failure(str(error), corrupt=True))
    except Exception as error:
        # The broker logs it and skips this log; the type is part of the message.
        return Report(failure=Failure(f"{type(error).__name__}: {error}"))


def _listen(may_go_on: threading.Semaphore) -> None:
    """Read the broker's confirmations of swapped segments; end the process with the pipe."""
    while os.read(_STDIN, 1):
        may_go_on.release()
    os._exit(1)


def _write_frame(fd: int, content: bytes) -> None:
    view = memoryview(_LENGTH.pack(len(content)) + content)
    while view:
        view = view[os.write(fd, view) :]


def _read_frame(fd: int) -> bytes | None:
    """The next frame, None if the other end has closed."""
    header = _read_exactly(fd, _LENGTH.size)
    if header is None:
        return None
    (length,) = _LENGTH.unpack(header)
    return _read_exactly(fd, length)


def _read_exactly(fd: int, size: int) -> bytes | None:
    content = b""
    while len(content) < size:
        more = os.read(fd, size - len(content))
        if not more:
            return None
        content += more
    return content


if __name__ == "__main__":
    main()
