"""Savings of each measure for a quick start of a local Spark session, with all others on.

    python -m benchmarks.spark_launching --rounds 3

Two figures for each: from the start of the pipeline that `make run` starts to its first row in a
refined table, and one run of a pipeline of eight small flows. Processor seconds include every
process that Spark and the driver have started, ended ones too. They are compared rather than
wall-clock times, which depend on the other programs on the machine; the variants take turns.
"""

import argparse
import contextlib
import ctypes
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.processes import TICKS_PER_SECOND
from benchmarks.report import row
from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.client.producer import Producer
from headrace.lake.catalog import Lake
from headrace.testing.process import BrokerProcess
from tests.processes.process_trees import descendants

ACCESS_LOGS = "examples/pipelines/access_logs"
REFINED = "refined.traffic_by_minute"
FLOWS = 8
RECORDS = 100
_END_S_MAX = 120.0
_BECOME_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER

Patches = Callable[[contextlib.ExitStack], None]


def _without_archive(stack: contextlib.ExitStack) -> None:
    stack.enter_context(patch("headrace.spark.launching.class_archive.java_options", lambda: ""))


def _without_fork_server(stack: contextlib.ExitStack) -> None:
    stack.enter_context(patch("headrace.spark.session._server_for", lambda settings: None))


def _without_anything(stack: contextlib.ExitStack) -> None:
    _without_archive(stack)
    _without_fork_server(stack)


VARIANTS: dict[str, Patches] = {
    "everything": lambda stack: None,
    "no class archive": _without_archive,
    "no fork server": _without_fork_server,
    "neither": _without_anything,
}


def run_patched(variant: str, arguments: list[str]) -> None:
    """Run `headrace` in this process with some measures off."""
    from headrace.cli.main import main as headrace

    with contextlib.ExitStack() as stack:
        VARIANTS[variant](stack)
        sys.argv = ["headrace", *arguments]
        headrace()


@contextmanager
def started(variant: str, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", __spec__.name, "--variant", variant, "--", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_END_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def cpu_of_tree(pid: int) -> float:
    """Return the processor time of a process, its descendants, and their ended children."""
    total = 0
    for one in (pid, *descendants(pid)):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / TICKS_PER_SECOND


def first_refined_row(variant: str, bootstrap: str, place: Path) -> tuple[float, float]:
    """Seconds and processor seconds until the pipeline of `make run` has filled a refined table."""
    lake = place / "lake"
    began = time.monotonic()
    with started(
        variant, *("pipelines", "run", ACCESS_LOGS, "--bootstrap", bootstrap, "--lake", str(lake))
    ) as process:
        while not (REFINED in Lake(lake).names() and Lake(lake).table(REFINED).rows().num_rows):
            assert process.poll() is None, "the pipeline has ended early"
            assert time.monotonic() - began < _END_S_MAX
            time.sleep(0.05)
        return time.monotonic() - began, cpu_of_tree(process.pid)


def eight_flows(variant: str, bootstrap: str, place: Path) -> tuple[float, float]:
    """Seconds and processor seconds of one run of eight small flows, start and end included."""
    folder = place / "eight"
    folder.mkdir()
    sources = "".join(f'\n[sources.s{n}]\ntopic = "small-{n}"\n' for n in range(FLOWS))
    (folder / "pipeline.toml").write_text(f'[pipeline]\nname = "eight"\n{sources}')
    (folder / "raw.sql").write_text(
        "".join(
            f"CREATE STREAMING TABLE raw.t{n} AS SELECT key, value, topic, partition, offset,"
            f" timestamp FROM STREAM(sources.s{n});\n"
            for n in range(FLOWS)
        )
    )
    before, began = _cpu_of_ended(), time.monotonic()
    lake = str(place / "lake")
    with started(
        variant,
        *("pipelines", "run", "--once", str(folder), "--bootstrap", bootstrap, "--lake", lake),
    ) as process:
        assert process.wait(2 * _END_S_MAX) == 0
    spent = time.monotonic() - began
    _wait_for_orphans()
    return spent, _cpu_of_ended() - before


def _cpu_of_ended() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _wait_for_orphans() -> None:
    """Wait for processes whose parent has ended: they are children of this process then."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            time.sleep(0.05)


FIGURES: dict[str, Callable[[str, str, Path], tuple[float, float]]] = {
    "first refined row": first_refined_row,
    "eight flows": eight_flows,
}


def measured(variants: Sequence[str], rounds: int) -> dict[tuple[str, str], list[tuple[Any, Any]]]:
    """Return (seconds, processor seconds) by variant and figure; the variants take turns."""
    results: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        from headrace.spark.launching.class_archive import make_archive

        make_archive(again=False)
        with BrokerProcess(place / "broker") as broker:
            bootstrap = broker.bootstrap_servers
            _fill(bootstrap)
            for number in range(rounds):
                for variant in variants:
                    for figure, measure in FIGURES.items():
                        with tempfile.TemporaryDirectory(dir=place) as own:
                            found = _in_own_process(measure, variant, bootstrap, Path(own))
                        results.setdefault((variant, figure), []).append(found)
                        print(f"{number + 1} {variant:<22} {figure:<18} {found}", flush=True)
    return results


def _in_own_process(
    measure: Callable[[str, str, Path], tuple[float, float]],
    variant: str,
    bootstrap: str,
    place: Path,
) -> tuple[float, float]:
    """Measure in a fork that adopts orphans, so that no processor second is lost."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
        status = 1
        try:
            wall, cpu = measure(variant, bootstrap, place)
            os.write(writer, f"{wall:.2f} {cpu:.2f}".encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    wall, cpu = map(float, text.split())
    return wall, cpu


def _fill(bootstrap: str) -> None:
    from examples.pipelines.access_logs import generate

    topics = [f"small-{n}" for n in range(FLOWS)]
    with Admin(bootstrap) as admin:
        admin.topics.create([NewTopic(name=topic) for topic in topics])
    with Producer(bootstrap) as producer:
        for topic in topics:
            for number in range(RECORDS):
                producer.send(topic, f"record {number}")
    subprocess.run([sys.executable, "-m", generate.__name__, "--bootstrap", bootstrap], check=True)


def report(results: dict[tuple[str, str], list[tuple[float, float]]]) -> str:
    """Format medians, with processor seconds as a ratio to the session with all measures."""
    lines = [
        row(["", *(f"{figure}, {unit}" for figure in FIGURES for unit in ("s", "CPU s", "ratio"))])
    ]
    lines.append(row(["---", *["---:"] * (3 * len(FIGURES))]))
    for variant in dict.fromkeys(variant for variant, _ in results):
        cells = [variant]
        for figure in FIGURES:
            wall, cpu = (
                statistics.median(part) for part in zip(*results[variant, figure], strict=True)
            )
            usual = statistics.median(cpu for _, cpu in results["everything", figure])
            cells += [f"{wall:.1f}", f"{cpu:.1f}", f"{cpu / usual:.2f}"]
        lines.append(row(cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=VARIANTS, default=[])
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.variant is not None:
        run_patched(arguments.variant, arguments.command)
        return
    wanted = ["everything", *(one for one in arguments.only or VARIANTS if one != "everything")]
    print(report(measured(wanted, arguments.rounds)))


if __name__ == "__main__":
    main()
