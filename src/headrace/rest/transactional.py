"""Transactions of callers on a pool of transactional producers.

A producer runs one transaction at a time, in its thread. Its `transactional.id` derives from the
proxy's `id`, so that a restarted proxy immediately aborts the open transactions of its last run.
Without an `id` they end by their timeout.
"""

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

import confluent_kafka
import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from headrace.client.async_thread import ClientThread
from headrace.client.librdkafka import created, exception_for
from headrace.client.librdkafka_log import FoldedLog
from headrace.client.loop_producer import OutgoingRecord
from headrace.client.partitioners import JAVA_DEFAULT
from headrace.client.producer_transactions import ProducerTransactions, TransactionAborted
from headrace.client.properties import split
from headrace.errors import HeadraceError
from headrace.http.errors import ClientDisconnected, HttpError, Unavailable
from headrace.rest.errors import RestError, of_client

_DEFAULTS: dict[str, Any] = {
    "allow.auto.create.topics": False,  # Topics are looked up before a transaction.
    "client.id": "headrace-rest",
    "linger.ms": 1,
    "partitioner": JAVA_DEFAULT,
    "queue.buffering.max.kbytes": 1 << 17,
}
_POLL_S = 0.05
_DROPPED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""Errors of the other records of a failed transaction."""
_OUTCOME_UNKNOWN = 50003
_TIMEOUT_MS_MAX = 900_000
"""The brokers' default of transaction.max.timeout.ms."""


class TopicRecord(msgspec.Struct, frozen=True):
    """A record and its topic."""

    topic: str
    record: OutgoingRecord


class GroupOffsets(msgspec.Struct, frozen=True):
    """Offsets of a group to commit in the same transaction."""

    group: str
    offsets: list[TopicPartition]


class Written(msgspec.Struct, frozen=True):
    """The place of a record of a committed transaction."""

    partition: int
    offset: int
    timestamp_ms: int


class TransactionPool:
    """The transactional producers of one identity, created on first use."""

    def __init__(
        self,
        producer: Mapping[str, str],
        consumer: Mapping[str, str],
        *,
        instance: str,
        size: int,
        timeout_s: float,
    ) -> None:
        self._producer = producer
        self._consumer = consumer
        self._prefix = _prefix(instance, producer)
        self._size = size
        self._timeout_s = timeout_s
        self._free: asyncio.Queue[_Member] = asyncio.Queue()
        self._members: list[_Member] = []

    async def run(
        self,
        records: Sequence[TopicRecord],
        offsets: GroupOffsets | None,
        gone: Callable[[], Coroutine[Any, Any, None]],
    ) -> list[Written]:
        """Write all records and offsets, or none; an error names the failed record.

        The transaction is aborted if the caller is `gone` before the commit, as it may retry.
        """
        given_up = threading.Event()
        watch = asyncio.create_task(_watch(gone, given_up))
        try:
            member = await self._take()
            running = member.thread.start(member.run, records, offsets, given_up)
            # The caller may give up; the producer is free only after its transaction.
            running.add_done_callback(lambda _: self._free.put_nowait(member))
            async with asyncio.timeout(3 * self._timeout_s):
                return await asyncio.shield(running)
        except TimeoutError:
            given_up.set()
            raise _unknown("the time limit has passed") from None
        finally:
            watch.cancel()

    async def close(self) -> None:
        for member in self._members:
            member.thread.close()

    async def _take(self) -> "_Member":
        if self._free.empty() and len(self._members) < self._size:
            name = f"{self._prefix}-{len(self._members)}"
            member = _Member(self._producer, self._consumer, name, self._timeout_s)
            self._members.append(member)
            return member
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._free.get()
        except TimeoutError:
            raise Unavailable(
                f"{self._size} transactions are open (transaction.producers.max); try again later"
            ) from None


