"""Cost per record of `headrace.Producer` and `Consumer` above bare confluent-kafka.

    python -m benchmarks.client [--rounds 5] [--records 200000]

Both do the same with the same broker: keyed records of 100 bytes, each with a word on its outcome,
and the same records read back. CPU seconds of this process, all threads, by turns; the table has
the least of the rounds, as neighbours on the machine only ever add, and the ratio ours to bare. A
run fails when a ratio is above what we promise.
"""

import argparse
import asyncio
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka

import headrace
from benchmarks.report import collect, table
from benchmarks.workloads import Figure
from tests.clients.librdkafka import create_topic
from tests.processes.nodes import Headrace, Node

RATIO_MAX = 1.3
PARTITIONS = 6
VALUE = b"x" * 100
BATCH = 500
RECORDS = 200_000
SETTINGS: dict[str, Any] = {
    "linger.ms": 5,
    "partitioner": "murmur2_random",
    "queue.buffering.max.kbytes": 32 << 10,
    "log_level": 0,
}
READING: dict[str, Any] = {"group.id": "bench", "auto.offset.reset": "earliest", "log_level": 0}
READING |= {"enable.auto.commit": False, "fetch.queue.backoff.ms": 5}

Load = Callable[[str, str, int], None]
Measured = dict[str, dict[tuple[str, str], list[float]]]


def bare_send(address: str, topic: str, count: int) -> None:
    failures: list[Any] = []

    def on_delivery(error: Any, message: Any) -> None:
        if error is not None:
            failures.append((error, message))

    producer = confluent_kafka.Producer({"bootstrap.servers": address, **SETTINGS})
    for number in range(count):
        while True:
            try:
                producer.produce(topic, VALUE, b"%d" % number, on_delivery=on_delivery)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush()
    assert not failures


def our_send(address: str, topic: str, count: int) -> None:
    with headrace.Producer({"bootstrap.servers": address, **SETTINGS}) as producer:
        for number in range(count):
            producer.send(topic, VALUE, b"%d" % number)


def bare_poll(address: str, topic: str, count: int) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, **READING})
    consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    received = size = 0
    while received < count:
        for message in consumer.consume(BATCH, 0.01):
            if message.error() is None:
                size += len(message.value() or b"")
                received += 1
    consumer.close()
    assert size >= count * len(VALUE)


def our_poll(address: str, topic: str, count: int) -> None:
    received = size = 0
    with headrace.Consumer({"bootstrap.servers": address, **READING}) as consumer:
        consumer.assign([headrace.TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
        while received < count:
            for message in consumer.poll(0.01):
                size += len(message.value() or b"")
                received += 1
    assert size >= count * len(VALUE)


def bare_single(address: str, topic: str, count: int) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, **READING})
    consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    received = size = 0
    while received < count:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            size += len(message.value() or b"")
            received += 1
    consumer.close()
    assert size >= count * len(VALUE)


def our_single(address: str, topic: str, count: int) -> None:
    received = size = 0
    with headrace.Consumer({"bootstrap.servers": address, **READING}) as consumer:
        consumer.assign([headrace.TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
        for message in consumer:
            size += len(message.value() or b"")
            received += 1
            if received == count:
                break
    assert size >= count * len(VALUE)


def bare_async(address: str, topic: str, count: int) -> None:
    from confluent_kafka.aio import AIOProducer

    async def run() -> None:
        producer = AIOProducer({"bootstrap.servers": address, **SETTINGS})
        for start in range(0, count, BATCH):
            keys = range(start, min(start + BATCH, count))
            sent = [await producer.produce(topic, value=VALUE, key=b"%d" % key) for key in keys]
            await producer.flush()
            await asyncio.gather(*sent)
        await producer.close()

    asyncio.run(run())


def our_async(address: str, topic: str, count: int) -> None:
    async def run() -> None:
        async with headrace.AsyncProducer({"bootstrap.servers": address, **SETTINGS}) as producer:
            for start in range(0, count, BATCH):
                keys = range(start, min(start + BATCH, count))
                sent = [await producer.send(topic, VALUE, b"%d" % key) for key in keys]
                for delivery in sent:
                    await delivery

    asyncio.run(run())


LOADS: dict[str, tuple[Load, Load]] = {
    "send, with the outcome of each record": (our_send, bare_send),
    "read in batches": (our_poll, bare_poll),
    "read one by one": (our_single, bare_single),
    "asyncio: send 500, await 500": (our_async, bare_async),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=RECORDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        least = measure(Path(directory), arguments.rounds, arguments.records)
    print(table(least))
    return 0 if worst(least) <= RATIO_MAX else 1


def measure(directory: Path, rounds: int, records: int = RECORDS) -> Measured:
    """Both clients by turns, and the least of each; the first round is not counted."""
    measured: Measured = {"headrace": {}, "bare": {}}
    node = Node(Headrace(), directory, {})
    node.start()
    try:
        topic = create_topic(node, partitions=PARTITIONS)
        for number in range(rounds + 1):
            for name, (ours, bare) in LOADS.items():
                for target, load in (("bare", bare), ("headrace", ours)):
                    cost = cpu_per_record(load, node.address, topic, records)
                    if number:
                        collect([Figure(name, "CPU µs per record", cost)], measured[target])
    finally:
        node.stop()
    return {
        target: {figure: [min(values)] for figure, values in figures.items()}
        for target, figures in measured.items()
    }


def cpu_per_record(load: Load, address: str, topic: str, count: int) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    load(address, topic, count)
    after = resource.getrusage(resource.RUSAGE_SELF)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return (user + system) / count * 1e6


def worst(least: Measured) -> float:
    ours, bare = least["headrace"], least["bare"]
    return max(ours[figure][0] / bare[figure][0] for figure in ours)


if __name__ == "__main__":
    sys.exit(main())
