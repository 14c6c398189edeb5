"""Companion programs of a node: restarted when they end, stopped on request."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.errors import CannotListen
from headrace.runtime.supervision import BACKOFF_MAX_S, PARENT, Service, Supervisor

SLEEPING = "import time; time.sleep(600)"


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


class Pauses:
    """Remembers how long was waited, and waits for nothing; after some it wakes the test."""

    def __init__(self, count: int) -> None:
        self.waited: list[float] = []
        self.enough = asyncio.Event()
        self._count = count

    async def __call__(self, seconds: float) -> None:
        self.waited.append(seconds)
        if len(self.waited) >= self._count:
            self.enough.set()
            await asyncio.Event().wait()


async def test_a_program_that_ends_is_started_again_after_longer_and_longer_pauses() -> None:
    pauses = Pauses(7)
    supervisor = Supervisor([Service("short", python("pass"))], pauses)
    supervisor.start()
    try:
        await asyncio.wait_for(pauses.enough.wait(), 60)
    finally:
        await supervisor.stop()
    assert pauses.waited == [1, 2, 4, 8, 16, BACKOFF_MAX_S, BACKOFF_MAX_S]


async def test_a_program_whose_address_stays_taken_is_given_up_with_advice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pauses = Pauses(4)
    program = python(f"raise SystemExit({CannotListen.exit_code})")
    supervisor = Supervisor([Service("the registry", program, "move it")], pauses)
    supervisor.start()
    async with asyncio.timeout(60):
        while "move it" not in [vars(one).get("advice") for one in caplog.records]:
            await asyncio.sleep(0.01)
    await supervisor.stop()
    assert pauses.waited == [1, 2, 4]


async def test_a_program_that_cannot_be_started_takes_no_other_down(tmp_path: Path) -> None:
    pauses = Pauses(1)
    missing = Service("missing", [str(tmp_path / "none")])
    supervisor = Supervisor([missing, Service("fine", python(SLEEPING))], pauses)
    supervisor.start()
    try:
        await asyncio.wait_for(pauses.enough.wait(), 30)
        while "fine" not in supervisor.pids:
            await asyncio.sleep(0)
        running = set(supervisor.pids)
    finally:
        await supervisor.stop()
    assert running == {"fine"}


async def test_stopping_ends_all() -> None:
    supervisor = Supervisor([Service(name, python(SLEEPING)) for name in "ab"])
    supervisor.start()
    while len(supervisor.pids) < 2:
        await asyncio.sleep(0)
    pids = list(supervisor.pids.values())
    await supervisor.stop()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_stopping_before_the_start_has_no_effect() -> None:
    await Supervisor(()).stop()


def test_a_program_ends_with_its_parent(tmp_path: Path) -> None:
    """Even if the parent is killed and cannot stop the program."""
    child = tmp_path / "child.py"
    child.write_text(
        "import os, time\nfrom headrace.runtime.supervision import end_with_parent\n"
        "end_with_parent()\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"
    )
    parent = (
        "import os, subprocess, sys, time\n"
        f"env = {{**os.environ, {PARENT!r}: str(os.getpid())}}\n"
        f"subprocess.Popen([sys.executable, {str(child)!r}], env=env)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen(python(parent), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    # The pipe ends once no process holds it, the child included.
    assert process.stdout.read() == ""
    process.stdout.close()
    process.wait()
    assert pid != process.pid


async def test_a_program_may_be_left_as_it_is_when_it_ends() -> None:
    supervisor = Supervisor([Service("short", python("pass"))], Pauses(1), restarts=False)
    supervisor.start()
    async with asyncio.timeout(30):
        await supervisor.wait_until_idle()
        assert await supervisor.ended.get() == "short"
    await supervisor.stop()


async def test_programs_can_be_stopped_one_after_the_other() -> None:
    supervisor = Supervisor([Service(name, python(SLEEPING)) for name in "ab"])
    supervisor.start()
    while len(supervisor.pids) < 2:
        await asyncio.sleep(0)
    await supervisor.stop(["b"])
    assert set(supervisor.pids) == {"a"}
    await supervisor.stop()
    assert supervisor.pids == {}
    assert supervisor.ended.empty()


async def test_a_program_that_does_not_stop_is_killed() -> None:
    lines: list[str] = []
    stubborn = "import signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    stubborn += "print('deaf', file=sys.stderr, flush=True)\ntime.sleep(600)"
    service = Service("stubborn", python(stubborn), on_line=lines.append, stop_s_max=0.05)
    supervisor = Supervisor([service])
    supervisor.start()
    async with asyncio.timeout(30):
        while not lines:
            await asyncio.sleep(0.01)
    pid = supervisor.pids["stubborn"]
    await supervisor.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_lines_of_a_log_are_passed_on_however_long_they_are() -> None:
    lines: list[str] = []
    program = "import sys\nprint('dropped')\nsys.stderr.write('x' * 300_000 + '\\nend')"
    supervisor = Supervisor(
        [Service("chatty", python(program), on_line=lines.append)], restarts=False
    )
    supervisor.start()
    async with asyncio.timeout(30):
        await supervisor.wait_until_idle()
    assert [len(line) for line in lines] == [300_000, 3]
