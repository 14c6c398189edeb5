"""A producer on the event loop that many requests share.

librdkafka reports outcomes only to a caller that polls. The loop polls every millisecond while
records are in flight. A polling thread would compete with the loop for the interpreter, once per
record (decision 22).
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import confluent_kafka
import msgspec
from confluent_kafka import KafkaError, KafkaException, Message

from headrace.client.addresses import BrokerUnreachable
from headrace.client.librdkafka import created, exception_for, raised
from headrace.client.librdkafka_log import FoldedLog
from headrace.client.partitioners import JAVA_DEFAULT
from headrace.client.properties import split
from headrace.errors import HeadraceError, InvalidTopicException

POLL_S = 0.001
_KNOWN_FOR_S = 60.0
_TOPICS_KNOWN_MAX = 10_000
_APPEARS_WITHIN_S = 1.5
"""Time limit for the automatic creation of a topic."""
_APPEAR_POLL_S = 0.1
_STOP_S = 5.0
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_OVERHEAD_BYTES = 100
"""Memory of librdkafka per record in addition to key and value."""
_DEFAULTS: dict[str, Any] = {
    # Otherwise a metadata refresh would create a deleted topic again.
    "allow.auto.create.topics": False,
    "client.id": "headrace",
    "enable.idempotence": True,
    "linger.ms": 1,
    "partitioner": JAVA_DEFAULT,
    "queue.buffering.max.kbytes": 1 << 20,  # The sender bounds the waiting bytes.
    "queue.buffering.max.messages": 10_000_000,
}

_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)

Headers = list[tuple[str, str | bytes | None]]
ANY_PARTITION = -1


class BufferFull(HeadraceError):
    """Too many bytes wait for acknowledgement; retry later."""


class TopicMissing(HeadraceError):
    """A topic does not exist and is not created automatically."""


class OutgoingRecord(msgspec.Struct, gc=False):
    """A record as bytes; the producer chooses missing fields."""

    value: bytes | None
    key: bytes | None = None
    partition: int = ANY_PARTITION
    timestamp_ms: int = 0
    headers: Headers | None = None


class WriteCounts:
    """Counts of written and failed records, shared by several senders."""

    __slots__ = ("failures", "records")

    def __init__(self) -> None:
        self.records = 0
        self.failures = 0


class Sent:
    """The outcome of a record, and at the same time librdkafka's callback, so it does little."""

    __slots__ = ("_group", "error", "message")

    def __init__(self, group: "RequestOutcomes") -> None:
        self._group = group
        self.error: KafkaError | None = None
        self.message: Message | None = None

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        self.error = error
        self.message = message
        group = self._group
        group.left -= 1
        if not group.left:
            group.finish()

    @property
    def failure(self) -> HeadraceError | None:
        """The error of a record that was not delivered."""
        return None if self.error is None else exception_for(self.error)

    @property
    def place(self) -> tuple[int, int]:
        """The partition and offset of a delivered record."""
        message = self.message
        assert message is not None, "the record is delivered"
        offset = message.offset()
        # Without acknowledgement (acks=0) the offset is unknown.
        return message.partition() or 0, -1 if offset is None else offset

    @property
    def timestamp_ms(self) -> int:
        assert self.message is not None, "the record is delivered"
        return self.message.timestamp()[1]


class RequestOutcomes:
    """The records of one request, which waits for all outcomes."""

    __slots__ = ("_done", "left")

    def __init__(self, count: int, done: "asyncio.Future[None]") -> None:
        self.left = count
        self._done = done

    def finish(self) -> None:
        if not self._done.done():
            self._done.set_result(None)


class InFlight(NamedTuple):
    """Records in flight, in the order in which they were passed to librdkafka."""

    done: "asyncio.Future[None]"
    sent: list[Sent]

    async def outcomes(self) -> list[Sent]:
        """Wait for all outcomes."""
        await self.done
        return self.sent