class _Member:
    """A producer and its thread."""

    def __init__(
        self, producer: Mapping[str, str], consumer: Mapping[str, str], name: str, timeout_s: float
    ) -> None:
        given, _ = split(producer)
        timeout_ms = int(timeout_s * 1000)
        self._settings: dict[str, Any] = {
            **_DEFAULTS,
            "logger": FoldedLog(),
            **given,
            "acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": timeout_ms,
            # A transaction has four steps at most, each within the time limit.
            "transaction.timeout.ms": max(timeout_ms, min(4 * timeout_ms, _TIMEOUT_MS_MAX)),
            "transactional.id": name,
        }
        self._consumer, _ = split(consumer)
        self._timeout_s = timeout_s
        self._producer: confluent_kafka.Producer | None = None
        self._transactions: ProducerTransactions | None = None
        self.thread = ClientThread("headrace-rest-transactions")

    def run(
        self,
        records: Sequence[TopicRecord],
        offsets: GroupOffsets | None,
        given_up: threading.Event,
    ) -> list[Written]:
        """One transaction from begin to end; runs in the thread."""
        producer, transactions = self._begun()
        try:
            written = self._written(producer, records)
            if offsets is not None:
                self._send_offsets(transactions, offsets)
            if given_up.is_set():
                raise ClientDisconnected("nothing was written: the caller has disconnected")
        except HeadraceError:
            self._abort(transactions)
            raise
        self._commit(transactions)
        return written

    def _begun(self) -> tuple[confluent_kafka.Producer, ProducerTransactions]:
        if self._producer is None or self._transactions is None:
            self._producer = created(confluent_kafka.Producer, self._settings)
            self._transactions = ProducerTransactions(self._producer, self._timeout_s)
        try:
            self._transactions.begin()
        except HeadraceError:
            self._forget()
            raise
        return self._producer, self._transactions

    def _written(
        self, producer: confluent_kafka.Producer, records: Sequence[TopicRecord]
    ) -> list[Written]:
        outcomes = Outcomes(len(records))
        for index, one in enumerate(records):
            record = one.record
            try:
                producer.produce(
                    one.topic,
                    record.value,
                    record.key,
                    record.partition,
                    on_delivery=outcomes.callback(index),
                    timestamp=record.timestamp_ms,
                    headers=record.headers,
                )
            except KafkaException as error:
                raise at_record(exception_for(error.args[0]), index, one.topic) from None
            except BufferError as error:
                raise Unavailable(f"the transaction exceeds the buffer: {error}") from None
        deadline = time.monotonic() + self._timeout_s
        while outcomes.left and outcomes.failed is None and time.monotonic() < deadline:
            producer.flush(_POLL_S)
        if outcomes.blamed is not None:
            index, failure = outcomes.blamed
            raise at_record(exception_for(failure), index, records[index].topic)
        if outcomes.left:
            raise RestError(503, 50302, "nothing was written: the brokers did not answer in time")
        return outcomes.written()

    def _send_offsets(self, transactions: ProducerTransactions, offsets: GroupOffsets) -> None:
        member = _OutsideMember(self._consumer, offsets)
        try:
            transactions.send_offsets(member)
        except HeadraceError as error:
            raise of_group(error, offsets.group) from error
        finally:
            member.close()

    def _commit(self, transactions: ProducerTransactions) -> None:
        try:
            transactions.commit()
        except TransactionAborted as error:
            self._abort(transactions)
            raise _refused(of_client(error), str(error)) from error
        except HeadraceError as error:
            self._forget()
            raise _unknown(str(error)) from error

    def _abort(self, transactions: ProducerTransactions) -> None:
        """Abort; replace a failed producer by one whose first step aborts the transaction."""
        transactions.abort()
        if transactions.is_over:
            self._forget()

    def _forget(self) -> None:
        self._producer = self._transactions = None


class _OutsideMember:
    """A committer for a group that is not a member."""

    def __init__(self, properties: Mapping[str, Any], offsets: GroupOffsets) -> None:
        self._offsets = offsets.offsets
        settings = {**properties, "logger": FoldedLog(), "group.id": offsets.group}
        self._consumer = created(confluent_kafka.Consumer, settings)

    def uncommitted(self) -> list[TopicPartition]:
        return self._offsets

    def group_metadata(self) -> object:
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        with suppress(RuntimeError):
            self._consumer.close()


class Outcomes:
    """Collects the outcomes of records."""

    def __init__(self, count: int) -> None:
        self._messages: list[Message | None] = [None] * count
        self.left = count
        self.failed: tuple[int, KafkaError] | None = None
        self._dropped: tuple[int, KafkaError] | None = None

    def callback(self, index: int) -> Any:
        def note(error: KafkaError | None, message: Message) -> None:
            self.left -= 1
            self._messages[index] = message
            if error is None:
                return
            if error.code() in _DROPPED:
                self._dropped = self._dropped or (index, error)
            else:
                self.failed = self.failed or (index, error)

        return note

    @property
    def blamed(self) -> tuple[int, KafkaError] | None:
        """The failed record; records that failed because of it may be reported earlier."""
        return self.failed or self._dropped

    def written(self) -> list[Written]:
        return [
            Written(one.partition() or 0, one.offset() or 0, one.timestamp()[1])
            for one in self._messages
            if one is not None
        ]


def at_record(error: HeadraceError, index: int, topic: str) -> RestError:
    """Add the record to an error; records count from 0."""
    found = of_client(error)
    return _refused(found, f"record {index} for topic {topic!r}: {found}")


def of_group(error: HeadraceError, group: str) -> RestError:
    """Add the group to an error of its offsets."""
    found = of_client(error)
    reason = error.__cause__
    if isinstance(error, TransactionAborted) and isinstance(reason, HeadraceError):
        # Report a caller's error as such, and any other as an aborted transaction.
        known = of_client(reason)
        found = known if known.status < 500 else found
    return _refused(found, f"offsets of group {group!r}: {found}")


async def _watch(gone: Callable[[], Coroutine[Any, Any, None]], given_up: threading.Event) -> None:
    await gone()
    given_up.set()


def _refused(error: HttpError, reason: str) -> RestError:
    code = getattr(error, "code", error.status)
    return RestError(error.status, code, f"nothing was written: {reason}")


def _unknown(reason: str) -> RestError:
    return RestError(
        500,
        _OUTCOME_UNKNOWN,
        f"the outcome of the transaction is unknown: {reason}; check before a retry",
    )


def _prefix(instance: str, properties: Mapping[str, str]) -> str:
    """Return a prefix of transactional ids that differs between identities."""
    name = instance or str(uuid4())
    identity = hashlib.sha256(repr(sorted(properties.items())).encode()).hexdigest()[:12]
    return f"headrace-rest-{name}-{identity}"
