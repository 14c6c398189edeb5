"""Nodes in their own processes, which a test starts, stops, kills, pauses and restarts.

Ports are chosen once, below the kernel's range of ephemeral ports. While a node is down, a client
that connects to its port must not get that same port as its own.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.cli.defaults import SECURITY_FOLDER
from headrace.errors import HeadraceError
from headrace.runtime.ports import free_port
from headrace.settings.properties import read

HOST = "127.0.0.1"

_PORT_ATTEMPTS = 5
_READY = b"Headrace is ready on "
_START_SECONDS_MAX = 30.0
_STOP_SECONDS_MAX = 30.0


class BrokerFailed(HeadraceError):
    """The broker did not start, or exited; the message ends with its log."""


class NodeProcess:
    """One process that serves, from its start to its end, and again."""

    def __init__(self, name: str, log_path: Path) -> None:
        self.log_path = log_path
        self.is_paused = False
        self._is_stopping = False
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._started().pid

    @property
    def log(self) -> str:
        """Return the log of all starts so far."""
        if not self.log_path.exists():
            return ""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def launch(self, command: Sequence[str]) -> None:
        """Start the process without waiting for it."""
        assert not self.is_running, f"{self._name} runs already"
        self._close_output()
        self.is_paused = False
        self._is_stopping = False
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
            )

    def wait_until_ready(self, seconds_max: float = _START_SECONDS_MAX) -> None:
        """Wait until the process serves clients; end it if it does not."""
        try:
            self._wait_until_ready(time.monotonic() + seconds_max)
        except BrokerFailed:
            self.kill()
            raise

    def request_stop(self) -> None:
        """Ask the process to stop as Ctrl-C does; asking again changes nothing."""
        if self.is_running and not self._is_stopping:
            self.resume()  # A paused process would never receive the signal.
            self._started().send_signal(signal.SIGINT)
            self._is_stopping = True

    def stop(self) -> None:
        """Stop the process as Ctrl-C does, and wait for its end."""
        self.request_stop()
        if self.is_running:
            self._wait()
        self._close_output()

    def kill(self) -> None:
        """Kill the process as a crash would: at once, without cleanup."""
        if self.is_running:
            self._started().kill()
            self._wait()
        self._close_output()

    def pause(self) -> None:
        """Freeze the process; its connections stay open and nothing answers."""
        self._started().send_signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        """Continue a paused process."""
        self._started().send_signal(signal.SIGCONT)
        self.is_paused = False

    def _wait_until_ready(self, deadline: float) -> None:
        """Read standard output up to the line that reports readiness."""
        output = self._started().stdout
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
                    self._started().wait()
                    raise BrokerFailed(self._explain("ended while it started"))
                said += piece

    def _wait(self) -> None:
        process = self._started()
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self._close_output()
            raise BrokerFailed(self._explain("did not stop in time and was killed")) from None

    def _close_output(self) -> None:
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()

    def _started(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, f"{self._name} was never started"
        return self._process

    def _explain(self, what: str) -> str:
        return f"{self._name} {what}; its log ends with:\n{self.log[-4000:]}"


class BrokerProcess:
    """One node on this machine, with its data in a directory of the test."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, object] | None = None,
        *,
        secure: bool = False,
    ) -> None:
        """`secure` starts it with TLS, SCRAM and access rules; `client_config` logs in as admin."""
        self.secure = secure
        self._directory = directory / "data"
        self.data_dir = self._directory / "node-1" if secure else self._directory
        self.settings = as_properties(settings or {})
        self.port = 0
        self._process = NodeProcess("the broker", directory / "broker.log")

    @property
    def bootstrap_servers(self) -> str:
        """Value of `bootstrap.servers` for clients; the same after a restart."""
        return f"{HOST}:{self.port}"

    @property
    def security_dir(self) -> Path:
        """The folder with `ca.crt`, certificates and settings of clients, if it is secure."""
        return self._directory / SECURITY_FOLDER

    def client_config(
        self, username: str | None = None, password: str | None = None
    ) -> dict[str, str]:
        """Return settings of clients, by librdkafka's names; by default of the admin."""
        servers = {"bootstrap.servers": self.bootstrap_servers}
        if not self.secure:
            return servers
        return with_login(self.security_dir, username, password) | servers

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """Return the broker's log of all starts so far."""
        return self._process.log

    @property
    def log_path(self) -> Path:
        return self._process.log_path

    def start(self) -> None:
        """Start the broker and return when it serves clients."""
        assert not self.is_running, "the broker runs already"
        if self.port:
            self._start()
            return
        for attempts_left in reversed(range(_PORT_ATTEMPTS)):
            self.port = free_port(HOST)
            try:
                self._start()
                return
            except BrokerFailed as failure:
                if "cannot listen" not in str(failure) or not attempts_left:
                    raise

    def stop(self) -> None:
        """Stop the broker as Ctrl-C does, and wait for its end; a stopped broker stays stopped."""
        self._process.stop()

    def kill(self) -> None:
        """Kill the broker as a crash would: at once, without cleanup."""
        self._process.kill()

    def restart(self, settings: Mapping[str, object] | None = None) -> None:
        """Restart on the same data and port; new settings are added to the old ones."""
        self.stop()
        self.settings |= as_properties(settings or {})
        self.start()

    def __enter__(self) -> "BrokerProcess":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        self._process.launch(self._command())
        self._process.wait_until_ready()

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "headrace.cli.main", "up"]
        command += ["--data", str(self._directory), "--listen", f"{HOST}:{self.port}"]
        command += ["--secure"] if self.secure else []
        return command + [f"--set={name}={value}" for name, value in self.settings.items()]


def with_login(folder: Path, username: str | None, password: str | None) -> dict[str, str]:
    """Return the settings of clients in a folder of secrets, with the login of a user."""
    settings = read(str(folder / "client.properties"))
    if username is not None:
        settings |= {"sasl.username": username, "sasl.password": password or ""}
    return settings


def as_properties(settings: Mapping[str, object]) -> dict[str, str]:
    """Convert Python values to properties: True becomes `true`, a list its items."""
    return {name: _text(value) for name, value in settings.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
