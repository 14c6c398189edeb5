"""`make run` starts a node at once, and a pipeline beside it."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.client.producer import Producer
from headrace.lake.catalog import Lake
from tests.processes.process_trees import descendants

ROOT = Path(__file__).resolve().parents[2]
TABLE = "refined.traffic_by_minute"
READY = re.compile(r"^Headrace is ready on (\S+)$", re.MULTILINE)
PIPELINE = "access-logs:"
"""The prefix of the running pipeline's lines."""
LIVE = re.compile(
    r"^access-logs: raw [1-9][\d,]*/[\d,]+  staging [\d,]+/[\d,]+  trusted [\d,]+/[\d,]+"
    r"  refined [1-9][\d,]*/[\d,]+  in/out  (quarantined [\d,]+  )?lag [\d,]+  [\d,]+ rows/s$",
    re.MULTILINE,
)
"""The line of progress, once rows have reached the last table."""
WAIT_S = 170.0
END_S = 30.0


@pytest.mark.timeout(300)
def test_traffic_reaches_the_refined_table_and_ctrl_c_ends_everything(tmp_path: Path) -> None:
    """USE-4: the live pipeline of access logs reports rows of each zone, lag, quarantine and rate.

    The node does not wait for Spark: it accepts records before the pipeline reports anything.
    """
    lake, output = tmp_path / "lake", tmp_path / "output.txt"
    command = [sys.executable, "tools/run.py", "--listen", "127.0.0.1:0"]
    command += [
        "--data",
        str(tmp_path / "data"),
        "--lake",
        str(lake),
        "--registry",
        "no",
        "--rest",
        "no",
    ]
    with output.open("w") as file:
        run = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=file)
    try:
        with Producer(address_in(output, run)) as producer:
            producer.send("early", "a record").result(END_S)
        assert PIPELINE not in output.read_text(), "the node has waited for Spark"
        deadline = time.monotonic() + WAIT_S
        while not (requests_in(lake) and LIVE.search(output.read_text())):
            assert run.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.5)
        shown = subprocess.run(
            [sys.executable, "-m", "headrace.cli.main", "tables", "show", TABLE, "--lake", lake],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert "requests" in shown.stdout, "users can query the tables while it runs"
        children = descendants(run.pid)
        run.send_signal(signal.SIGINT)
        assert run.wait(90) == 0, output.read_text()
    finally:
        run.kill()
    assert "Traceback" not in output.read_text()
    # Python workers notice the end of their JVM within moments.
    deadline = time.monotonic() + END_S
    while [pid for pid in children if is_alive(pid)]:
        assert time.monotonic() < deadline, "processes stayed behind"
        time.sleep(0.2)


def address_in(output: Path, run: "subprocess.Popen[bytes]") -> str:
    """Wait until the node reports its address, and return it."""
    deadline = time.monotonic() + WAIT_S
    while (ready := READY.search(output.read_text())) is None:
        assert run.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.05)
    return ready[1]


def requests_in(lake: Path) -> int:
    """Return the number of requests that the table of the running pipeline has counted."""
    if TABLE not in Lake(lake).names():
        return 0
    return sum(Lake(lake).table(TABLE).rows(columns=["requests"])["requests"].to_pylist())


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_without_the_pipeline_a_node_and_its_services_run(tmp_path: Path) -> None:
    command = [sys.executable, "tools/run.py", "--no-pipeline", "--listen", "127.0.0.1:0"]
    command += [
        "--data",
        str(tmp_path / "data"),
        "--registry",
        "127.0.0.1:0",
        "--rest",
        "127.0.0.1:0",
    ]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    assert run.stdout is not None
    try:
        missing = {"Headrace", "Headrace registry", "Headrace REST proxy"}
        for line in run.stdout:
            missing.discard(line.partition(" is ready on ")[0])
            if not missing:
                break
        assert not missing
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 0
    finally:
        run.kill()
        run.stdout.close()
