"""A stand-in for Python that asks the fork server for a fork.

    python -IS python_stub.py SOCKET THREADS [PYTHON ARGUMENT]...

Spark starts it for each process, so it runs as a file with very few imports. It passes its
arguments, environment and standard streams to the server, waits, and exits as the fork does. If
Spark kills it, the server ends the fork. Without a server, or for other programs, it becomes the
Python that Spark asked for.
"""

import _socket
import marshal
import os
import sys

STREAM = "pyspark.sql.streaming.python_streaming_source_runner"
SERVED = frozenset({STREAM, "pyspark.daemon"})
TASKS = "pyspark.worker"
"""The module for tasks, where Spark limits the threads of libraries by the environment."""
THREADS = "OMP_NUM_THREADS"
HEAD_BYTES = 4
"""The bytes of the size in front of a request."""
FORKED = b"+"
FAILED = 1


def main(path: str, threads: str, arguments: list[str]) -> int:
    """Wait for a fork and return its exit code, or become the Python that Spark asked for."""
    server = forked(path, arguments) if is_served(arguments, threads) else None
    if server is None:
        os.execv(sys.executable, [sys.executable, *arguments])
    for stream in range(3):
        os.close(stream)  # Readers wait until the last copy of a stream is closed.
    code = server.recv(1)
    return code[0] if code else FAILED


def is_served(arguments: list[str], threads: str) -> bool:
    """Return whether a server with libraries for so many threads can run these arguments."""
    is_module = arguments[:1] == ["-m"] and not SERVED.isdisjoint(arguments[1:2])
    return is_module and (TASKS not in arguments or os.environ.get(THREADS) == threads)


def forked(path: str, arguments: list[str]) -> "_socket.socket | None":
    """Ask for a fork; return the connection that will carry its exit code, or None."""
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    try:
        request = marshal.dumps((arguments[1:], dict(os.environb), os.getcwd()))
        server.connect(path)
        head = len(request).to_bytes(HEAD_BYTES, "big")
        server.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
        server.sendall(request)
        return server if server.recv(1) == FORKED else None
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
