"""Other programs beside a node: started with it, started again if they end, stopped before it.

Each is a process of its own, so that none takes another down. A program that was killed together
with its node cannot be stopped by anyone, so programs watch their parent themselves.
"""

import asyncio
import ctypes
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

_log = logging.getLogger(__name__)

BACKOFF_S = 1.0
BACKOFF_MAX_S = 30.0
SETTLED_S = 60.0
"""Who has run for this long is not failing again and again."""
STOP_S_MAX = 15.0
CANNOT_LISTEN = 3
"""With this code a program ends that finds its address taken."""
TAKEN_MAX = 4
"""So often in a row a program may find that; the first times its forerunner may still be ending."""
PARENT = "HEADRACE_SUPERVISED_BY"
"""The variable that tells a program which process it is to end with."""

_SIGNAL_WHEN_PARENT_ENDS = 1  # PR_SET_PDEATHSIG

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Service:
    """A program by the name that it has in the log, and how it is started."""

    name: str
    command: Sequence[str]
    advice: str = "give it another address"
    """What to do where its address stays taken."""


class Supervisor:
    """Keeps services running until it is stopped."""

    def __init__(self, services: Sequence[Service], sleep: Sleep = asyncio.sleep) -> None:
        self._services = services
        self._sleep = sleep
        self._tasks: list[asyncio.Task[None]] = []
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()

    @property
    def pids(self) -> Mapping[str, int]:
        """The processes that run now, by service."""
        return {name: process.pid for name, process in self._processes.items()}

    def start(self) -> None:
        """Begin; nothing is waited for."""
        self._tasks = [
            asyncio.create_task(self._keep(service), name=service.name)
            for service in self._services
        ]

    async def stop(self) -> None:
        """End all, at once those that do not end by themselves in time."""
        self._stopping.set()
        for task in self._tasks:
            if task.get_name() not in self._processes:
                task.cancel()  # It waits to start its program again.
        for process in list(self._processes.values()):
            _signal(process, signal.SIGTERM)
        _, late = await asyncio.wait(self._tasks, timeout=STOP_S_MAX) if self._tasks else ((), ())
        for name, process in list(self._processes.items()):
            _log.warning("%s does not end and is killed", name)
            _signal(process, signal.SIGKILL)
        for task in late:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, service: Service) -> None:
        backoff_s, taken = BACKOFF_S, 0
        clock = asyncio.get_running_loop().time
        while not self._stopping.is_set():
            began = clock()
            code = await self._run(service)
            if self._stopping.is_set():
                return
            taken = taken + 1 if code == CANNOT_LISTEN else 0
            if taken == TAKEN_MAX:
                _log.error(
                    "%s is not started: its address is taken; %s", service.name, service.advice
                )
                return
            if clock() - began > SETTLED_S:
                backoff_s = BACKOFF_S
            _log.error(
                "%s has ended with code %s and is started again in %g s",
                *(service.name, code, backoff_s),
            )
            await self._sleep(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)

    async def _run(self, service: Service) -> int | str:
        try:
            process = await asyncio.create_subprocess_exec(
                *service.command,
                stdin=asyncio.subprocess.DEVNULL,
                # Ctrl-C is for the node, which ends the others in order.
                start_new_session=True,
                env={**os.environ, PARENT: str(os.getpid())},
            )
        except OSError as error:
            return str(error)
        self._processes[service.name] = process
        if self._stopping.is_set():
            _signal(process, signal.SIGTERM)
        try:
            return await process.wait()
        finally:
            del self._processes[service.name]


def end_with_parent() -> None:
    """Have this process told to stop when the node that started it is gone; else do nothing."""
    parent = os.environ.pop(PARENT, "")
    if not parent:
        return
    try:
        ctypes.CDLL(None).prctl(_SIGNAL_WHEN_PARENT_ENDS, signal.SIGTERM)
    except (OSError, AttributeError):  # Only Linux can do that.
        return
    if os.getppid() != int(parent):
        # It was gone before we asked.
        os.kill(os.getpid(), signal.SIGTERM)


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if process.returncode is None:
        process.send_signal(number)