class RecordSender:
    """Sends records of one identity, with a time limit on every wait.

    `name_topic` requests metadata of a topic so that brokers with auto-creation create it.
    """

    def __init__(
        self,
        properties: Mapping[str, Any],
        *,
        timeout_s: float,
        buffer_bytes_max: int,
        name_topic: Callable[[str], Awaitable[None]],
        written: WriteCounts | None = None,
    ) -> None:
        given, _ = split(properties)
        self._settings: dict[str, Any] = {
            **_DEFAULTS,
            "logger": FoldedLog(),
            "message.timeout.ms": int(timeout_s * 1000),
            **given,
        }
        if str(self._settings.get("acks", "all")) not in ("all", "-1"):
            self._settings["enable.idempotence"] = given.get("enable.idempotence", False)
        self._timeout_s = timeout_s
        self._name_topic = name_topic
        self._written = written or WriteCounts()
        self._producer = created(confluent_kafka.Producer, self._settings)
        self._topics = _TopicSizes()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._buffer_bytes_max = buffer_bytes_max
        self._waiting_bytes = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def send(self, topic: str, records: Sequence[OutgoingRecord]) -> list[Sent]:
        """Send records and wait for their outcomes, in the order of the records."""
        return await (await self.start(topic, records)).outcomes()

    async def start(self, topic: str, records: Sequence[OutgoingRecord]) -> InFlight:
        """Wait for room and start sending; consecutive calls keep their order."""
        size = sum([len(one.value or b"") + len(one.key or b"") for one in records])
        size += _OVERHEAD_BYTES * len(records)
        await self._make_room(size)
        done: asyncio.Future[None] = self._loop.create_future()
        group = RequestOutcomes(len(records), done)
        sent = [Sent(group) for _ in records]
        self._waiting_bytes += size
        done.add_done_callback(lambda _: self._settle(topic, size, sent))
        try:
            self._produce(topic, records, sent)
        except BaseException:
            done.cancel()
            raise
        if self._timer is None:
            self._timer = self._loop.call_later(POLL_S, self._poll)
        return InFlight(done, sent)

    async def partitions_of(self, topic: str) -> int:
        """Return the number of partitions of a topic, or raise `TopicMissing` soon.

        Brokers with auto-creation create a missing topic, so call this for valid records only.
        """
        known = self._topics.of(topic)
        if known:
            return known
        if not _TOPIC_NAME.fullmatch(topic) or topic in (".", ".."):
            raise InvalidTopicException(
                f"{topic[:80]!r} is not a topic name: up to 249 of a-z, A-Z, 0-9, dot, _ and -"
            )
        count = await asyncio.to_thread(self._read_partitions, topic, 0.0)
        if not count:
            await self._name_topic(topic)
            count = await asyncio.to_thread(self._read_partitions, topic, _APPEARS_WITHIN_S)
        if not count:
            raise TopicMissing(f"topic {topic!r} does not exist")
        self._topics.note(topic, count)
        return count

    def forget(self, topic: str) -> None:
        """Drop the cached size of a topic, which may have grown or been deleted."""
        self._topics.forget(topic)

    async def close(self) -> None:
        """Wait briefly for records in flight; those without an outcome then fail.

        Runs on the loop, where requests wait for the outcomes.
        """
        deadline = self._loop.time() + _STOP_S
        while len(self._producer) and self._loop.time() < deadline:
            self._producer.poll(0)
            await asyncio.sleep(POLL_S)
        if self._timer is not None:
            self._timer.cancel()
        _give_up(self._producer)

    def _produce(self, topic: str, records: Sequence[OutgoingRecord], sent: Sequence[Sent]) -> None:
        """Produce one by one: librdkafka's batches cost the same and have no headers."""
        produce = self._producer.produce
        for record, callback in zip(records, sent, strict=True):
            try:
                # Positional arguments, because keywords cost a third more.
                produce(
                    topic,
                    record.value,
                    record.key,
                    record.partition,
                    callback,
                    None,  # The second name of the callback.
                    record.timestamp_ms,
                    record.headers,
                )
            except KafkaException as error:
                callback(error.args[0], None)
                if error.args[0].fatal() or error.args[0].code() == KafkaError._FATAL:
                    self._renew()
                    produce = self._producer.produce

    def _poll(self) -> None:
        self._producer.poll(0)
        self._timer = self._loop.call_later(POLL_S, self._poll) if len(self._producer) else None

    def _renew(self) -> None:
        """Replace a producer after a fatal error, as it rejects all further records."""
        over, self._producer = self._producer, created(confluent_kafka.Producer, self._settings)
        _give_up(over)

    async def _make_room(self, size: int) -> None:
        """Wait until the bytes fit into the bound; a larger request is sent alone."""
        deadline = self._loop.time() + self._timeout_s
        while self._waiting_bytes and self._waiting_bytes + size > self._buffer_bytes_max:
            left_s = deadline - self._loop.time()
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await asyncio.wait([waiter], timeout=max(0.0, left_s))
            if not waiter.done():
                waiter.cancel()
                raise BufferFull(
                    "too many bytes wait for acknowledgement by the brokers; try again later"
                )

    def _settle(self, topic: str, size: int, sent: Sequence[Sent]) -> None:
        """Account for a request whose records all have an outcome."""
        self._waiting_bytes -= size
        errors = [one.error for one in sent if one.error is not None]
        self._written.records += len(sent) - len(errors)
        self._written.failures += len(errors)
        if any(error.code() in _GONE for error in errors):
            self._topics.forget(topic)
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _read_partitions(self, topic: str, appears_within_s: float) -> int:
        """Read the number of partitions; 0 if the topic does not appear in time."""
        deadline = time.monotonic() + appears_within_s
        while True:
            try:
                found = self._producer.list_topics(topic, timeout=self._timeout_s).topics[topic]
            except KafkaException as error:
                raise BrokerUnreachable(str(raised(error))) from None
            if found.partitions and found.error is None:
                return len(found.partitions)
            if found.error is not None and not _may_appear(found.error):
                raise exception_for(found.error)
            if time.monotonic() >= deadline:
                return 0
            time.sleep(_APPEAR_POLL_S)


def _give_up(producer: confluent_kafka.Producer) -> None:
    """Fail all records in flight."""
    producer.purge()
    producer.poll(0)


def _may_appear(error: KafkaError) -> bool:
    return error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE)


class _TopicSizes:
    """A cache of the number of partitions of topics."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, float]] = {}

    def of(self, topic: str) -> int:
        count, until = self._known.get(topic, (0, 0.0))
        return count if time.monotonic() < until else 0

    def note(self, topic: str, count: int) -> None:
        if len(self._known) >= _TOPICS_KNOWN_MAX:
            self._known.clear()
        self._known[topic] = (count, time.monotonic() + _KNOWN_FOR_S)

    def forget(self, topic: str) -> None:
        self._known.pop(topic, None)
