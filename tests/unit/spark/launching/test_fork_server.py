"""Processes that are forked in Python's place: what they get, and how they end."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.spark.launching.fork_server import ForkServer, fork_server
from headrace.spark.launching.python_stub import is_served
from tests.processes.nodes import eventually
from tests.processes.process_trees import descendants

pytest.importorskip("pyspark")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are used there alone")

ASKER = """
import sys
from headrace.spark.launching import python_stub

python_stub.SERVED = {"report"}
sys.exit(python_stub.main(sys.argv[1], "1", sys.argv[2:]))
"""
"""The stub that Spark starts, for a module of this test."""
REPORT = """
import json, os, sys

print(json.dumps({
    "arguments": sys.argv[1:], "place": os.getcwd(), "parent": os.getppid(), "name": __name__,
    "environment": dict(os.environ), "hash": hash("a"), "arrow": "pyarrow" in sys.modules,
}), flush=True)
print("an error line", file=sys.stderr)
exec(sys.stdin.read())
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    started = fork_server.__wrapped__()  # The one of this process may have a session.
    assert started is not None
    yield started
    started.end()
    assert not Path(started.program).exists()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "report.py").write_text(REPORT)
    return tmp_path


def asking(server: ForkServer, place: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A process that has asked for a fork, with an environment of its own."""
    path = str(Path(server.program).parent / "socket")
    return subprocess.Popen(
        [sys.executable, "-c", ASKER, path, "-m", "report", *arguments],
        cwd=place,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "WORD": "own"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_fork_has_the_arguments_and_environment_of_its_client(
    server: ForkServer, place: Path
) -> None:
    asker = asking(server, place, "one", "two")
    output, errors = asker.communicate("sys.exit(7)", timeout=60)
    report = json.loads(output)
    assert (report["arguments"], report["place"], report["name"]) == (
        ["one", "two"],
        str(place),
        "__main__",
    )
    assert report["environment"]["WORD"] == "own"
    assert "PATH" not in report["environment"], "nothing is left of the server's"
    assert report["parent"] == server.process.pid
    assert report["arrow"], "what takes long to import is there"
    assert (errors, asker.returncode) == ("an error line\n", 7)


def test_forks_hash_as_the_pythons_that_spark_starts(server: ForkServer, place: Path) -> None:
    output, _ = asking(server, place).communicate("", timeout=60)
    other = subprocess.run(
        [sys.executable, "-c", "print(hash('a'))"],
        env={**os.environ, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(output)["hash"] == int(other.stdout)


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("raise ValueError('why')", 1), ("os.kill(os.getpid(), 9)", 137), ("pass", 0)],
)
def test_a_client_ends_with_the_exit_code_of_its_fork(
    server: ForkServer, place: Path, code: str, exit_code: int
) -> None:
    asker = asking(server, place)
    _, errors = asker.communicate(code, timeout=60)
    assert asker.returncode == exit_code
    assert ("ValueError: why" in errors) == (exit_code == 1)


def test_streams_of_a_fork_are_as_python_has_them(server: ForkServer, place: Path) -> None:
    """Not buffered, lenient about errors, and their numbers stay theirs."""
    code = (
        "sys.stdout = open(os.devnull, 'w'); os.write(1, b'one ')\n"
        "sys.stdout = sys.__stdout__; sys.stdout.write('two')\n"
        "sys.stderr.write('\\udcff')\n"
        "os._exit(0)"
    )
    output, errors = asking(server, place).communicate(code, timeout=60)
    assert output.splitlines()[1] == "one two"
    assert errors == "an error line\n\\udcff"


def test_a_client_that_ends_early_leaves_no_open_files(server: ForkServer) -> None:
    def opened() -> int:
        return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))

    path = str(Path(server.program).parent / "socket")
    before = opened()
    for _ in range(5):
        with socket.socket(socket.AF_UNIX) as asker, open(os.devnull) as null:
            asker.connect(path)
            socket.send_fds(asker, [b"\0\0\0\7"], [null.fileno()] * 3)
    eventually(lambda: opened() <= before)


def test_a_forked_driver_does_not_keep_the_server() -> None:
    code = (
        "import os, time\n"
        "from headrace.spark.launching.fork_server import fork_server\n"
        "print(fork_server().program, flush=True)\n"
        "if os.fork() == 0: time.sleep(60)\n"
        "os.kill(os.getpid(), 9)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as driver:
        assert driver.stdout is not None
        program = Path(driver.stdout.readline().strip())
        eventually(lambda: not program.parent.exists())
        os.killpg(driver.pid, signal.SIGKILL)


def test_a_fork_ends_with_its_client(server: ForkServer, place: Path) -> None:
    """Spark ends a process that it has started; it does not know of the fork."""
    asker = asking(server, place)
    assert asker.stdout is not None
    assert json.loads(asker.stdout.readline())["parent"] == server.process.pid
    (fork,) = descendants(server.process.pid)
    asker.send_signal(signal.SIGTERM)
    asker.wait(60)
    eventually(lambda: fork not in descendants(server.process.pid))
    asker.communicate()  # Only now: without its input the fork would end alone.


def test_without_a_server_the_program_becomes_python(server: ForkServer, place: Path) -> None:
    words = Path(server.program).read_text().replace("/socket ", "/no-such-socket ")
    program = place / "python3"
    program.write_text(words)
    program.chmod(0o700)
    done = subprocess.run(
        [program, "-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert len(done.stdout) == 4, "the port where it would listen"


def test_other_commands_are_left_to_python(server: ForkServer) -> None:
    done = subprocess.run(
        [server.program, "-c", "import sys; print(sys.flags.isolated, 'pyarrow' in sys.modules)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "0 False\n"


@pytest.mark.parametrize(
    ("arguments", "threads", "is_so"),
    [
        (["-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source"], None, True),
        (["-m", "pyspark.daemon", "pyspark.worker"], "1", True),
        (["-m", "pyspark.daemon", "pyspark.worker"], "4", False),
        (["-m", "pyspark.daemon", "pyspark.worker"], None, False),
        (["-c", "pass"], "1", False),
        (["-m"], "1", False),
        ([], "1", False),
    ],
)
def test_tasks_are_served_if_they_may_have_the_threads_that_libraries_were_loaded_for(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], threads: str | None, is_so: bool
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if threads is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert is_served(arguments, "1") == is_so


def test_the_server_ends_with_its_driver_even_if_that_is_killed() -> None:
    code = (
        "from headrace.spark.launching.fork_server import fork_server\n"
        "print(fork_server().program)\ninput()"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    program = Path(driver.stdout.readline().strip())
    assert program.exists()
    driver.kill()
    driver.communicate(timeout=60)
    eventually(lambda: not program.parent.exists())


def test_a_socket_path_that_is_too_long_prevents_the_fork_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert fork_server.__wrapped__() is None
    assert "set TMPDIR" in caplog.text
    assert list(long.iterdir()) == []
