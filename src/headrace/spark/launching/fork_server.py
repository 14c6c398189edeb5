"""A server that forks Spark's Python processes, with their modules imported once.

For each stream and each kind of planning Spark starts a Python process, which first imports
PySpark, Arrow and the source: half a CPU second each, most of the cost of a flow's start. So a
local session has one process that has imported them. Spark starts
`headrace.spark.launching.python_stub` instead of Python, which asks this server for a fork and
passes its streams, arguments and environment.

The server ends when its standard input is closed, at the latest when the driver ends.
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

from headrace.spark.launching import python_stub
from headrace.spark.launching.python_stub import FORKED, HEAD_BYTES, THREADS

_log = logging.getLogger(__name__)

PRELOADED = (
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.datasource_internal",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "headrace.spark.side_output_files",
    "headrace.spark.source.source",
    "headrace.spark.source.stream_reader",
    "headrace.spark.tables.source",
)
_START_ENVIRONMENT = {"PYTHONHASHSEED": "0", THREADS: "1"}
"""Variables that Spark sets for each Python, and that count when Python starts."""
_BACKLOG = 128
_REQUEST_S_MAX = 10.0
_FIRST_FREE = 3
"""The first descriptor after the standard streams."""
_WAKES_BYTES_MAX = 4_096
_KILLED_BY = 128
"""Added to the number of a signal for the exit code, as in shells."""


@dataclass(frozen=True, slots=True)
class ForkServer:
    """The server of this process, and the program that Spark starts instead of Python."""

    program: str
    process: "subprocess.Popen[bytes]"

    def end(self) -> None:
        """End the server; its forks continue."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.kill()  # The server has nothing to save, and a wait must not hang.
        self.process.wait()
        shutil.rmtree(Path(self.program).parent, ignore_errors=True)

    def leave(self) -> None:
        """Give up the server in a fork of the driver, so that it ends with the driver."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        atexit.unregister(self.end)
        fork_server.cache_clear()


@cache
def fork_server() -> ForkServer | None:
    """Start the one server of this process; requests wait until it is ready.

    Return None if the directory for temporary files has too long a name for a socket, or allows no
    programs.
    """
    place = Path(tempfile.mkdtemp(prefix="headrace-forks-"))
    try:
        server = _started(place)
    except OSError as error:
        _log.warning(
            "Spark starts slowly without a fork server; set TMPDIR", extra={"error": str(error)}
        )
        shutil.rmtree(place, ignore_errors=True)
        return None
    atexit.register(server.end)
    os.register_at_fork(after_in_child=server.leave)
    return server


def _started(place: Path) -> ForkServer:
    """Write the program, then start the process, which would be useless without the program."""
    program, path = place / "python3", str(place / "socket")
    given = {name: os.environ.get(name, usual) for name, usual in _START_ENVIRONMENT.items()}
    words = [sys.executable, "-IS", python_stub.__file__, path, given[THREADS]]
    program.write_text(f'#!/bin/sh\nexec {" ".join(map(quote, words))} "$@"\n')
    program.chmod(0o700)
    if not os.access(program, os.X_OK):
        raise PermissionError(f"{place.parent} does not allow programs")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(_BACKLOG)
        # If the driver's own standard input is closed, the socket could have its number.
        number = fcntl.fcntl(listener, fcntl.F_DUPFD, _FIRST_FREE)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(number), str(place)],
            env={**os.environ, **given},
            stdin=subprocess.PIPE,
            pass_fds=[number],
            process_group=0,  # Ctrl-C is for the driver alone.
        )
    finally:
        os.close(number)
    return ForkServer(str(program), process)


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments, environment, directory and standard streams of a process."""

    arguments: list[str]
    environment: dict[bytes, bytes]
    directory: str
    streams: list[int]

    def close(self) -> None:
        """Close the streams: their readers wait until the last copy is closed."""
        for stream in self.streams:
            os.close(stream)


