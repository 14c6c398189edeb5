"""The worker processes of `headrace bench`: one per producer and consumer, for isolation.

A worker connects, warms up, reports that it is ready, waits for the start signal, works, and
reports progress. A record begins with its creation time (nanoseconds, 8 bytes), from which a
consumer computes its age. The rest is text that compresses about two to one, as much real data.
"""

import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from headrace.cli.histogram import Histogram
from headrace.cli.load_plan import (
    STAMP_BYTES,
    Done,
    Failed,
    LoadProgress,
    Ready,
    Report,
    WorkerShare,
)
from headrace.client.librdkafka import client_settings
from headrace.client.reader import RecordReader, Start

REPORT_S = 0.25
IN_FLIGHT_BYTES_MAX = 32 << 20
FLUSH_S = 60.0
SILENCE_S = 5.0
"""After the finish signal, a consumer waits this long for missing records."""

_CHUNK_BYTES = 64 << 10
_SAMPLED_PER_S = 10_000


def run_worker(
    work: Callable[[WorkerShare, Connection], None], share: WorkerShare, pipe: Connection
) -> None:
    """Entry point of a worker's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles Ctrl-C.
    try:
        work(share, pipe)
    except (EOFError, BrokenPipeError):
        pass  # The parent has died, so the worker ends.
    except Exception as error:
        _send(pipe, Failed(f"{type(error).__name__}: {error}"))


def produce_load(share: WorkerShare, pipe: Connection) -> None:
    """Send this producer's share at its rate."""
    producer = LoadProducer(share)
    producer.warm_up()
    _send(pipe, Ready())
    pipe.recv()
    started = time.monotonic()
    next_report = started + REPORT_S
    while not producer.is_finished(time.monotonic() - started) and not pipe.poll(0):
        producer.step(time.monotonic() - started)
        now = time.monotonic()
        if now >= next_report:
            next_report = now + REPORT_S
            _send(pipe, LoadProgress(producer.acknowledged, producer.acknowledged * producer.size))
    _send(pipe, producer.finish(started))


