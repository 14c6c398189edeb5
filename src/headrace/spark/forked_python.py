"""The Python that Spark is told to start: it asks the fork server to do it, and stands in for it.

    python -IS forked_python.py SOCKET THREADS [PYTHON ARGUMENT]...

Run as a file, with as little imported as can be: what it costs is paid for each process. It hands
over its arguments, environment and open streams, waits, and ends as the fork does; that it is ended
itself, as by Spark, the server takes for the fork's end. What the server is not for, or if there is
none, runs here as it would have without.
"""

import _socket
import marshal
import os
import sys

STREAM = "pyspark.sql.streaming.python_streaming_source_runner"
SERVED = frozenset({STREAM, "headrace.spark.daemon", "pyspark.daemon"})
TASKS = "pyspark.worker"
"""What runs tasks: Spark says how many threads libraries may have there, when they are loaded."""
THREADS = "OMP_NUM_THREADS"
HEAD_BYTES = 4
"""The size of a request, before it."""
FORKED = b"+"
FAILED = 1


def main(path: str, threads: str, arguments: list[str]) -> int:
    """Stand in for a fork, and end with its exit code; or become the Python that was asked for."""
    server = forked(path, arguments) if is_served(arguments, threads) else None
    if server is None:
        os.execv(sys.executable, [sys.executable, *arguments])
    for stream in range(3):
        os.close(stream)  # Who waits for the end of the fork's streams must not wait for ours.
    code = server.recv(1)
    return code[0] if code else FAILED


def is_served(arguments: list[str], threads: str) -> bool:
    """Whether a server that was loaded for so many threads can run what the arguments say."""
    is_module = arguments[:1] == ["-m"] and not SERVED.isdisjoint(arguments[1:2])
    return is_module and (TASKS not in arguments or os.environ.get(THREADS) == threads)


def forked(path: str, arguments: list[str]) -> "_socket.socket | None":
    """The connection on which the server tells of the fork's end; None if it made none."""
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