class Forks:
    """The forks of a server, and the connection that asked for each."""

    def __init__(self, listener: socket.socket, lifeline: int) -> None:
        """Serve until the other end of `lifeline` is closed."""
        self._listener = listener
        self._lifeline = lifeline
        self._askers: dict[int, socket.socket] = {}
        """Connections by the process id of their fork."""
        self._orphans: set[int] = set()
        """Forks that were ended because their connections were closed."""
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)

    def serve(self) -> Request | None:
        """Return the request in each fork, and None in the server at its end."""
        # Python writes to the wakeup socket only for signals that have a handler.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno())
        while True:
            ready = self._ready()
            if self._lifeline in ready:
                return None
            if self._woken.fileno() in ready:
                self._report_ends()
            for pid in [pid for pid, asker in self._askers.items() if asker.fileno() in ready]:
                self._end(pid)  # A stub sends nothing after its request, so it was killed.
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
        os.kill(pid, signal.SIGTERM)  # A fork that has ended is a zombie, so its id is still its.

    def _report_ends(self) -> None:
        """Send the exit codes of ended forks to their stubs."""
        with suppress(BlockingIOError):
            while self._woken.recv(_WAKES_BYTES_MAX):
                pass
        for pid in [*self._askers, *self._orphans]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._orphans.discard(pid)
                self._report(pid, os.waitstatus_to_exitcode(status))

    def _report(self, pid: int, code: int) -> None:
        asker = self._askers.pop(pid, None)
        if asker is not None:
            with asker, suppress(OSError):
                asker.sendall(bytes([code if code >= 0 else _KILLED_BY - code]))

    def _fork_for_next(self) -> Request | None:
        """Fork for the next connection, and return its request in the fork."""
        try:
            asker, _ = self._listener.accept()
        except OSError as error:
            print(f"{__name__}: accepting a connection failed: {error}", file=sys.stderr)
            return None
        try:
            request = received(asker)
        except (OSError, EOFError, ValueError):
            asker.close()  # The stub has ended, or starts Python itself now.
            return None
        try:
            pid = _forked()
        except OSError as error:
            print(f"{__name__}: fork failed: {error}", file=sys.stderr)
            request.close()
            asker.close()
            return None
        if pid == 0:
            self._leave(asker)
            return request
        request.close()
        self._askers[pid] = asker
        with suppress(OSError):  # A stub that has ended meanwhile is noticed by its closed socket.
            asker.sendall(FORKED)
        return None

    def _leave(self, asker: socket.socket) -> None:
        """Release the server's resources in a fork."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._lifeline)
        for one in (asker, self._listener, self._woken, self._waker, *self._askers.values()):
            one.close()


def received(asker: socket.socket) -> Request:
    """Receive a request, which a stub sends at once."""
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
    """Become the requested process: run its module as Python would."""
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
    """Open the standard streams unbuffered, as Spark asks Python to."""
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
    """Fork; the threads of libraries are idle, and forks do not need them."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return os.fork()


def path_of_python() -> list[str]:
    """Return the module path without the working directory and PYTHONPATH."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [place for place in sys.path[1:] if place not in filter(None, given)]


def _main(listener: int, place: str) -> None:
    """Import the modules and serve; in a fork, run its request."""
    own_path = path_of_python()
    for name in PRELOADED:
        with suppress(ImportError):  # A process that needs a missing module reports it.
            import_module(name)
    # Forks share these objects, and the collector that a worker runs after each task skips them.
    gc.freeze()
    atexit.register(gc.unfreeze)  # Python reports frozen objects as leaks when it exits.
    held = os.open(place, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)  # Cleaners of temporary files skip locked directories.
    with socket.socket(fileno=listener) as listening:
        request = Forks(listening, sys.stdin.fileno()).serve()
    if request is None:
        shutil.rmtree(place, ignore_errors=True)
    else:
        become(request, own_path)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])
