"""A broker as a process of its own that a test starts, stops, kills and starts again.

The port is chosen once, below the range that the kernel gives to clients: while the broker is
down, a client that knocks on its port must not happen to be given that very port itself.
"""

import contextlib
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from headrace.errors import HeadraceError

HOST = "127.0.0.1"

_PORTS = range(15_000, 32_000)
_PORT_ATTEMPTS = 5
_READY = b"Headrace is ready on "
_START_SECONDS_MAX = 30.0
_STOP_SECONDS_MAX = 30.0


class BrokerFailed(HeadraceError):
    """The broker did not start, or ended by itself; the message has the end of its log."""


class BrokerProcess:
    """One node on this machine, with its data in a directory of the test's."""

    def __init__(self, directory: Path, settings: Mapping[str, object] | None = None) -> None:
        self.data_dir = directory / "data"
        self.log_path = directory / "broker.log"
        self.settings = {name: _text(value) for name, value in (settings or {}).items()}
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """What clients call `bootstrap.servers`; stays the same over restarts."""
        return f"{HOST}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def log(self) -> str:
        """What the broker wrote so far, over all of its starts."""
        if not self.log_path.exists():
            return ""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Start the broker and return when it serves clients."""
        assert not self.is_running, "the broker runs already"
        if self.port:
            self._start()
            return
        for attempts_left in reversed(range(_PORT_ATTEMPTS)):
            self.port = _free_port()
            try:
                self._start()
                return
            except BrokerFailed as failure:
                if "cannot listen" not in str(failure) or not attempts_left:
                    raise

    def stop(self) -> None:
        """Ask the broker to end, as Ctrl-C does, and wait until it has; fine if it has already."""
        if self.is_running:
            self._running().send_signal(signal.SIGINT)
            self._wait()

    def kill(self) -> None:
        """End the broker as a crash does: at once, with nothing written or said."""
        if self.is_running:
            self._running().kill()
            self._wait()

    def restart(self, settings: Mapping[str, object] | None = None) -> None:
        """Stop, if need be, and start on the same data and port; new settings join the old."""
        self.stop()
        self.settings |= {name: _text(value) for name, value in (settings or {}).items()}
        self.start()

    def __enter__(self) -> "BrokerProcess":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
            )
        try:
            self._wait_until_ready(time.monotonic() + _START_SECONDS_MAX)
        except BrokerFailed:
            self.kill()
            self._close_output()
            raise

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "headrace.cli.main", "up"]
        command += ["--data", str(self.data_dir), "--listen", f"{HOST}:{self.port}"]
        return command + [f"--set={name}={value}" for name, value in self.settings.items()]

    def _wait_until_ready(self, deadline: float) -> None:
        """Read standard output up to the line that says so."""
        output = self._running().stdout
        assert output is not None
        said = b""
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while _READY not in said:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise BrokerFailed(self._explain("did not get ready in time"))
                piece = os.read(output.fileno(), 65536)
                if not piece:
                    self._running().wait()
                    raise BrokerFailed(self._explain("ended while it started"))
                said += piece

    def _wait(self) -> None:
        process = self._running()
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise BrokerFailed(self._explain("did not stop in time and was killed")) from None
        finally:
            self._close_output()

    def _close_output(self) -> None:
        process = self._running()
        if process.stdout is not None:
            process.stdout.close()

    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "the broker was never started"
        return self._process

    def _explain(self, what: str) -> str:
        return f"the broker {what}; its log ends with:\n{self.log[-4000:]}"


def _free_port() -> int:
    for port in random.sample(_PORTS, 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port
    raise BrokerFailed(f"no port between {_PORTS.start} and {_PORTS.stop} is free")


def _text(value: object) -> str:
    """Settings may be given as Python values: True is `true` in a properties file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
