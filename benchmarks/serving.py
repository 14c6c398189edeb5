"""`headrace serve` under load: lookups, queries and refreshes in a table of a million rows.

The server is a process of its own; the client keeps one connection per asker. Times are what the
client sees, so they include the client's own work and other load on the machine. Ends with 1 if
lookups take longer than `spark_targets.py` allows.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.processes import cpu_seconds, resident_megabytes
from benchmarks.spark_targets import LOOKUP_NAME, above, verdict
from benchmarks.workloads import Figure
from headrace.lake.catalog import Lake
from headrace.lake.tables import Table

ROWS = 1_000_000
LOOKUPS = 4_000
_SEEN_S_MAX = 60
_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("region", pa.int32()),
        ("amount", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def run(rows: int = ROWS, lookups: int = LOOKUPS) -> list[Figure]:
    """All figures of one server over one table."""
    with tempfile.TemporaryDirectory(prefix="headrace-serving-") as folder:
        lake = Lake(folder)
        table = lake.create("refined.orders", _SCHEMA)
        append(table, sample(rows))
        with server(Path(folder)) as (process, port):
            figures = measure(process, port, table, rows, lookups)
    return figures


def measure(
    process: subprocess.Popen[str], port: int, table: Table, rows: int, lookups: int
) -> list[Figure]:
    asker = HTTPConnection("127.0.0.1", port, timeout=120)
    began = time.perf_counter()
    ask(asker, "/query?sql=SELECT+count(*)+FROM+orders")
    first = time.perf_counter() - began
    without_index = "/query?sql=FROM+orders+WHERE+name='user-{}'"
    figures = [Figure("first query, which loads the table", "s", first)]
    figures += quantiles(
        "query by a column without index", timed(port, without_index.format, rows, 500)
    )
    await_index(asker)
    for askers in (1, 4):
        figures += lookup_figures(process, port, rows, lookups, askers)
    sql = "/query?sql=SELECT+region,sum(amount)+FROM+orders+GROUP+BY+region"
    figures += quantiles("aggregate over all rows", timed(port, lambda _: sql, rows, 50))
    figures.append(Figure("append seen after", "s", seen_after(asker, table, rows)))
    figures.append(Figure("memory", "MB RSS", resident_megabytes(process.pid)))
    asker.close()
    return figures


def await_index(asker: HTTPConnection) -> None:
    """Look rows up by id until they have earned the index, which is made within a round."""
    ends_at = time.monotonic() + 60
    while b'"indexes":["id"]' not in ask(asker, "/tables/orders"):
        if time.monotonic() > ends_at:
            raise RuntimeError("lookups by id have got no index within a minute")
        ask(asker, "/tables/orders/rows?id=1")
        time.sleep(0.1)


def lookup_figures(
    process: subprocess.Popen[str], port: int, rows: int, lookups: int, askers: int
) -> list[Figure]:
    """Lookups by key, so many askers at once."""
    name = LOOKUP_NAME.format(askers)
    before = cpu_seconds(process.pid)
    began = time.perf_counter()
    with ThreadPoolExecutor(askers) as threads:
        parts = threads.map(
            lambda _: timed(port, "/tables/orders/rows?id={}".format, rows, lookups // askers),
            range(askers),
        )
        times = [one for part in parts for one in part]
    took = time.perf_counter() - began
    return [
        *quantiles(name, times),
        Figure(name, "per s", len(times) / took),
        Figure(f"{name}, server", "CPU µs", (cpu_seconds(process.pid) - before) * 1e6 / len(times)),
    ]


def timed(port: int, path: Callable[[int], str], rows: int, count: int) -> list[float]:
    """Send `count` requests for random keys; return the seconds that each took."""
    chance = random.Random(count)
    asker = HTTPConnection("127.0.0.1", port, timeout=120)
    found: list[float] = []
    for _ in range(count):
        address = path(chance.randrange(rows))
        began = time.perf_counter()
        ask(asker, address)
        found.append(time.perf_counter() - began)
    asker.close()
    return found


def seen_after(asker: HTTPConnection, table: Table, rows: int) -> float:
    """From the commit of new rows until a query counts them."""
    append(table, sample(1_000, start=rows))
    began = time.perf_counter()
    wanted = f'"n":{rows + 1_000}'.encode()
    while wanted not in ask(asker, "/query?sql=SELECT+count(*)+AS+n+FROM+orders"):
        if time.perf_counter() - began > _SEEN_S_MAX:
            raise RuntimeError(f"what was appended is not seen after {_SEEN_S_MAX} s")
        time.sleep(0.01)
    return time.perf_counter() - began


def ask(asker: HTTPConnection, path: str) -> bytes:
    asker.request("GET", path)
    answer = asker.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {body.decode()}")
    return body


def quantiles(name: str, seconds: Sequence[float]) -> list[Figure]:
    cuts = statistics.quantiles(seconds, n=100)
    return [
        Figure(f"{name}, p50", "ms", cuts[49] * 1e3),
        Figure(f"{name}, p99", "ms", cuts[98] * 1e3),
    ]


def sample(rows: int, start: int = 0) -> pa.Table:
    chance = np.random.default_rng(start)
    ids = start + chance.permutation(rows)
    return pa.table(
        {
            "id": ids,
            "name": [f"user-{one}" for one in ids],
            "region": chance.integers(0, 50, rows),
            "amount": chance.random(rows),
            "at": pa.array(chance.integers(0, 10**15, rows), pa.timestamp("us", "UTC")),
        }
    ).cast(_SCHEMA)


def append(table: Table, rows: pa.Table) -> None:
    writer = table.writer()
    for batch in rows.to_batches():
        writer.write(batch)
    table.append(writer.close())


@contextmanager
def server(lake: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "headrace.cli.main", "serve", "--lake", str(lake)]
    command += ["--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline().rpartition(":")[2])
        finally:
            process.terminate()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--lookups", type=int, default=LOOKUPS)
    arguments = parser.parse_args()
    figures = run(arguments.rows, arguments.lookups)
    for figure in figures:
        print(f"{figure.name:45} {figure.value:12,.2f} {figure.unit}")
    return verdict(above(figures))


if __name__ == "__main__":
    sys.exit(main())