class LoadProducer:
    """A paced producer that samples the latency of acknowledgements."""

    def __init__(self, share: WorkerShare) -> None:
        plan = share.plan
        self.size = plan.size_bytes
        self.sent = 0
        self.latencies = Histogram()
        self.errors: Counter[str] = Counter()
        self._topic = plan.topic
        self._partitions = plan.partitions
        self._records = share.records
        self._rate = share.rate
        self._duration_s = plan.duration_s
        self._keys = [b"key-%d" % number for number in range(plan.keys)]
        self._chunk = max(1, min(1_000, _CHUNK_BYTES // max(1, self.size)))
        self._sample_every = max(1, math.ceil((share.rate or 500_000) / _SAMPLED_PER_S))
        self._in_flight_max = max(self._chunk, IN_FLIGHT_BYTES_MAX // max(1, self.size))
        self._text = os.urandom(1 << 19).hex().encode()
        settings = {
            "acks": plan.acks,
            "compression.type": plan.compression,
            "linger.ms": plan.linger_ms,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "message.max.bytes": 1_000_000_000,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 2_097_151,
        }
        self._producer = Producer(client_settings(plan.bootstrap, plan.properties, settings))

    @property
    def acknowledged(self) -> int:
        return max(0, self.sent - len(self._producer))

    def warm_up(self) -> None:
        """Send a record to each partition, so that no measured record waits for a connection."""
        for partition in range(self._partitions):
            self._producer.produce(self._topic, bytes(self.size), partition=partition)
        if self._producer.flush(FLUSH_S):
            raise TimeoutError(f"{self._topic} took no record within {FLUSH_S:.0f} s")

    def is_finished(self, elapsed_s: float) -> bool:
        if self._records is not None and self.sent >= self._records:
            return True
        return self._duration_s is not None and elapsed_s >= self._duration_s

    def step(self, elapsed_s: float) -> None:
        """Send the records that are due, or wait briefly if none are."""
        due = self._due(elapsed_s)
        if due <= 0:
            # Poll for acknowledgements: a latency ends when its callback runs.
            self._producer.poll(min(0.01, max(0.0, self._next_s() - elapsed_s)))
        elif len(self._producer) >= self._in_flight_max:
            self._producer.poll(0.001)
        else:
            self._send(min(due, self._chunk))
            self._producer.poll(0)

    def finish(self, started: float) -> Done:
        """Wait for the last acknowledgements."""
        lost = int(self._producer.flush(FLUSH_S))
        if lost:
            self.errors[f"not acknowledged within {FLUSH_S:.0f} s"] += lost
        done = self.sent - lost
        seconds = time.monotonic() - started
        return Done(done, done * self.size, lost, seconds, self.latencies, dict(self.errors))

    def _due(self, elapsed_s: float) -> int:
        left = self._chunk if self._records is None else self._records - self.sent
        if self._rate is None:
            return left
        return min(left, int(elapsed_s * self._rate) - self.sent)

    def _next_s(self) -> float:
        """Return when the next record is due, on the clock of `step`."""
        return 0.0 if self._rate is None else (self.sent + 1) / self._rate

    def _send(self, count: int) -> None:
        messages = self._messages(count)
        produce_batch = getattr(self._producer, "produce_batch", None)
        if produce_batch is not None:
            produce_batch(self._topic, messages)
        else:
            for message in messages:
                self._producer.produce(self._topic, **message)
        self.sent += count

    def _messages(self, count: int) -> list[dict[str, Any]]:
        stamp = time.time_ns().to_bytes(STAMP_BYTES, "big")[: self.size]
        length = self.size - len(stamp)
        messages: list[dict[str, Any]] = [
            {"value": stamp + self._filling(length)} for _ in range(count)
        ]
        if self._keys:
            for message in messages:
                message["key"] = random.choice(self._keys)
        first = -self.sent % self._sample_every
        for message in messages[first :: self._sample_every]:
            message["callback"] = self._on_delivery
        return messages

    def _filling(self, length: int) -> bytes:
        text = self._text
        if length >= len(text):
            return (text * (length // len(text) + 1))[:length]
        start = int(random.random() * (len(text) - length))
        return text[start : start + length]

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors[error.str()] += 1
        elif (latency_s := message.latency()) is not None:
            self.latencies.add(int(latency_s * 1_000_000))


def consume_load(share: WorkerShare, pipe: Connection) -> None:
    """Read this consumer's partitions to the end, after the parent signals that all is sent."""
    plan = share.plan
    reader = RecordReader(plan.bootstrap, plan.topic, plan.properties)
    reader.assign(Start(from_beginning=not plan.producers), share.partitions)
    # Use another connection: behind a long poll each query would wait for its end.
    meter = RecordReader(plan.bootstrap, plan.topic, plan.properties)
    first = _position(meter, share, at_end=bool(plan.producers))
    _send(pipe, Ready())
    pipe.recv()
    # Skip the records of an older load: they would distort the latencies.
    tally = ReceivedRecords(measures_age=bool(plan.producers))
    expected: int | None = None
    next_report = tally.started + REPORT_S
    while expected is None or tally.records < expected:
        tally.add(reader.read())
        now = time.monotonic()
        if expected is None and pipe.poll(0):
            pipe.recv()
            expected = _position(meter, share, at_end=True) - first
        if expected is not None and now - tally.last > SILENCE_S:
            break
        if now >= next_report:
            next_report = now + REPORT_S
            _send(pipe, LoadProgress(tally.records, tally.size_bytes))
    reader.close()
    meter.close()
    _send(pipe, tally.done(expected or 0))


class ReceivedRecords:
    """Records received by a consumer, and their age at arrival."""

    def __init__(self, *, measures_age: bool) -> None:
        self.records = 0
        self.size_bytes = 0
        self.latencies = Histogram()
        self._measures_age = measures_age
        self.started = self.last = time.monotonic()

    def add(self, messages: list[Message]) -> None:
        if not messages:
            return
        now_ns = time.time_ns()
        self.last = time.monotonic()
        self.records += len(messages)
        self.size_bytes += sum(map(len, messages))
        if not self._measures_age:
            return
        for message in messages[:: max(1, len(messages) // 100)]:
            stamp = (message.value() or b"")[:STAMP_BYTES]
            if len(stamp) == STAMP_BYTES:
                self.latencies.add((now_ns - int.from_bytes(stamp, "big")) // 1000)

    def done(self, expected: int) -> Done:
        missing = max(0, expected - self.records)
        errors = {f"not received within {SILENCE_S:.0f} s": missing} if missing else {}
        seconds = self.last - self.started
        return Done(self.records, self.size_bytes, missing, seconds, self.latencies, errors)


def _position(reader: RecordReader, share: WorkerShare, *, at_end: bool) -> int:
    """Return the sum of the first or the end offsets of a consumer's partitions."""
    return sum(reader.bounds(partition)[at_end] for partition in share.partitions)


def _send(pipe: Connection, report: Report) -> None:
    pipe.send(report)
