"""Processes of tests: ready by a line, killed, paused and stopped; with trivial programs."""

import os
import sys
from pathlib import Path

import pytest

from headrace.testing.process import BrokerFailed, NodeProcess, as_properties

SERVING = (
    "import sys, time; print('Headrace is ready on 127.0.0.1:1', flush=True);"
    " print('serving', file=sys.stderr, flush=True); time.sleep(600)"
)


def process_in(directory: Path) -> NodeProcess:
    return NodeProcess("node-1", directory / "node-1.log")


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def started(directory: Path) -> NodeProcess:
    process = process_in(directory)
    process.launch(python(SERVING))
    process.wait_until_ready()
    return process


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_process_is_ready_when_its_line_comes_and_dies_when_killed(tmp_path: Path) -> None:
    process = started(tmp_path)
    os.kill(process.pid, 0)
    process.kill()
    assert not process.is_running
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_log_has_all_starts(tmp_path: Path) -> None:
    process = started(tmp_path)
    process.kill()
    process.launch(python("import sys; sys.exit('broken disk')"))
    with pytest.raises(BrokerFailed, match="broken disk"):
        process.wait_until_ready()
    assert "broken disk" in process.log


def test_a_process_that_does_not_get_ready_is_killed(tmp_path: Path) -> None:
    process = process_in(tmp_path)
    process.launch(python("import time; time.sleep(600)"))
    with pytest.raises(BrokerFailed, match="did not get ready in time"):
        process.wait_until_ready(seconds_max=0.01)
    assert not process.is_running


def test_a_paused_process_continues_or_stops(tmp_path: Path) -> None:
    process = started(tmp_path)
    process.pause()
    while state_of(process.pid) != "T":
        pass
    process.resume()
    assert not process.is_paused
    process.pause()
    process.stop()
    assert not process.is_running


def test_python_values_become_properties() -> None:
    assert as_properties({"a": True, "b": ["x", 1], "c": 2.5}) == {
        "a": "true",
        "b": "x,1",
        "c": "2.5",
    }
