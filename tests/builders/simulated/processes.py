"""An event loop in virtual time on which several simulated processes run.

Each callback belongs to the process in whose context it was scheduled, so a process can die at any
moment: none of its callbacks runs afterwards, not even those that would clean up. A paused process
keeps its callbacks until it is resumed, as after SIGSTOP.
"""

import asyncio
import contextvars
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

_TURNS_AT_ONE_TIME_MAX = 200_000


class Died(SystemExit):
    """The process of the running code is dead. The loop catches it; no other code may."""


class Broken(AssertionError):
    """An invariant does not hold; it ends the simulation."""


class Process:
    """A process on a machine; `machine` names its disk and its place in the network."""

    def __init__(self, machine: str) -> None:
        self.machine = machine
        self.is_alive = True
        self.is_paused = False
        self.held: deque[asyncio.Handle] = deque()
        self.tasks: list[asyncio.Task[Any]] = []
        self.context = contextvars.copy_context()
        self.context.run(_PROCESS.set, self)
        self._tasks_kept = 256

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function as a part of this process."""
        return self.context.copy().run(function, *arguments)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return asyncio.get_event_loop().create_task(work, context=self.context.copy())

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Keep a task alive, because the garbage collector would run the rest of its code."""
        self.tasks.append(task)
        if len(self.tasks) > self._tasks_kept:
            self.tasks = [one for one in self.tasks if not one.done()]
            self._tasks_kept = 256 + 2 * len(self.tasks)


_PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


def current_process() -> Process | None:
    return _PROCESS.get()


class Machine(Protocol):
    """The hardware that a process runs on."""

    def thread_delay_s(self, machine: str) -> float: ...

    async def connect(self, host: str, port: int, factory: Callable[[], Any]) -> Any: ...

    def listen(self, host: str, port: int, factory: Callable[[], Any]) -> Any: ...


class SimulatedLoop(asyncio.BaseEventLoop):
    """Jumps to the next timer when nothing is ready."""

    _ready: Any  # Handles of asyncio, whose private parts are not declared.
    _scheduled: Any

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.chance = chance
        self.machines: Machine
        self.problems: list[str] = []
        self.failure: Broken | None = None
        self._now_s = 0.0
        self._turns = 0
        self.turns = 0
        self.set_task_factory(_make_task)

    def time(self) -> float:
        return self._now_s

    def resume(self, process: Process) -> None:
        process.is_paused = False
        self._ready.extend(process.held)
        process.held.clear()

    def _run_once(self) -> None:
        if self.failure is not None:
            raise self.failure
        if not self._ready:
            self._jump()
        handle = self._ready.popleft()
        if handle._cancelled:
            return
        process = handle._context.get(_PROCESS)
        if process is not None:
            if not process.is_alive:
                return
            if process.is_paused:
                process.held.append(handle)
                return
        self._turns += 1
        self.turns += 1
        assert self._turns < _TURNS_AT_ONE_TIME_MAX, f"no time passes: {handle!r}"
        try:
            handle._run()
        except Died:
            assert process is not None
            assert not process.is_alive

    def _jump(self) -> None:
        scheduled = self._scheduled
        while True:
            assert scheduled, "nothing will ever happen"
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                break
        if handle._when > self._now_s:
            self._now_s = handle._when
            self._turns = 0
        self._ready.append(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        return

    def _process_events(self, event_list: Any) -> None:
        return

    def _write_to_self(self) -> None:
        return

    # The doors of asyncio to the machine.

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """Run a function a little later; the loop learns of its end later still."""
        future = self.create_future()
        process = current_process()
        machine = process.machine if process is not None else ""
        delay_s = self.machines.thread_delay_s(machine)

        def run() -> None:
            try:
                result = func(*args)
            except Died:
                raise
            except Exception as error:
                self.call_later(delay_s / 4, _settle, future, error, None)
            else:
                self.call_later(delay_s / 4, _settle, future, None, result)

        self.call_later(delay_s, run)
        return future

    async def create_connection(self, protocol_factory: Any, host: Any, port: Any) -> Any:  # type: ignore[override]
        return await self.machines.connect(host, port, protocol_factory)

    async def create_server(self, protocol_factory: Any, *, sock: Any) -> Any:  # type: ignore[override]
        return self.machines.listen(sock.host, sock.port, protocol_factory)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if isinstance(context.get("exception"), Died):
            return
        self.problems.append(f"{context.get('message')}: {context.get('exception')!r}")


def _make_task(loop: Any, work: Any, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
    context = options.get("context")
    process = context.get(_PROCESS) if context is not None else _PROCESS.get()
    if process is not None:
        process.keep(task)
    return task


def _settle(future: "asyncio.Future[Any]", error: Exception | None, result: Any) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def bury(processes: list[Process]) -> None:
    """End the tasks of processes when the simulation is over; whatever they still do is ignored."""
    for process in processes:
        process.is_alive = False
        process.held.clear()
        for task in process.tasks:
            if task.done():
                if not task.cancelled():
                    task.exception()
                continue
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            work = task.get_coro()
            try:
                process.run(work.close)
            except BaseException:
                continue
        process.tasks.clear()


class RunNow:
    """A pool of threads whose work is done when it is submitted."""

    def __init__(self, count: int, name: str) -> None:
        pass

    def __enter__(self) -> "RunNow":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def submit(self, function: Callable[..., T], *arguments: Any) -> Any:
        from concurrent.futures import Future

        future: Future[T] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def map(self, function: Callable[..., T], things: Any) -> list[T]:
        return [function(one) for one in things]

    def shutdown(self, wait: bool = True) -> None:
        return


class OwnLoop:
    """Replaces the thread of the quorum: its work shares the simulated loop."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.get_running_loop()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        await asyncio.sleep(0)
        result = await self.loop.create_task(work)
        await asyncio.sleep(0)
        return result

    async def stop(self) -> None:
        return
