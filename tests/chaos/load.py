"""The load of a storm: producers, consumers, groups of three protocols; each records its history.

Every client has a thread. An error that clients get during a fault is no anomaly: the client tries
again, or starts again under another name, and the history has an unknown outcome.
"""

import itertools
import logging
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

import headrace
from headrace.errors import HeadraceError
from tests.chaos.checker import unread
from tests.chaos.histories import (
    Commit,
    Delivery,
    End,
    Fetched,
    Histories,
    Outcome,
    Place,
    Seen,
    Session,
    Transaction,
    Value,
    Write,
)

PARTITIONS = 3
PLAIN = "plain"
ATOMIC = "atomic"
SHARE_GROUP = "share"
GROUPS = ("classic", "consumer")

_POLL_S = 0.2
_COMMIT_S = 0.4
_STAY_S = 12.0
_TRANSACTION_S = 20
_LAST_S = 60.0

# The group has not committed: its member is fenced, or must join again.
_NOT_COMMITTED = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.FENCED_INSTANCE_ID,
}

_quiet = logging.getLogger("chaos.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


class Notes:
    """Errors that clients met, by kind, for the report."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: dict[str, int] = {}
        self.broken: list[str] = []
        """Errors that no client should meet, whatever fails."""

    def add(self, text: str) -> None:
        with self._lock:
            self.counts[text] = self.counts.get(text, 0) + 1


class Client(threading.Thread):
    """A thread that works until it is stopped, and begins again after errors."""

    def __init__(self, name: str, load: "Load") -> None:
        super().__init__(name=name, daemon=True)
        self.load = load
        self.histories = load.histories
        self.random = random.Random(f"{load.seed} {name}")
        self.stopping = threading.Event()

    def run(self) -> None:
        for life in itertools.count():
            if self.stopping.is_set():
                return
            try:
                self.live(life)
            except (KafkaException, HeadraceError) as error:
                self.load.notes.add(f"{self.name}.{life}: {_reason(error)}")
                time.sleep(0.2)
            except Exception as error:
                self.load.notes.broken.append(f"{self.name}: {error!r}")
                raise

    def live(self, life: int) -> None:
        """Work until `stopping`; an error ends this life."""
        raise NotImplementedError

    def settings(self, **more: object) -> dict[str, Any]:
        given = {name.replace("_", "."): value for name, value in more.items()}
        return {"bootstrap.servers": self.load.bootstrap, "logger": _quiet, **given}


class PlainProducer(Client):
    """An idempotent producer: numbered records, all in-sync replicas acknowledge them."""

    def live(self, life: int) -> None:
        writer = f"{self.name}.{life}"
        producer = Producer(
            self.settings(enable_idempotence=True, message_timeout_ms=300_000, linger_ms=5)
        )
        for number in itertools.count():
            if self.stopping.is_set():
                break
            write = Write((PLAIN, number % PARTITIONS), Value(writer, number))
            self.histories.writes.append(write)
            send(producer, write)
            producer.poll(1 / self.load.rate)
        left = producer.flush(_LAST_S)
        if left:
            self.load.notes.broken.append(f"{writer}: {left} records never acknowledged")


class AtomicProducer(Client):
    """A transactional producer that commits two of three transactions, and aborts the third."""

    def live(self, life: int) -> None:
        writer = f"{self.name}.{life}"
        producer = Producer(
            self.settings(
                transactional_id=self.name,
                transaction_timeout_ms=_TRANSACTION_S * 1000,
                linger_ms=5,
            )
        )
        until_done(lambda: producer.init_transactions(10))
        numbers = itertools.count()
        for number in itertools.count():
            if self.stopping.is_set():
                return
            end = End.ABORT if number % 3 == 2 else End.COMMIT
            transaction = Transaction(writer, number, end)
            self.histories.transactions.append(transaction)
            producer.begin_transaction()
            try:
                self._fill(producer, transaction, numbers)
                if end is End.COMMIT:
                    until_done(lambda: producer.commit_transaction(10))
                else:
                    until_done(lambda: producer.abort_transaction(10))
                transaction.outcome = Outcome.DONE
            except KafkaException as error:
                failure = error.args[0]
                if not failure.txn_requires_abort():
                    raise
                self.load.notes.add(f"transaction aborted: {failure.name()}")
                until_done(lambda: producer.abort_transaction(10))
                transaction.outcome = Outcome.REFUSED

    def _fill(self, producer: Producer, transaction: Transaction, numbers: Iterator[int]) -> None:
        for number in itertools.islice(numbers, self.random.randint(1, 8)):
            write = Write(
                (ATOMIC, self.random.randrange(PARTITIONS)),
                Value(transaction.writer, number, transaction.number),
            )
            self.histories.writes.append(write)
            send(producer, write)
            producer.poll(1 / self.load.rate)
        if transaction.end is End.ABORT:
            # librdkafka (2.16) gives the numbers of records whose answers it does not await to
            # records of the next transaction. The broker then takes them for repetitions.
            producer.flush(_LAST_S)


class Reader(Client):
    """A consumer without a group that reads everything once."""

    def __init__(self, load: "Load", *, is_committed: bool) -> None:
        isolation = "read_committed" if is_committed else "read_uncommitted"
        super().__init__(isolation, load)
        self.is_committed = is_committed

    def live(self, life: int) -> None:
        consumer = Consumer(
            self.settings(
                group_id="unused",
                enable_auto_commit=False,
                isolation_level=self.name,
                auto_offset_reset="error",
            )
        )
        places = [(topic, index) for topic in (PLAIN, ATOMIC) for index in range(PARTITIONS)]
        sessions = {place: Session(self.name, place, self.is_committed, 0) for place in places}
        self.histories.sessions.extend(sessions.values())
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
        while not self.stopping.is_set():
            for message in consumer.consume(500, _POLL_S):
                error = message.error()
                if error is None:
                    place, seen = observed(message)
                    sessions[place].seen.append(seen)
                elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                    self.load.notes.broken.append(f"{self.name}: {error.str()}")
        consumer.close()


class Member(Client):
    """A member of a group that commits after processing, and leaves now and then."""

    def __init__(self, name: str, load: "Load", group: str) -> None:
        super().__init__(name, load)
        self.group = group
        self.sessions: dict[Place, Session] = {}
        self.committed: dict[Place, int] = {}

    def live(self, life: int) -> None:
        self.sessions, self.committed = {}, {}
        more = {} if self.group == "classic" else {"group_protocol": "consumer"}
        if self.group == "classic":
            more["session_timeout_ms"] = "6000"
        consumer = Consumer(
            self.settings(
                group_id=self.group,
                client_id=self.name,
                enable_auto_commit=False,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                **more,
            )
        )
        consumer.subscribe(
            [PLAIN, ATOMIC],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._lost,
        )
        leaves_at = time.monotonic() + self.random.uniform(0.5, 1.5) * _STAY_S
        commits_at = 0.0
        try:
            while not self.stopping.is_set():
                self._receive(consumer.consume(200, _POLL_S))
                now = time.monotonic()
                if now >= commits_at:
                    commits_at = now + _COMMIT_S
                    self._commit(consumer, list(self.sessions))
                if now >= leaves_at and not self.load.is_draining:
                    break
            self._commit(consumer, list(self.sessions))
        finally:
            consumer.close()

    def _receive(self, messages: list[Message]) -> None:
        for message in messages:
            if message.error() is None:
                place, seen = observed(message)
                session = self.sessions.get(place)
                if session is not None:
                    session.seen.append(seen)

    def _assigned(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        began = time.monotonic()
        try:
            found = consumer.committed(assigned, timeout=5)
        except KafkaException:
            found = assigned  # The consumer itself asks again, for as long as it takes.
        for one in found:
            place = one.topic, one.partition
            start = -1
            if found is not assigned and one.error is None:
                start = max(one.offset, 0)
                self.histories.fetched.append(
                    Fetched(self.group, place, one.offset if one.offset >= 0 else -1, began)
                )
            session = Session(self.name, place, True, start, group=self.group)
            self.sessions[place] = session
            self.histories.sessions.append(session)

    def _revoked(self, consumer: Consumer, revoked: list[TopicPartition]) -> None:
        places = [(one.topic, one.partition) for one in revoked]
        with suppress(KafkaException):
            self._commit(consumer, places)
        self._lost(consumer, revoked)

    def _lost(self, consumer: Consumer, lost: list[TopicPartition]) -> None:
        for one in lost:
            self.sessions.pop((one.topic, one.partition), None)
            self.committed.pop((one.topic, one.partition), None)

    def _commit(self, consumer: Consumer, places: list[Place]) -> None:
        offsets = {
            place: self.sessions[place].seen[-1].offset + 1
            for place in places
            if place in self.sessions and self.sessions[place].seen
        }
        offsets = {
            place: offset
            for place, offset in offsets.items()
            if self.committed.get(place) != offset
        }
        if not offsets:
            return
        began = time.monotonic()
        outcomes = dict.fromkeys(offsets, Outcome.UNKNOWN)
        try:
            asked = [TopicPartition(*place, offset) for place, offset in offsets.items()]
            for one in consumer.commit(offsets=asked, asynchronous=False) or []:
                outcomes[one.topic, one.partition] = _outcome(one.error)
        except KafkaException as error:
            outcomes = dict.fromkeys(offsets, _outcome(error.args[0]))
            self.load.notes.add(f"commit in {self.group}: {_reason(error)}")
        ended = time.monotonic()
        for place, offset in offsets.items():
            outcome = outcomes[place]
            self.histories.commits.append(Commit(self.group, place, offset, began, ended, outcome))
            if outcome is Outcome.DONE:
                self.committed[place] = offset


class ShareMember(Client):
    """A member of a share group that accepts everything."""

    def live(self, life: int) -> None:
        settings = {
            "bootstrap.servers": self.load.bootstrap,
            "group.id": SHARE_GROUP,
            "share.acknowledgement.mode": "explicit",
        }
        with headrace.ShareConsumer(settings) as consumer:
            consumer.subscribe(PLAIN)
            while not self.stopping.is_set():
                self._receive(consumer)

    def _receive(self, consumer: headrace.ShareConsumer) -> None:
        polled = time.monotonic()
        messages = consumer.poll(_POLL_S)
        deliveries = []
        for message in messages:
            place, seen = observed(message)
            deliveries.append(
                Delivery(SHARE_GROUP, self.name, place, seen.offset, seen.value, polled)
            )
        self.histories.deliveries.extend(deliveries)
        for message in messages:
            consumer.accept(message)
        if not messages:
            return
        consumer.commit(20)
        now = time.monotonic()
        for delivery in deliveries:
            delivery.outcome, delivery.accepted = Outcome.DONE, now


class Load:
    """All clients of a storm."""

    def __init__(self, bootstrap: str, seed: int, rate: float) -> None:
        self.bootstrap = bootstrap
        self.seed = seed
        self.rate = rate
        """Records per second of each producer."""
        self.histories = Histories()
        self.notes = Notes()
        self.is_draining = False
        self.producers: list[Client] = [
            *(PlainProducer(f"plain{number}", self) for number in range(2)),
            *(AtomicProducer(f"atomic{number}", self) for number in range(2)),
        ]
        self.consumers: list[Client] = [
            Reader(self, is_committed=False),
            Reader(self, is_committed=True),
            *(Member(f"{group}{number}", self, group) for group in GROUPS for number in range(2)),
            *(ShareMember(f"share{number}", self) for number in range(2)),
        ]

    @property
    def acknowledged(self) -> int:
        return sum(write.outcome is Outcome.DONE for write in list(self.histories.writes))

    def start(self) -> None:
        for client in [*self.consumers, *self.producers]:
            client.start()

    def stop_producers(self) -> None:
        self._stop(self.producers)

    def read(self) -> None:
        """Read all logs to their ends."""
        self.histories.logs = read_logs(self.bootstrap, "read_uncommitted")
        self.histories.committed_logs = read_logs(self.bootstrap, "read_committed")
        self.histories.complete_groups = {group: [PLAIN, ATOMIC] for group in GROUPS}
        self.histories.complete_groups[SHARE_GROUP] = [PLAIN]

    def drain(self, seconds_max: float) -> dict[str, float]:
        """Let the groups reach the ends of the logs; return the time that each one took."""
        self.is_draining = True
        began, drained = time.monotonic(), dict[str, float]()
        while len(drained) < len(self.histories.complete_groups):
            for group in self.histories.complete_groups.keys() - drained.keys():
                if not unread(self.histories, group):
                    drained[group] = time.monotonic() - began
            if time.monotonic() - began > seconds_max:
                break
            time.sleep(0.3)
        return drained

    def stop_consumers(self) -> None:
        self._stop(self.consumers)

    def _stop(self, clients: list[Client]) -> None:
        for client in clients:
            client.stopping.set()
        deadline = time.monotonic() + _LAST_S
        for client in clients:
            client.join(max(0.0, deadline - time.monotonic()))
            if client.is_alive():
                frame = sys._current_frames().get(client.ident or 0)
                where = "".join(traceback.format_stack(frame)[-3:])
                self.notes.broken.append(f"{client.name} did not stop in {_LAST_S:g} s:\n{where}")


class ReadFailed(HeadraceError):
    """A partition could not be read to its end: it has no leader, or an open transaction."""


def read_logs(bootstrap: str, isolation: str) -> dict[Place, list[Seen]]:
    """Read all partitions from their start to their end."""
    logs: dict[Place, list[Seen]] = {}
    for place in [(topic, index) for topic in (PLAIN, ATOMIC) for index in range(PARTITIONS)]:
        logs[place] = list(_read_log(bootstrap, isolation, place))
    return logs


def _read_log(bootstrap: str, isolation: str, place: Place) -> Iterator[Seen]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "logger": _quiet,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
        }
    )
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(*place), timeout=_LAST_S)
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING)])
        deadline = time.monotonic() + _LAST_S
        while True:
            messages = consumer.consume(1000, 0.2)
            for message in messages:
                error = message.error()
                if error is None:
                    yield observed(message)[1]
                elif error.code() == KafkaError._PARTITION_EOF and (message.offset() or 0) >= end:
                    return
            if time.monotonic() > deadline:
                raise ReadFailed(f"{place[0]}-{place[1]} is not read to {end} by {isolation}")
    finally:
        consumer.close()


def send(producer: Producer, write: Write) -> None:
    """Send one record, and note its acknowledgement."""
    topic, index = write.place
    while True:
        try:
            producer.produce(
                topic, write.value.encode(), partition=index, on_delivery=partial(_noted, write)
            )
            return
        except BufferError:
            producer.poll(0.1)


def _noted(write: Write, error: KafkaError | None, message: Message) -> None:
    if error is None:
        write.outcome, write.offset = Outcome.DONE, message.offset()
        write.acknowledged = time.monotonic()


def until_done(call: Callable[[], object]) -> None:
    """Repeat a call of a transactional producer while its error is retriable."""
    deadline = time.monotonic() + 120
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise


def observed(message: Message) -> tuple[Place, Seen]:
    topic, index, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert index is not None
    assert offset is not None
    return (topic, index), Seen(offset, Value.decode(message.value()))


def _outcome(error: KafkaError | None) -> Outcome:
    if error is None:
        return Outcome.DONE
    return Outcome.REFUSED if error.code() in _NOT_COMMITTED else Outcome.UNKNOWN


def _reason(error: Exception) -> str:
    first = error.args[0] if error.args else error
    if isinstance(first, KafkaError):
        fatal = "fatal " if first.fatal() else ""
        return f"{fatal}{first.name()}: {first.str()}"
    return f"{type(error).__name__}: {error}"
