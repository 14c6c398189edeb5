"""Spark's Python processes as forks of one that has imported what they need.

For each stream, and for each kind of planning, Spark starts a Python of its own, which imports
PySpark, Arrow and the source before it does anything: half a second of a processor each, most of
what a flow's start costs. So a session on this machine has one process that has imported them; what
Spark starts (`headrace.spark.forked_python`) asks it for a fork and hands over its streams,
arguments and environment.

The server ends when its standard input does: with the driver, however that ends.
"""

import atexit
import fcntl
import gc
import io
import logging
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from shlex import quote

from headrace.spark import forked_python
from headrace.spark.daemon import PRELOADED as TASKS_PRELOADED
from headrace.spark.forked_python import FORKED, HEAD_BYTES, THREADS

logger = logging.getLogger(__name__)

PRELOADED = (
    *TASKS_PRELOADED,
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "headrace.spark.source.stream_reader",
)
_TOLD_AT_START = {"PYTHONHASHSEED": "0", THREADS: "1"}
"""What Spark tells each Python in its environment, and a fork would be told too late."""
_BACKLOG = 128
_REQUEST_S_MAX = 10.0
_FIRST_FREE = 3
"""The first number that is not of a standard stream."""
_WAKES_BYTES_MAX = 4_096
_KILLED_BY = 128
"""What is added to a signal's number where a process has ended by one, as shells do."""


@dataclass(frozen=True, slots=True)
class ForkServer:
    """The server of this process, and what is to be started in Python's place."""

    program: str
    process: "subprocess.Popen[bytes]"

    def end(self) -> None:
        """Let it fork no more; what it has forked goes on. If we are killed, it ends by itself."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.kill()  # Nothing of it is to be kept, and it cannot be waited for in vain.
        self.process.wait()
        shutil.rmtree(Path(self.program).parent, ignore_errors=True)

    def leave(self) -> None:
        """In a fork of the driver: the server is the driver's, and lives no longer than that."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        atexit.unregister(self.end)
        fork_server.cache_clear()


@cache
def fork_server() -> ForkServer | None:
    """One for as long as this process lives; what is asked of it before it is ready waits.

    None where there cannot be one: a directory for temporary files may have too long a name for a
    socket, or nothing in it may be run.
    """
    place = Path(tempfile.mkdtemp(prefix="headrace-forks-"))
    try:
        server = _started(place)
    except OSError as error:
        logger.warning("Spark's Python processes start slowly: %s; set TMPDIR", error)
        shutil.rmtree(place, ignore_errors=True)
        return None
    atexit.register(server.end)
    os.register_at_fork(after_in_child=server.leave)
    return server


def _started(place: Path) -> ForkServer:
    """The program first: where it cannot be run, no process is started."""
    program, path = place / "python3", str(place / "socket")
    told = {name: os.environ.get(name, usual) for name, usual in _TOLD_AT_START.items()}
    words = [sys.executable, "-IS", forked_python.__file__, path, told[THREADS]]
    program.write_text(f'#!/bin/sh\nexec {" ".join(map(quote, words))} "$@"\n')
    program.chmod(0o700)
    if not os.access(program, os.X_OK):
        raise PermissionError(f"nothing in {place.parent} may be run")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(_BACKLOG)
        # A driver whose own input is closed has the number that the server's input gets.
        number = fcntl.fcntl(listener, fcntl.F_DUPFD, _FIRST_FREE)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(number), str(place)],
            env={**os.environ, **told},
            stdin=subprocess.PIPE,
            pass_fds=[number],
            process_group=0,  # Ctrl-C is for the driver, which ends the others.
        )
    finally:
        os.close(number)
    return ForkServer(str(program), process)


@dataclass(frozen=True, slots=True)
class Request:
    """What a process was started with."""

    arguments: list[str]
    environment: dict[bytes, bytes]
    directory: str
    streams: list[int]

    def close(self) -> None:
        """Have the streams no more: who reads their other ends waits for the last that has them."""
        for stream in self.streams:
            os.close(stream)


