"""The program behind `make run`: a node or cluster, its HTTP services, and a pipeline on Spark.

The node serves within a second and depends on no other process. A schema registry and a REST proxy
start with it. Meanwhile the program looks for a Java runtime and installs Spark if needed. Then a
generator writes lines of an access log into a topic, and the pipeline of
examples/pipelines/access_logs keeps its tables in ./lake.

On a terminal the pipeline writes its status line itself. The program passes the output of the other
processes on, so that it can erase that line first.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import which
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
PIPELINE = ROOT / "examples" / "pipelines" / "access_logs"
TABLE = ("refined", "traffic_by_minute")
GENERATOR = "examples.pipelines.access_logs.generate"
READY = "Headrace is ready on "
SERVICES = {"registry": "127.0.0.1:8081", "rest": "127.0.0.1:8082"}
JAVA_PACKAGE = "openjdk-17-jre-headless"
SPARK_MB = 1200
PROGRESS_S = 10.0
STOP_S_MAX = 120.0  # The nodes of a cluster stop one after the other.
LAST_LINES_S_MAX = 5.0
RECORDS_PER_SECOND = 50
ERASE_LINE = "\r\x1b[K"


class Run:
    """The processes of one run; they end together, the node last."""

    def __init__(
        self, lake: Path, node_arguments: Sequence[str], *, may_install_java: bool = False
    ) -> None:
        self._lake = lake
        self._node_arguments = node_arguments
        self._may_install_java = may_install_java
        self._children: list[subprocess.Popen[str]] = []
        self._passing: list[threading.Thread] = []
        self._is_ending = threading.Event()

    def serve(self, *, with_pipeline: bool) -> int:
        """Run until Ctrl-C or until the node exits; return the node's exit code."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self._end_aside())
        node = self._start([headrace(), "up", *self._node_arguments], stdout=subprocess.PIPE)
        assert node.stdout is not None, "requested above"
        for line in node.stdout:
            print_line(line, sys.stdout)
            if line.startswith(READY) and with_pipeline:
                address = line.removeprefix(READY).strip()
                threading.Thread(target=self._begin_pipeline, args=(address,), daemon=True).start()
        code = node.wait()
        self._end()
        for thread in self._passing:
            thread.join(LAST_LINES_S_MAX)
        return 0 if self._is_ending.is_set() else code

    def _begin_pipeline(self, address: str) -> None:
        has_java = find_java(may_install=self._may_install_java)
        if not (has_java and install_spark()) or self._is_ending.is_set():
            say("the node continues without the pipeline")
            return
        rate = str(RECORDS_PER_SECOND)
        self._start(
            [sys.executable, "-m", GENERATOR, "--bootstrap", address, "--per-second", rate],
            stdout=subprocess.DEVNULL,
        )
        say(f"starting the pipeline {PIPELINE.relative_to(ROOT)} with tables in {self._lake}")
        place = "" if self._lake == ROOT / "lake" else f" --lake {self._lake}"
        command = f"  {headrace()} tables show {'.'.join(TABLE)}{place}"
        if has_rows(self._lake.joinpath(*TABLE)):
            say("  The lake has refined rows of an earlier run. Show them with:")
            say(command)
        else:
            say("  The first refined rows need about a minute. Show them with:")
            say(command)
            say("  Until then this command reports that the lake or the table does not exist.")
        pipeline = self._start(
            [
                *(headrace(), "pipelines", "run", str(PIPELINE)),
                *("--bootstrap", address, "--lake", str(self._lake)),
            ],
            stderr=None,
        )
        if pipeline.wait() and not self._is_ending.is_set():
            say("the pipeline ended; the node continues")

    def _start(
        self,
        command: Sequence[str],
        *,
        stdout: int | None = None,
        stderr: int | None = subprocess.PIPE,
    ) -> "subprocess.Popen[str]":
        """Start a child in its own session, so that Ctrl-C reaches only this program.

        The lines of a piped standard error are passed on.
        """
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=stdout,
            stderr=stderr,
            text=True,
            errors="backslashreplace",
            start_new_session=True,
        )
        self._children.append(child)
        if child.stderr is not None:
            arguments = (child.stderr, sys.stderr)
            passing = threading.Thread(target=pass_on, args=arguments, daemon=True)
            passing.start()
            self._passing.append(passing)
        if self._is_ending.is_set():
            child.terminate()
        return child

    def _end_aside(self) -> None:
        if not self._is_ending.is_set():
            self._is_ending.set()
            threading.Thread(target=self._end).start()

    def _end(self) -> None:
        """Stop the children in reverse order: the node ends after its clients."""
        for child in reversed(self._children):
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
                try:
                    child.wait(STOP_S_MAX)
                except subprocess.TimeoutExpired:
                    child.kill()


