"""`format("headrace")` beside Spark's own Kafka connector, on the same data in one run, by turns.

The connector has the settings that made it quickest (docs/internals/performance.md lists them).
Data are JSON records of 100 B in six partitions of a Headrace broker. Lower is better in every
figure. Processor time includes all that Spark starts: its JVM and Python's workers. The exit code
is 1 if a figure misses its target in `spark_targets.py`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from benchmarks.report import collect, table
from benchmarks.spark_processes import spark_cpu_seconds, worker_megabytes
from benchmarks.spark_targets import WORKER, missed, verdict
from benchmarks.workloads import FAST_PRODUCER, QUIET, Figure
from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.spark.jars import CONNECTOR
from headrace.spark.session import open_session
from headrace.testing.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PARTITIONS = 6
TOPIC, LIVE_TOPIC = "stored", "live"
RECORD_BYTES = 100
LIVE_RECORDS_PER_SECOND = 1_000
SCHEMA = "id LONG, user STRING, amount DOUBLE, at LONG, note STRING"
SCHEMA_NAMES = ("id", "user", "amount", "at", "note")


@dataclass(frozen=True, slots=True)
class Contestant:
    """A way to read topics."""

    name: str
    format: str
    batch: Mapping[str, str] = field(default_factory=dict)
    stream: Mapping[str, str] = field(default_factory=dict)


HEADRACE = Contestant("Headrace", "headrace")
STOCK = Contestant(
    "connector",
    "kafka",
    batch={
        "kafka.max.partition.fetch.bytes": str(8 << 20),
        "kafka.fetch.max.bytes": str(64 << 20),
        "kafka.max.poll.records": "20000",
        "kafka.check.crcs": "false",
        "kafka.receive.buffer.bytes": str(4 << 20),
    },
    stream={"kafka.fetch.max.wait.ms": "20"},
)
Results = dict[str, dict[tuple[str, str], list[float]]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 3, 10])
    parser.add_argument("--seconds", type=float, default=15, help="how long latency is measured")
    parser.add_argument("--alone", action="store_true", help="without the connector")
    parser.add_argument("--only", nargs="+", choices=list(LOADS), default=list(LOADS))
    given = parser.parse_args()
    rows = [int(million * 1e6) for million in given.millions]
    results = run(rows, given.rounds, given.seconds, is_alone=given.alone, loads=given.only)
    print(table(results), flush=True)
    return verdict(missed(results))


def run(
    rows: Sequence[int] = (1_000_000, 3_000_000, 10_000_000),
    rounds: int = 3,
    seconds: float = 15,
    *,
    is_alone: bool = False,
    loads: Sequence[str] | None = None,
) -> Results:
    """Every load by turns with both, the first round not counted."""
    contestants = [HEADRACE] if is_alone else [HEADRACE, STOCK]
    results: Results = {contestant.name: {} for contestant in contestants}
    with bench(rows[-1], contestants) as scene:
        for load in loads or LOADS:
            for number in range(rounds + 1):
                for contestant in contestants if number % 2 else contestants[::-1]:
                    figures = LOADS[load](scene, contestant, rows if number else rows[:1], seconds)
                    print(f"round {number} {contestant.name}: {figures}", file=sys.stderr)
                    if number:
                        collect(figures, results[contestant.name])
    return results


@dataclass(slots=True)
class Scene:
    """A session, a broker with stored records, and a place for checkpoints."""

    spark: "SparkSession"
    broker: BrokerProcess
    directory: Path
    stored: int
    checkpoints: int = 0

    def new_checkpoint(self) -> str:
        self.checkpoints += 1
        return str(self.directory / f"checkpoint-{self.checkpoints}")


@contextmanager
def bench(rows: int, contestants: Sequence[Contestant]) -> Iterator[Scene]:
    """Everything that is needed, made once."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="headrace-bench-spark-", dir=parent))
    jars = stock_jars() if STOCK in contestants else []
    settings = {
        "spark.driver.memory": "2g",
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.streaming.numRecentProgressUpdates": "5000",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    try:
        with BrokerProcess(directory / "broker") as broker:
            store(broker, rows)
            spark = open_session("bench", "local[2]", settings)
            try:
                yield Scene(spark, broker, directory, rows)
            finally:
                spark.stop()
    finally:
        shutil.rmtree(directory)


def stock_jars() -> list[Path]:
    """The connector's jars, fetched through Maven once."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(root) / "headrace" / "spark-connector-4.2.0"
    for artifact in CONNECTOR:
        _group, name, version = artifact.split(":")
        if not (directory / f"{name}-{version}.jar").exists():
            goal = ["dependency:copy", f"-Dartifact={artifact}:jar"]
            command = ["mvn", "-B", "-q", *goal, f"-DoutputDirectory={directory}"]
            subprocess.run(command, check=True)
    return sorted(directory.glob("*.jar"))


def store(broker: BrokerProcess, rows: int) -> None:
    """Records of about 100 B, in turns of 500 to the partitions."""
    with Admin(broker.bootstrap_servers) as admin:
        admin.topics.create(
            [NewTopic(name=name, partitions=PARTITIONS) for name in (TOPIC, LIVE_TOPIC)]
        )
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **FAST_PRODUCER})
    messages = [{"value": record(number)} for number in range(50_000)]
    for turn in range(rows // 500):
        begin = 500 * turn % len(messages)
        while len(producer) > 500_000:
            producer.poll(0.005)
        producer.produce_batch(TOPIC, messages[begin : begin + 500], partition=turn % PARTITIONS)
    assert producer.flush(120) == 0


def record(number: int) -> bytes:
    body = {
        "id": number,
        "user": f"user-{number % 997}",
        "amount": round(number * 0.37 % 1000, 2),
        "at": 1_790_000_000_000 + number,
    }
    text = json.dumps({**body, "note": ""}, separators=(",", ":"))
    body["note"] = "n" * max(0, RECORD_BYTES - len(text))
    return json.dumps(body, separators=(",", ":")).encode()


def frame(scene: Scene, contestant: Contestant, rows: int, **options: str) -> "DataFrame":
    """The first so many stored records."""
    ends = {str(partition): -1 for partition in range(PARTITIONS)}
    if rows < scene.stored:
        ends = dict.fromkeys(ends, rows // PARTITIONS)
    return (
        scene.spark.read.format(contestant.format)
        .options(**{"kafka.bootstrap.servers": scene.broker.bootstrap_servers})
        .options(**contestant.batch, **options)
        .options(subscribe=TOPIC, endingOffsets=json.dumps({TOPIC: ends}))
        .load()
    )


def read_to_noop(
    scene: Scene, contestant: Contestant, rows: Sequence[int], seconds: float
) -> list[Figure]:
    """All seven columns to a sink that does nothing."""
    figures = []
    for count in rows:
        taken = measured(to_noop(frame(scene, contestant, count)))
        figures += per_million("read {} to noop", taken, count)
    return figures + largest_worker(contestant)


def typed(scene: Scene, contestant: Contestant, rows: int) -> "DataFrame":
    """JSON as typed columns: by the source itself, or by Spark's `from_json`."""
    if contestant is HEADRACE:
        columns = ",".join(SCHEMA_NAMES)
        return frame(scene, contestant, rows, format="json", schema=SCHEMA, columns=columns)
    payload = f"from_json(CAST(value AS STRING), '{SCHEMA}') AS row"
    return frame(scene, contestant, rows).selectExpr(payload).select("row.*")


def read_json(
    scene: Scene, contestant: Contestant, rows: Sequence[int], seconds: float
) -> list[Figure]:
    """Typed columns to a sink that does nothing."""
    figures = []
    for count in sizes_for(contestant, rows):
        taken = measured(to_noop(typed(scene, contestant, count)))
        figures += per_million("JSON to typed columns, {}", taken, count)
    return figures + largest_worker(contestant)


def read_to_parquet(
    scene: Scene, contestant: Contestant, rows: Sequence[int], seconds: float
) -> list[Figure]:
    """Typed columns to Parquet files."""
    place = str(scene.directory / "parquet")
    figures = []
    for count in sizes_for(contestant, rows):
        writing = typed(scene, contestant, count).write.mode("overwrite")
        taken = measured(partial(writing.parquet, place))
        figures += per_million("topic to typed Parquet, {}", taken, count)
    return figures + largest_worker(contestant)


def sizes_for(contestant: Contestant, rows: Sequence[int]) -> Sequence[int]:
    """Rows of JSON to read; the stock connector is five times slower and gets only the first."""
    return rows if contestant is HEADRACE else rows[:1]


def to_noop(rows: "DataFrame") -> Callable[[], None]:
    return rows.write.format("noop").mode("overwrite").save


def largest_worker(contestant: Contestant) -> list[Figure]:
    """The connector has no Python workers."""
    return [Figure(WORKER.name, WORKER.unit, worker_megabytes())] if contestant is HEADRACE else []


def per_million(load: str, taken: "Taken", count: int) -> list[Figure]:
    name = load.format(f"{count / 1e6:g} M records")
    return [
        Figure(name, "s per million", taken.seconds / count * 1e6),
        Figure(name, "CPU s per million", taken.cpu_seconds / count * 1e6),
    ]


@dataclass(frozen=True, slots=True)
class Taken:
    """Cost of a job."""

    seconds: float
    cpu_seconds: float


def measured(job: Callable[[], None]) -> Taken:
    before, started = spark_cpu_seconds(), time.perf_counter()
    job()
    return Taken(time.perf_counter() - started, spark_cpu_seconds() - before)


def latency(
    scene: Scene, contestant: Contestant, rows: Sequence[int], seconds: float
) -> list[Figure]:
    """From a record's creation to the end of the micro-batch that it was in, trigger 0."""
    live = LiveRecords(scene.broker.bootstrap_servers)
    query = (
        scene.spark.readStream.format(contestant.format)
        .options(**{"kafka.bootstrap.servers": scene.broker.bootstrap_servers})
        .options(**contestant.stream, subscribe=LIVE_TOPIC, startingOffsets="latest")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", scene.new_checkpoint())
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        wait_until_running(query)
        before = spark_cpu_seconds()
        live.run(seconds)
        time.sleep(1)
        used = spark_cpu_seconds() - before
        delays = live.delays_ms(query.recentProgress)
    finally:
        query.stop()
    assert len(delays) > live.count * 0.9, f"{len(delays)} of {live.count} records were seen"
    delays.sort()
    name = f"micro-batch latency, {LIVE_RECORDS_PER_SECOND} records a second"
    return [
        Figure(name, "ms p50", delays[len(delays) // 2]),
        Figure(name, "ms p99", delays[len(delays) * 99 // 100]),
        Figure(name, "CPU s per s", used / (seconds + 1)),
    ]


LOADS = {
    "noop": read_to_noop,
    "json": read_json,
    "parquet": read_to_parquet,
    "latency": latency,
}


class LiveRecords:
    """A steady stream of records whose moments of creation are known."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **QUIET})
        with Admin(bootstrap) as admin:
            ends = admin.partitions.offsets(LIVE_TOPIC, -1)
        self._first = {one.partition: one.offset for one in ends}
        self._created_ms: dict[int, list[float]] = {one.partition: [] for one in ends}
        self.count = 0

    def run(self, seconds: float) -> None:
        value = record(1)
        started = time.time()
        while time.time() < started + seconds:
            due = int((time.time() - started) * LIVE_RECORDS_PER_SECOND)
            for number in range(self.count, due):
                partition = number % PARTITIONS
                self._created_ms[partition].append(time.time() * 1000)
                self._producer.produce(LIVE_TOPIC, value, partition=partition)
            self.count = max(self.count, due)
            self._producer.poll(0)
            time.sleep(0.002)
        assert self._producer.flush(30) == 0

    def delays_ms(self, progress: Sequence[Any]) -> list[float]:
        delays: list[float] = []
        for one in progress:
            told = json.loads(one.json) if hasattr(one, "json") else one
            source = told["sources"][0]
            if not told["numInputRows"] or not source["startOffset"]:
                continue
            start, end = parsed(source["startOffset"]), parsed(source["endOffset"])
            done_ms = finished_ms(told)
            for partition, offset in end.items():
                first = self._first[partition]
                created = self._created_ms[partition]
                known = range(max(0, start[partition] - first), offset - first)
                delays += [done_ms - created[index] for index in known]
        return delays


def parsed(offset: Any) -> dict[int, int]:
    positions = json.loads(offset) if isinstance(offset, str) else offset
    return {int(partition): at for partition, at in positions[LIVE_TOPIC].items()}


def finished_ms(progress: Mapping[str, Any]) -> float:
    """When a micro-batch had done its work; writing down that it has comes after."""
    began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00"))
    took = progress["durationMs"]
    return began.timestamp() * 1000 + float(took["triggerExecution"] - took.get("commitOffsets", 0))


def wait_until_running(query: "StreamingQuery") -> None:
    deadline = time.monotonic() + 60
    while not query.status["isTriggerActive"]:
        if query.exception() is not None:
            raise AssertionError(str(query.exception()))
        if time.monotonic() > deadline:
            raise AssertionError("the query did not begin within a minute")
        threading.Event().wait(0.1)
    threading.Event().wait(3)  # The first triggers load classes and workers.


if __name__ == "__main__":
    sys.exit(main())
