"""REST proxies, and registries beside them, as real processes, started as a user does."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

START_SECONDS_MAX = 30
V2 = "application/vnd.kafka.v2+json"
JSON_V2 = "application/vnd.kafka.json.v2+json"
BINARY_V2 = "application/vnd.kafka.binary.v2+json"


class Proxy:
    """One process of a product that answers by HTTP."""

    def __init__(self, process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
        self.process = process
        self.url = url
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid


def proxy(
    bootstrap: str, log: Path, arguments: Sequence[str] = ()
) -> AbstractContextManager[Proxy]:
    """A REST proxy on a free port."""
    return _running("rest", bootstrap, log, arguments)


def registry(bootstrap: str, log: Path) -> AbstractContextManager[Proxy]:
    """A schema registry on a free port."""
    return _running("registry", bootstrap, log, ())


@contextmanager
def _running(command: str, bootstrap: str, log: Path, arguments: Sequence[str]) -> Iterator[Proxy]:
    """Run the process, and stop it at the end by a signal that it must obey."""
    program = str(Path(sys.executable).with_name("headrace"))
    line = [program, command, "--bootstrap", bootstrap, "--listen", "127.0.0.1:0", *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(line, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield Proxy(process, _url(process, log), log)
    finally:
        process.terminate()
        try:
            process.wait(START_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def _url(process: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        text = log.read_text(errors="replace")
        if found := re.search(r"ready on (\S+)", text):
            return found[1]
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"the proxy did not start:\n{text}")
        time.sleep(0.02)
