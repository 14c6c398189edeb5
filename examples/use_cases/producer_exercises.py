"""Exercises on batching, compression and partitioners: measured steps, each with its result.

    python examples/use_cases/producer_exercises.py --bootstrap 127.0.0.1:9092

Each step sends records to a topic of its own, then reads how the broker stores them: the number of
batches, their bytes, and the records of each partition.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import headrace
from headrace.protocol.batches import headers

RECORDS = 1_000
LINE = '203.0.113.7 - - [01/Mar/2026:12:01:33] "POST /v1/data/publish/pool HTTP/1.1" 200 {number}'
USERS = 5


class Stored(NamedTuple):
    """The records of a step, as the broker stores them."""

    partitions: tuple[int, ...]
    batches: int
    stored_bytes: int


class Step(NamedTuple):
    """A step with its result."""

    name: str
    stored: Stored


Fill = Callable[[headrace.Producer, str], None]


def lines(count: int = RECORDS) -> Iterator[str]:
    return (LINE.format(number=number) for number in range(count))


def send_all(producer: headrace.Producer, topic: str) -> None:
    """Send the lines without waiting for an outcome."""
    for line in lines():
        producer.send(topic, line)


def send_and_wait(producer: headrace.Producer, topic: str) -> None:
    """Wait for the outcome of each line before the next one."""
    for line in lines(100):
        producer.send(topic, line).result()


def send_with_keys(producer: headrace.Producer, topic: str) -> None:
    """Send 200 lines for each of five users."""
    for number, line in enumerate(lines()):
        producer.send(topic, line, key=f"user-{number % USERS}")


def by_priority(topic: str, key: Any, value: Any, partitions: int) -> int:
    """Reserve the first partition for one user."""
    return 0 if key == "user-0" else 1 + headrace.murmur2(key.encode(), partitions - 1)


def steps(bootstrap: str) -> Iterator[Step]:
    """Run all steps."""
    run = Exercise(bootstrap)
    yield run("wait for each of 100 records", 1, send_and_wait)
    yield run("linger for 5 s", 1, send_all, linger_ms=5_000)
    yield run("batches of 100 records", 1, send_all, linger_ms=5_000, batch_num_messages=100)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        yield run(f"{codec}", 1, send_all, linger_ms=5_000, compression_type=codec)
    for size in (1, 10, 100):
        settings = {"compression_type": "gzip", "batch_num_messages": size}
        yield run(f"gzip, batches of {size}", 1, send_all, linger_ms=5_000, **settings)
    yield run("round robin", 5, send_all, partitioner="roundrobin")
    yield run("by key", 5, send_with_keys)
    yield run("by priority", 5, send_with_keys, partitioner=by_priority)


class Exercise:
    """Runs steps on one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, name: str, partitions: int, fill: Fill, **more: Any) -> Step:
        topic = f"exercise-{uuid4()}"
        partitioner = more.pop("partitioner", None)
        settings = {setting.replace("_", "."): value for setting, value in more.items()}
        with headrace.Admin(self.bootstrap) as admin:
            admin.topics.create([headrace.NewTopic(name=topic, partitions=partitions)])
            with headrace.Producer(
                {"bootstrap.servers": self.bootstrap, **settings}, partitioner=partitioner
            ) as producer:
                # Records that wait for the partitions of a topic may be sent in another batch.
                producer.partitions_of(topic)
                fill(producer, topic)
            return Step(name, self.stored(admin, topic))

    def stored(self, admin: headrace.Admin, topic: str) -> Stored:
        """Read the batches of a topic."""
        with headrace.Consumer(self.bootstrap) as consumer:
            ends = [consumer.bounds(part)[1] for part in consumer.partitions_of(topic)]
        batches = size = 0
        for partition, end in enumerate(ends):
            offset = 0
            while offset < end:
                data = admin.partitions.batches_from(topic, partition, offset, bytes_max=10 << 20)
                for _, batch in headers(data):
                    batches, size = batches + 1, size + batch.size
                    offset = batch.next_offset
        return Stored(tuple(ends), batches, size)


def row(step: Step) -> str:
    """Return the result of a step as a row of a table."""
    stored = step.stored
    counts = " ".join(map(str, stored.partitions))
    return f"{step.name:30}{stored.batches:8}{stored.stored_bytes:9}   {counts}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    print(f"{'step':30}{'batches':>8}{'bytes':>9}   records per partition")
    for step in steps(parser.parse_args().bootstrap):
        print(row(step))


if __name__ == "__main__":
    main()