class Forks:
    """The processes that were forked, and who is to be told of the end of each."""

    def __init__(self, listener: socket.socket, lifeline: int) -> None:
        """It serves until the other end of `lifeline` is closed."""
        self._listener = listener
        self._lifeline = lifeline
        self._askers: dict[int, socket.socket] = {}
        """By the process that was forked for them."""
        self._orphans: set[int] = set()
        """Forks that were told to end, as those who asked for them have."""
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)

    def serve(self) -> Request | None:
        """Return in each fork with what it is to run, and in the server when all is over."""
        # Python writes to the wakeup socket only for signals that have a handler.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno())
        while True:
            ready = self._ready()
            if self._lifeline in ready:
                return None
            if self._woken.fileno() in ready:
                self._tell_ends()
            for pid in [pid for pid, asker in self._askers.items() if asker.fileno() in ready]:
                self._end(pid)  # Who has asked says nothing more, so it was ended.
            if self._listener.fileno() in ready and (request := self._fork_for_next()) is not None:
                return request

    def _ready(self) -> set[int]:
        poller = select.poll()
        for number in (self._lifeline, self._listener.fileno(), self._woken.fileno()):
            poller.register(number, select.POLLIN)
        for asker in self._askers.values():
            poller.register(asker.fileno(), select.POLLIN)
        return {number for number, _ in poller.poll()}

    def _end(self, pid: int) -> None:
        self._askers.pop(pid).close()
        self._orphans.add(pid)
        os.kill(pid, signal.SIGTERM)  # If it has ended, it still waits to be asked for its code.

    def _tell_ends(self) -> None:
        """Let who asked for a fork that has ended end in the same way."""
        with suppress(BlockingIOError):
            while self._woken.recv(_WAKES_BYTES_MAX):
                pass
        for pid in [*self._askers, *self._orphans]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._orphans.discard(pid)
                self._tell(pid, os.waitstatus_to_exitcode(status))

    def _tell(self, pid: int, code: int) -> None:
        asker = self._askers.pop(pid, None)
        if asker is not None:
            with asker, suppress(OSError):
                asker.sendall(bytes([code if code >= 0 else _KILLED_BY - code]))

    def _fork_for_next(self) -> Request | None:
        """Fork for the next who asks; the fork gets what it is to run."""
        try:
            asker, _ = self._listener.accept()
        except OSError as error:
            print(f"{__name__}: nobody was let in: {error}", file=sys.stderr)
            return None
        try:
            request = received(asker)
        except (OSError, EOFError, ValueError):
            asker.close()  # Who asked has ended, or starts a Python of its own then.
            return None
        try:
            pid = _forked()
        except OSError as error:
            print(f"{__name__}: nothing was forked: {error}", file=sys.stderr)
            request.close()
            asker.close()
            return None
        if pid == 0:
            self._leave(asker)
            return request
        request.close()
        self._askers[pid] = asker
        with suppress(OSError):  # One that has ended meanwhile is noticed by its silence.
            asker.sendall(FORKED)
        return None

    def _leave(self, asker: socket.socket) -> None:
        """In a fork: have nothing of the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._lifeline)
        for one in (asker, self._listener, self._woken, self._waker, *self._askers.values()):
            one.close()


def received(asker: socket.socket) -> Request:
    """What is asked for; whoever does so sends it at once."""
    asker.settimeout(_REQUEST_S_MAX)
    head, streams, _, _ = socket.recv_fds(asker, HEAD_BYTES, 3)
    request = Request([], {}, "", streams)
    try:
        head += _exactly(asker, HEAD_BYTES - len(head))
        content = _exactly(asker, int.from_bytes(head, "big"))
        arguments, environment, directory = marshal.loads(content)
    except BaseException:
        request.close()
        raise
    return Request(arguments, environment, directory, streams)


def _exactly(asker: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = asker.recv(size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def become(request: Request, own_path: list[str]) -> None:
    """Be the process that was to be started: run its module as Python would."""
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
    request.close()
    _reopen_streams()
    os.chdir(request.directory)
    os.environb.clear()
    os.environb.update(request.environment)
    time.tzset()
    given = os.environ.get("PYTHONPATH", "")
    first = [] if sys.flags.safe_path else [request.directory]
    sys.path[:] = [*first, *filter(None, given.split(os.pathsep)), *own_path]
    module, *arguments = request.arguments
    sys.modules.pop(module, None)  # It is run, not imported.
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _reopen_streams() -> None:
    """As Python has them when Spark tells it not to buffer; their numbers are never closed."""
    streams = {
        "stdin": open(0, closefd=False),  # noqa: SIM115
        "stdout": _unbuffered(1, "strict"),
        "stderr": _unbuffered(2, "backslashreplace"),
    }
    for name, stream in streams.items():
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _unbuffered(number: int, errors: str) -> io.TextIOWrapper:
    raw = open(number, "wb", 0, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(raw, errors=errors, write_through=True)


def _forked() -> int:
    """Fork. Libraries have threads, but none that is at work, or whose work a fork would miss."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return os.fork()


def path_of_python() -> list[str]:
    """What this Python looks through besides the directory it runs in and PYTHONPATH."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [place for place in sys.path[1:] if place not in filter(None, given)]


def _main(listener: int, place: str) -> None:
    """Import, then serve; in a fork, run what it is for."""
    own_path = path_of_python()
    for name in PRELOADED:
        with suppress(ImportError):  # Of another PySpark; who needs it imports it, or says so.
            import_module(name)
    gc.freeze()  # What forks share stays shared.
    atexit.register(gc.unfreeze)  # Who ends in the ordinary way complains about what is frozen.
    held = os.open(place, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)  # What tidies up old files leaves it alone.
    with socket.socket(fileno=listener) as listening:
        request = Forks(listening, sys.stdin.fileno()).serve()
    if request is None:
        shutil.rmtree(place, ignore_errors=True)
    else:
        become(request, own_path)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])
