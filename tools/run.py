"""What `make run` does: a node at once, and beside it a whole pipeline as soon as Spark is there.

The node is up in a second and serves whatever happens to the others. Beside it start a schema
registry and a REST proxy. Meanwhile Spark is installed, unless it is there, and a Java runtime is
looked for. Then a generator writes lines of an access log into a topic, and the
pipeline of examples/pipelines/access_logs keeps its tables in ./lake.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from shutil import which

ROOT = Path(__file__).resolve().parent.parent
PIPELINE = ROOT / "examples" / "pipelines" / "access_logs"
GENERATOR = "examples.pipelines.access_logs.generate"
READY = "Headrace is ready on "
SERVICES = {"registry": "127.0.0.1:8081", "rest": "127.0.0.1:8082"}
JAVA_PACKAGE = "openjdk-17-jre-headless"
STOP_S_MAX = 60.0
RECORDS_PER_SECOND = 50


class Run:
    """The processes of one run: they end together, the node last."""

    def __init__(self, lake: Path, node_arguments: Sequence[str]) -> None:
        self._lake = lake
        self._node_arguments = node_arguments
        self._children: list[subprocess.Popen[str]] = []
        self._is_ending = threading.Event()

    def serve(self, *, with_pipeline: bool) -> int:
        """Run until Ctrl-C, or until the node has ended; the node's exit code."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self._end_aside())
        node = self._start([headrace(), "up", *self._node_arguments], stdout=subprocess.PIPE)
        assert node.stdout is not None, "asked for above"
        for line in node.stdout:
            print(line, end="", flush=True)
            if line.startswith(READY) and with_pipeline:
                address = line.removeprefix(READY).strip()
                threading.Thread(target=self._begin_pipeline, args=(address,), daemon=True).start()
        code = node.wait()
        self._end()
        return 0 if self._is_ending.is_set() else code

    def _begin_pipeline(self, address: str) -> None:
        if not (install_spark() and find_java()) or self._is_ending.is_set():
            say("the node goes on without the pipeline")
            return
        rate = str(RECORDS_PER_SECOND)
        self._start(
            [sys.executable, "-m", GENERATOR, "--bootstrap", address, "--per-second", rate],
            stdout=subprocess.DEVNULL,
        )
        say(f"the pipeline starts: {PIPELINE.relative_to(ROOT)}, its tables go to {self._lake}")
        place = "" if self._lake == ROOT / "lake" else f" --lake {self._lake}"
        say(f"  look at them with: {headrace()} tables show refined.traffic_by_minute{place}")
        pipeline = self._start(
            [
                *(headrace(), "pipelines", "run", str(PIPELINE)),
                *("--bootstrap", address, "--lake", str(self._lake)),
            ]
        )
        if pipeline.wait() and not self._is_ending.is_set():
            say("the pipeline has ended; the node goes on")

    def _start(self, command: Sequence[str], stdout: int | None = None) -> "subprocess.Popen[str]":
        """A child in a session of its own: Ctrl-C is ours, and the others end in order."""
        child = subprocess.Popen(
            command, cwd=ROOT, stdout=stdout, text=True, start_new_session=True
        )
        self._children.append(child)
        if self._is_ending.is_set():
            child.terminate()
        return child

    def _end_aside(self) -> None:
        if not self._is_ending.is_set():
            self._is_ending.set()
            threading.Thread(target=self._end).start()

    def _end(self) -> None:
        """Stop what was started last first: nobody should miss its node."""
        for child in reversed(self._children):
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
                try:
                    child.wait(STOP_S_MAX)
                except subprocess.TimeoutExpired:
                    child.kill()


def service_options(name: str, address: str) -> list[str]:
    """What starts a service beside the node, unless somebody else has its address."""
    if address == "no":
        return []
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except (OSError, ValueError) as error:
            say(f"no {name} is started: {address}: {error}; {name.upper()}=HOST:PORT moves it")
            return []
    return [f"--{name}", address]


def install_spark() -> bool:
    """Bring Spark and the lake's libraries into the environment, unless they are there."""
    from headrace.cli import installing

    command = ["make", "--silent", ".venv/installed-spark"]
    with installing.under_way() as sign:
        done = subprocess.run(command, cwd=ROOT, check=False, pass_fds=[sign])
    if done.returncode:
        say("Spark could not be installed: see above")
    return done.returncode == 0


def find_java() -> bool:
    """Whether there is a Java runtime for Spark; where we may, Debian's is installed."""
    from headrace.errors import HeadraceError
    from headrace.spark import java

    try:
        java.find_java()
        return True
    except HeadraceError as error:
        reason = str(error)
    if os.geteuid() == 0 and which("apt-get") is not None:
        say(f"no Java runtime here: installing {JAVA_PACKAGE} ...")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-qq", "--no-install-recommends"]):
            package = [JAVA_PACKAGE, "-y"] if words[0] == "install" else []
            subprocess.run(["apt-get", *words, *package], env=environment, check=False)
        try:
            java.find_java()
            return True
        except HeadraceError as error:
            reason = str(error)
    say(reason)
    return False


def headrace() -> str:
    """The program of this environment, as a user would type it from here."""
    path = Path(sys.executable).with_name("headrace")
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lake", default="lake", help="where the pipeline's tables go")
    parser.add_argument("--no-pipeline", action="store_true", help="no pipeline beside the node")
    for name, address in SERVICES.items():
        parser.add_argument(f"--{name}", default=address, help="where it listens, or `no`")
    given, node_arguments = parser.parse_known_args()
    lake = Path(given.lake).absolute()
    for name in SERVICES:
        node_arguments += service_options(name, getattr(given, name))
    return Run(lake, node_arguments).serve(with_pipeline=not given.no_pipeline)


if __name__ == "__main__":
    sys.exit(main())
