"""Programs of one parent: the services of a node, or the nodes of a cluster on one machine.

They are started together, restarted if they end, and stopped together or one after the other. Each
is a separate process, so that a crash of one does not affect the others. A killed parent cannot
stop its programs, so each program watches its parent.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from headrace.errors import CannotListen

_log = logging.getLogger(__name__)

BACKOFF_S = 1.0
BACKOFF_MAX_S = 30.0
SETTLED_S = 60.0
"""A program that has run this long is not in a crash loop."""
STOP_S_MAX = 15.0
TAKEN_MAX = 4
"""The limit of consecutive starts on a taken address, which a previous process may still hold."""
PARENT = "HEADRACE_SUPERVISED_BY"
"""The environment variable with the id of the parent process."""

_SIGNAL_WHEN_PARENT_ENDS = 1  # PR_SET_PDEATHSIG

_CHUNK_SIZE = 64 << 10
_KILL_S_MAX = 5.0

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Service:
    """A program with its name in the log and its command."""

    name: str
    command: Sequence[str]
    advice: str = "give it another address"
    """The advice if its address stays taken."""
    on_line: Callable[[str], None] | None = None
    """Receives the lines of its log, and its output is dropped; None lets it write both itself."""
    stop_s_max: float = STOP_S_MAX
    """The time it has to stop before it is killed."""


class Supervisor:
    """Keeps services running until they are stopped."""

    def __init__(
        self, services: Sequence[Service], sleep: Sleep = asyncio.sleep, *, restarts: bool = True
    ) -> None:
        self._services = services
        self._sleep = sleep
        self._restarts = restarts
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._stopping: set[str] = set()
        self.ended: asyncio.Queue[str] = asyncio.Queue()
        """The names of services in the order in which they ended without being asked to."""

    @property
    def pids(self) -> Mapping[str, int]:
        """The processes that run now, by service."""
        return {name: process.pid for name, process in self._processes.items()}

    def start(self) -> None:
        """Start the programs without waiting for them."""
        self._tasks = {
            service.name: asyncio.create_task(self._keep(service), name=service.name)
            for service in self._services
        }

    async def wait_until_idle(self) -> None:
        """Wait until no program runs, nor will be started again."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    async def stop(
        self, names: Collection[str] | None = None, seconds_max: float | None = None
    ) -> None:
        """Stop some programs, or all; kill those that do not end in time, which may be given."""
        chosen = [one for one in self._services if names is None or one.name in names]
        self._stopping.update(one.name for one in chosen)
        await asyncio.gather(
            *(
                self._stop(one, one.stop_s_max if seconds_max is None else seconds_max)
                for one in chosen
            )
        )

    async def _stop(self, service: Service, seconds_max: float) -> None:
        name = service.name
        task, process = self._tasks.get(name), self._processes.get(name)
        if task is None:
            return
        if process is None:
            task.cancel()  # It waits before it restarts its program.
        else:
            _signal(process, signal.SIGTERM)
        _, late = await asyncio.wait([task], timeout=seconds_max)
        if late:
            _log.warning("service did not stop in time, killing it", extra={"service": name})
            if process is not None:
                _signal(process, signal.SIGKILL)
                await asyncio.wait([task], timeout=_KILL_S_MAX)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _keep(self, service: Service) -> None:
        backoff_s, taken = BACKOFF_S, 0
        clock = asyncio.get_running_loop().time
        while service.name not in self._stopping:
            began = clock()
            code = await self._run(service)
            if service.name in self._stopping:
                return
            self.ended.put_nowait(service.name)
            if not self._restarts:
                _log.error("service ended", extra={"service": service.name, "exit_code": code})
                return
            taken = taken + 1 if code == CannotListen.exit_code else 0
            if taken == TAKEN_MAX:
                _log.error(
                    "service not started, its address is taken",
                    extra={"service": service.name, "advice": service.advice},
                )
                return
            if clock() - began > SETTLED_S:
                backoff_s = BACKOFF_S
            _log.error(
                "service ended, restarting it",
                extra={"service": service.name, "exit_code": code, "backoff_s": backoff_s},
            )
            await self._sleep(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)

    async def _run(self, service: Service) -> int | str:
        try:
            process = await asyncio.create_subprocess_exec(
                *service.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=None if service.on_line is None else asyncio.subprocess.DEVNULL,
                stderr=None if service.on_line is None else asyncio.subprocess.PIPE,
                # Ctrl-C stops the node, which stops its programs in order.
                start_new_session=True,
                env={**os.environ, PARENT: str(os.getpid())},
            )
        except OSError as error:
            return str(error)
        self._processes[service.name] = process
        if service.name in self._stopping:
            _signal(process, signal.SIGTERM)
        try:
            if service.on_line is not None:
                await _pass_on(process, service.on_line)
            return await process.wait()
        finally:
            del self._processes[service.name]


def end_with_parent() -> None:
    """Stop this process when the node that started it is gone; without a node do nothing."""
    parent = os.environ.pop(PARENT, "")
    if not parent:
        return
    import ctypes  # Most programs have no parent that supervises them.

    try:
        ctypes.CDLL(None).prctl(_SIGNAL_WHEN_PARENT_ENDS, signal.SIGTERM)
    except (OSError, AttributeError):  # Only Linux can do that.
        return
    if os.getppid() != int(parent):
        # The parent ended before the watch began.
        os.kill(os.getpid(), signal.SIGTERM)


async def _pass_on(process: asyncio.subprocess.Process, on_line: Callable[[str], None]) -> None:
    """Pass on the lines of a program's log, however long they are, until it ends."""
    assert process.stderr is not None, "requested as a pipe"
    pending = bytearray()
    while piece := await process.stderr.read(_CHUNK_SIZE):
        pending += piece
        *lines, rest = pending.split(b"\n")
        for line in lines:
            on_line(line.decode(errors="backslashreplace"))
        pending = bytearray(rest)
    if pending:
        on_line(pending.decode(errors="backslashreplace"))


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if process.returncode is None:
        process.send_signal(number)
