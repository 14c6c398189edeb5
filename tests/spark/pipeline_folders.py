"""Pipelines that tests write into folders, and readers of their tables and topics."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from headrace.client.reader import RecordReader, Start
from headrace.lake.catalog import Lake
from headrace.pipelines.commands import MetricsPort, Overrides, run
from headrace.testing.process import BrokerProcess
from tests.processes.nodes import Node

AnyBroker = BrokerProcess | Node
"""Headrace or Apache Kafka."""
WAIT_S = 150.0


class PipelineFolder:
    """A pipeline's folder, with readers of its tables and of topics."""

    def __init__(self, path: Path, broker: AnyBroker) -> None:
        self.path = path
        self.broker = broker
        path.mkdir(parents=True, exist_ok=True)

    @property
    def lake(self) -> Lake:
        return Lake(self.path / "lake")

    @property
    def overrides(self) -> Overrides:
        return Overrides(bootstrap=self.broker.bootstrap_servers)

    def write(self, **files: str) -> Self:
        """Write files: `tables_sql="CREATE ..."` becomes tables.sql."""
        for name, content in files.items():
            stem, _, suffix = name.rpartition("_")
            (self.path / f"{stem}.{suffix}").write_text(content)
        return self

    def rows(self, table: str, *columns: str) -> list[Any]:
        """Return the sorted rows of a table as tuples, or as values if there is one column."""
        found = self.lake.table(table).rows(columns=list(columns)).to_pylist()
        values = [tuple(row[name] for name in columns) for row in found]
        return sorted(value[0] for value in values) if len(columns) == 1 else sorted(values)

    def read_topic(self, topic: str) -> list[bytes]:
        """Return the values of a topic's committed records, by partition and offset."""
        return [value for _, value in self.records(topic)]

    def records(self, topic: str) -> list[tuple[tuple[int, int], bytes]]:
        """Return the values with their partition and offset."""
        properties = {"isolation.level": "read_committed"}
        found: list[tuple[tuple[int, int], bytes]] = []
        with closing(RecordReader(self.broker.bootstrap_servers, topic, properties)) as reader:
            reader.assign(Start(from_beginning=True), reader.partitions())
            while not reader.is_at_end:
                found += [
                    ((m.partition() or 0, m.offset() or 0), m.value() or b"") for m in reader.read()
                ]
        return sorted(found)


class Folder(PipelineFolder):
    """A pipeline's folder, run in the session that all tests share."""

    def __init__(self, path: Path, broker: AnyBroker, spark: SparkSession) -> None:
        super().__init__(path, broker)
        self.spark = spark

    def once(self) -> None:
        run([self.path], is_once=True, overrides=self.overrides, spark=self.spark)


class Continuously:
    """Runs pipelines in a thread of this process, together, until the block is left."""

    def __init__(self, folders: Sequence[Folder], metrics: MetricsPort | None = None) -> None:
        self._metrics = metrics
        self.errors: list[BaseException] = []
        self._folders = folders
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._is_ended.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def check(self) -> None:
        """Fail the test if the run has failed."""
        assert self.errors == []

    def _run(self) -> None:
        try:
            run(
                [folder.path for folder in self._folders],
                is_once=False,
                overrides=self._folders[0].overrides,
                spark=self._folders[0].spark,
                is_stopped=self._is_ended.is_set,
                metrics=self._metrics,
            )
        except BaseException as error:  # Reported by the test that waits.
            self.errors.append(error)


class JumpingClock:
    """The time of day of this process, which a test may set ahead and back."""

    def __init__(self) -> None:
        self.ahead_ns = 0
        self._time_ns = time.time_ns

    def __call__(self) -> int:
        return self._time_ns() + self.ahead_ns


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Poll a condition; Spark's work takes longer than `nodes.eventually` waits."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {WAIT_S:.0f} s: {what}"
        time.sleep(0.2)


def toml(name: str, topic: str, schema: str, **more: str) -> str:
    """A pipeline.toml with one JSON source called `events`."""
    settings = "".join(f'{key} = "{value}"\n' for key, value in more.items())
    return (
        f'[pipeline]\nname = "{name}"\n{settings}'
        f'[sources.events]\ntopic = "{topic}"\nformat = "json"\nschema = "{schema}"\n'
    )


def send(
    broker: AnyBroker,
    topic: str,
    values: Iterable[Mapping[str, Any] | bytes],
    timestamp_ms: int = 0,
    key: bytes | None = None,
    headers: dict[str, str | bytes | None] | None = None,
) -> None:
    """Produce values as JSON and bytes unchanged, by default with the current time."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    for value in values:
        payload = value if isinstance(value, bytes) else json.dumps(value).encode()
        producer.produce(topic, payload, key, timestamp=timestamp_ms, headers=headers)
    assert producer.flush(30) == 0