def client_settings(node_arguments: Sequence[str]) -> Path | None:
    """Return the file with the settings of clients, if the node is started with `--secure`."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--secure", action="store_true")
    parser.add_argument("--data", type=Path, default="headrace-data")
    given, _ = parser.parse_known_args(node_arguments)
    return ROOT / given.data / "security" / "client.properties" if given.secure else None


def folder(text: str) -> Path:
    """Return a folder as an absolute path; the URL of an object store is rejected."""
    from click import BadParameter

    from headrace.cli.options import LakeFolder

    try:
        path: Path = LakeFolder().convert(text, None, None)
    except BadParameter as error:
        raise argparse.ArgumentTypeError(error.message) from error
    return path.absolute()


def service_options(name: str, address: str) -> list[str]:
    """Return the node's options for a service, or none if its address is taken."""
    if address == "no":
        return []
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except (OSError, ValueError) as error:
            say(f"{name} not started: {address}: {error}; choose {name.upper()}=HOST:PORT")
            return []
    return [f"--{name}", address]


def has_rows(table: Path) -> bool:
    """Return whether a table of the lake has files of rows, in any generation."""
    return any(table.parent.glob(f"{table.name}*/**/*.parquet"))


def install_spark() -> bool:
    """Install Spark and the lake's libraries unless they are present, reporting progress."""
    from headrace.cli import extras

    command = ["make", "--silent", ".venv/installed-spark"]
    with extras.installing() as lock:
        started, size_mb = time.monotonic(), environment_mb()
        make = subprocess.Popen(command, cwd=ROOT, pass_fds=[lock])
        while True:
            try:
                code = make.wait(PROGRESS_S)
                break
            except subprocess.TimeoutExpired:
                installed_mb = max(0, environment_mb() - size_mb)
                seconds = time.monotonic() - started
                say(f"  {installed_mb} of about {SPARK_MB} MB installed after {seconds:.0f} s")
    if code:
        say("Spark could not be installed: see above")
    return code == 0


def environment_mb() -> int:
    """Return the size of the virtual environment in MB."""
    files = (ROOT / ".venv").rglob("*")
    return sum(file.lstat().st_size for file in files if file.is_file()) >> 20


def find_java(*, may_install: bool) -> bool:
    """Return whether Spark has a Java runtime; install Debian's if that is allowed."""
    reason = java_problem()
    if reason and may_install:
        say(f"no Java runtime found: installing {JAVA_PACKAGE} with apt-get (about 200 MB) ...")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-qq", "--no-install-recommends"]):
            package = [JAVA_PACKAGE, "-y"] if words[0] == "install" else []
            subprocess.run(["apt-get", *words, *package], env=environment, check=False)
        reason = java_problem()
    if reason:
        say(reason)
    return not reason


def may_install_java() -> bool:
    """Return whether to install a missing Java: root is asked on a terminal.

    Without a terminal, as in a container's start script, Java is installed. Ctrl-D and a closed
    standard input count as no.
    """
    if os.geteuid() != 0 or which("apt-get") is None or not java_problem():
        return False
    if sys.stdin is None:
        return False
    if not sys.stdin.isatty():
        return True
    try:
        answer = input(f"Spark needs Java. Install {JAVA_PACKAGE} with apt-get now? [y/N] ")
    except (EOFError, OSError):  # Ctrl-D, or a terminal that was closed.
        print()
        return False
    return answer.strip().lower() in ("y", "yes")


def java_problem() -> str:
    """Return why Spark cannot run on this machine's Java; empty if it can."""
    from headrace.errors import HeadraceError
    from headrace.spark import java

    try:
        java.find_java()
    except HeadraceError as error:
        return str(error)
    return ""


def headrace() -> str:
    """Return the path of the `headrace` program as a user would type it from here."""
    path = Path(sys.executable).with_name("headrace")
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def pass_on(lines: Iterable[str], stream: TextIO) -> None:
    for line in lines:
        print_line(line, stream)


def print_line(line: str, stream: TextIO) -> None:
    """Print a line in place of the pipeline's status line, which the pipeline soon writes again."""
    has_status = stream.isatty() and os.environ.get("TERM") != "dumb"
    stream.write((ERASE_LINE if has_status else "") + line)
    stream.flush()


def say(text: str) -> None:
    print_line(text + "\n", sys.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lake", type=folder, default="lake", help="folder of the tables")
    parser.add_argument("--no-pipeline", action="store_true", help="start no pipeline")
    for name, address in SERVICES.items():
        parser.add_argument(f"--{name}", default=address, help="address, or `no`")
    given, node_arguments = parser.parse_known_args()
    for name in SERVICES:
        node_arguments += service_options(name, getattr(given, name))
    settings = client_settings(node_arguments)
    if settings is not None:
        os.environ["HEADRACE_COMMAND_CONFIG"] = str(settings)  # For the generator and the pipeline.
    with_pipeline = not given.no_pipeline
    # The output of the services would hide a question that is asked after their start.
    try:
        may_install = with_pipeline and may_install_java()
    except KeyboardInterrupt:
        print()
        return 130
    run = Run(given.lake, node_arguments, may_install_java=may_install)
    return run.serve(with_pipeline=with_pipeline)


if __name__ == "__main__":
    sys.exit(main())
