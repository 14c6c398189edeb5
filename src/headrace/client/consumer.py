"""A consumer on confluent-kafka's, with lists of records and commits of processed records only.

`poll` returns the fetched records as a list, like Java's, so that Python code runs per list and not
per record. A record counts as processed when the next one is requested. Only then may its offset be
committed, also by the timer of `enable.auto.commit`. librdkafka alone counts a record as processed
when it is returned, and loses the rest of a list when the process dies.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self
from uuid import uuid4

import confluent_kafka
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from headrace.client.chunks import ChunkedRecordTooLarge, Joiner, chunk_of, processed_by
from headrace.client.librdkafka import PASSING, TimedOut, created, exception_for, raised
from headrace.client.librdkafka_log import FoldedLog
from headrace.client.partitioners import InvalidPartition
from headrace.client.progress import Place, ReadProgress, place_of
from headrace.client.properties import InvalidProperty, Properties, split
from headrace.client.rebalancing import Rebalancing, is_cooperative
from headrace.client.serializers import AnyDeserializer, deserialization
from headrace.errors import HeadraceError

_log = logging.getLogger(__name__)

_ITERATION_S = 1.0
_RETRY_S = 0.02
_DEFAULTS: dict[str, Any] = {
    "client.id": "headrace",
    "fetch.queue.backoff.ms": 5,  # The default of a second delays a fast consumer.
}
_STARTS = {
    **dict.fromkeys(("earliest", "smallest", "beginning"), OFFSET_BEGINNING),
    **dict.fromkeys(("latest", "largest", "end"), OFFSET_END),
}
_COMMIT_REFUSED = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,
        KafkaError._FENCED,
    }
)
# Events without a report: ends of partitions, and topics that may still be created.
_QUIET = frozenset({KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART})


class CommitFailed(HeadraceError):
    """The partitions were reassigned to other members, which continue after the last commit."""


class DeserializationFailed(HeadraceError):
    """A record cannot be decoded; `seek` past it to continue. `message` is the record."""

    def __init__(self, text: str, message: Message) -> None:
        super().__init__(text)
        self.message = message


class RebalanceListener:
    """Base class of listeners; each method may use the consumer that it receives."""

    def on_partitions_revoked(
        self, consumer: "Consumer", partitions: Sequence[TopicPartition]
    ) -> None:
        """Called before partitions move to another member: the last chance to commit."""

    def on_partitions_assigned(
        self, consumer: "Consumer", partitions: Sequence[TopicPartition]
    ) -> None:
        """Called after partitions are assigned: the place to `seek` to other offsets."""

    def on_partitions_lost(
        self, consumer: "Consumer", partitions: Sequence[TopicPartition]
    ) -> None:
        """Called after partitions were lost to another member, which may already process them.

        Commits are no longer possible, and caches for the partitions must be dropped.
        """
        self.on_partitions_revoked(consumer, partitions)


class Consumer:
    """Reads records, as a member of a group or alone; close it, or use it in a `with` statement."""

    def __init__(
        self,
        properties: Properties,
        *,
        key_deserializer: AnyDeserializer | None = None,
        value_deserializer: AnyDeserializer | None = None,
    ) -> None:
        given, self._own = split(properties)
        self._has_group = "group.id" in given
        if self._has_group and (not str(given["group.id"]).strip() or "\0" in given["group.id"]):
            # librdkafka ignores such a name, and confluent-kafka then ends the process.
            raise InvalidProperty("group.id must not be blank")
        settings = {**_DEFAULTS, **given, "enable.auto.offset.store": False}
        if not self._has_group:  # librdkafka requires a name, although it is never sent.
            settings |= {"group.id": f"headrace-{uuid4()}", "enable.auto.commit": False}
        settings.setdefault("logger", FoldedLog())
        self._consumer = created(confluent_kafka.Consumer, settings)
        self._auto_commits = str(settings.get("enable.auto.commit", True)).lower() != "false"
        self._reset = str(settings.get("auto.offset.reset", "latest"))
        self._is_cooperative = is_cooperative(settings)
        self._decode = deserialization(key_deserializer, value_deserializer)
        self._rebalancing: Rebalancing | None = None
        self._assigned: dict[Place, int] = {}
        self._progress = ReadProgress()
        self._raw: list[Message] = []
        self._joiner = Joiner(self._own.chunk_memory_bytes, self._own.chunk_timeout_ms)
        self._is_resumed: set[Place] = set()  # Partitions whose commit needs no other look.
        self._missing: set[str] = set()  # Topics with a logged warning.
        self._is_closed = False

    def subscribe(
        self, topics: Sequence[str] | str, listener: RebalanceListener | None = None
    ) -> None:
        """Subscribe to topics as a member of the group; a name that begins with ^ is a regex."""
        if not self._has_group:
            raise InvalidProperty("a subscription needs group.id; without a group use assign")
        called = listener or RebalanceListener()
        self._rebalancing = Rebalancing(
            assigned=partial(called.on_partitions_assigned, self),
            revoked=partial(called.on_partitions_revoked, self),
            lost=partial(called.on_partitions_lost, self),
            forget=self._forget,
            cooperative=self._is_cooperative,
        )
        self._assigned = {}
        names = [topics] if isinstance(topics, str) else list(topics)
        self._missing.clear()
        self._note_topics(names)
        self._consumer.subscribe(
            names,
            on_assign=self._rebalancing.on_assign,
            on_revoke=self._rebalancing.on_revoke,
            on_lost=self._rebalancing.on_lost,
        )

    def assign(self, partitions: Sequence[TopicPartition] | str) -> None:
        """Read partitions from their offsets, if set; a topic name means all of them."""
        if isinstance(partitions, str):
            partitions = self.partitions_of(partitions)
        self._forget(self.assignment())
        partitions = [self._starting(part) for part in partitions]
        self._assigned = {(part.topic, part.partition): part.offset for part in partitions}
        self._is_resumed |= {place for place, offset in self._assigned.items() if offset >= 0}
        self._note_topics({part.topic for part in partitions})
        self._consumer.assign(partitions)

    def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        self._assigned = {}
        self._consumer.unsubscribe()
        self._forget(self.assignment())
        self._consumer.unassign()

    def poll(self, timeout_s: float = 1.0) -> list[Message]:
        """Return up to `max.poll.records` records as soon as possible, or none after the timeout.

        The next call marks the returned records as processed.
        """
        self.fetch(timeout_s)
        return self._progress.hand_out()

    def __iter__(self) -> Iterator[Message]:
        """Yield records without end; requesting the next one marks a record as processed."""
        while True:
            self.fetch(_ITERATION_S)
            yield from self._progress.hand_out_singly()

    def fetch(self, timeout_s: float) -> bool:
        """Fetch records unless some are pending; return whether there are any."""
        if self._progress.settle():
            self._store()
        if not self._progress.has_unread:
            batch = self._whole_records(timeout_s)
            self._progress.keep_unread(
                self._decoded(batch, self._decode) if self._decode else batch
            )
        return self._progress.has_unread

    def hand_out(self) -> list[Message]:
        """Return the pending records."""
        return self._progress.hand_out()

    def hand_out_within(self, bytes_max: int, size_of: Callable[[Message], int]) -> list[Message]:
        """Return pending records up to a size, and at least one if there are any."""
        return self._progress.hand_out_within(bytes_max, size_of)

    def hand_out_singly(self) -> Iterator[Message]:
        """Yield the pending records; requesting the next one marks a record as processed."""
        return self._progress.hand_out_singly()

    def commit(self, offsets: Sequence[TopicPartition] | None = None) -> None:
        """Commit the returned records, or the given offsets, and wait for the result."""
        wanted = self.uncommitted() if offsets is None else list(offsets)
        if not wanted:
            return
        try:
            for outcome in self._consumer.commit(offsets=wanted, asynchronous=False):
                if outcome.error is not None:
                    raise _commit_failure(outcome.error)
        except KafkaException as error:
            raise _commit_failure(error.args[0]) from None
        if offsets is None:
            self.note_commit()

    def commit_async(self, offsets: Sequence[TopicPartition] | None = None) -> None:
        """Commit without waiting; the callback in the property `on_commit` receives the result."""
        wanted = self.uncommitted() if offsets is None else list(offsets)
        if wanted:
            self._consumer.commit(offsets=wanted, asynchronous=True)
            if offsets is None:
                self.note_commit()

    def uncommitted(self) -> list[TopicPartition]:
        """Return the offsets to commit for records returned since the last commit."""
        return self._joiner.commit_points(self._progress.to_commit())

    def note_commit(self) -> None:
        """Mark the returned records as committed, by `commit` or by a transaction."""
        self._progress.note_commit()

    def seek(self, partition: TopicPartition, offset: int | None = None) -> None:
        """Continue at the offset, or the offset of the partition, with the next poll."""
        wanted = partition.offset if offset is None else offset
        place = (partition.topic, partition.partition)
        starts = self._rebalancing.starts if self._rebalancing is not None else None
        if starts is not None:
            starts[place] = wanted
            self._is_resumed.add(place)
            return
        self._drop({place})
        self._is_resumed.add(place)
        self._seek(TopicPartition(*place, wanted))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Continue at the beginning of the given partitions, or of all assigned ones."""
        for partition in self.assignment() if partitions is None else partitions:
            self.seek(partition, OFFSET_BEGINNING)

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Skip all existing records."""
        for partition in self.assignment() if partitions is None else partitions:
            self.seek(partition, OFFSET_END)

    def seek_to_time(
        self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None
    ) -> None:
        """Continue at the first record of a time or later, or at the end."""
        for found in self.offsets_for_time(timestamp_ms, partitions):
            self.seek(found)

    def rewind(self) -> None:
        """Continue after the last commit, as after a failure: later records are returned again."""
        handed = {
            place: self._joiner.hold(place, offset)
            for place, offset in self._progress.first_offsets().items()
        }
        for partition in self.committed(self.assignment()):
            place = (partition.topic, partition.partition)
            if partition.offset >= 0:
                self.seek(partition)
                self._is_resumed.discard(place)
            elif place in handed:
                self.seek(partition, handed[place])
            elif self._reset in ("earliest", "smallest", "beginning"):
                self.seek(partition, OFFSET_BEGINNING)

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset after the last returned record, if any."""
        return self._progress.position((partition.topic, partition.partition))

    def committed(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the group's committed offsets; a negative offset means no commit."""
        if not partitions:
            return []
        try:
            return self._consumer.committed(list(partitions), timeout=self._own.api_timeout_s)
        except KafkaException as error:
            raise raised(error) from None

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are assigned to this consumer."""
        return self._consumer.assignment()

    def pause(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        """Return no records of these partitions, or of all, until they are resumed."""
        self._consumer.pause(self.assignment() if partitions is None else list(partitions))

    def resume(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        self._consumer.resume(self.assignment() if partitions is None else list(partitions))

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset of a partition, and the offset after the last readable record."""
        try:
            found = self._consumer.get_watermark_offsets(partition, timeout=self._own.api_timeout_s)
        except KafkaException as error:
            raise raised(error) from None
        if found is None:
            raise TimedOut(
                f"{partition.topic}-{partition.partition} did not report its offsets in time"
            )
        return found[0], found[1]

    def offsets_for_time(
        self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        """Return the first offset of a time or later in each partition, or its end."""
        asked = self.assignment() if partitions is None else partitions
        wanted = [TopicPartition(part.topic, part.partition, timestamp_ms) for part in asked]
        try:
            return self._consumer.offsets_for_times(wanted, timeout=self._own.api_timeout_s)
        except KafkaException as error:
            raise raised(error) from None

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return all partitions of a topic."""
        try:
            listed = self._consumer.list_topics(topic, timeout=self._own.api_timeout_s)
        except KafkaException as error:
            raise raised(error) from None
        found = listed.topics[topic]
        if found.error is not None:
            raise exception_for(found.error, f"topic {topic!r}")
        return [TopicPartition(topic, index) for index in sorted(found.partitions)]

    def group_metadata(self) -> object:
        """Return the identity of this member for a transaction."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leave the group; with `enable.auto.commit`, commit the returned records."""
        if not self._is_closed:
            self._progress.settle()
            self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            self.close_after_error()

    def close_after_error(self) -> None:
        """Leave the group without committing the records in progress, which are read again."""
        if not self._is_closed:
            self._progress.settle_after_error()
            self._leave()

    def _leave(self) -> None:
        self._store()
        self._is_closed = True
        self._consumer.close()

    def _whole_records(self, timeout_s: float) -> list[Message]:
        """Wait for records; chunks alone do not end the wait."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._receive(timeout_s)
            received, self._raw = self._raw, []
            batch = self._joined(received)
            timeout_s = deadline - time.monotonic()
            if batch or not received or timeout_s <= 0:
                return batch

    def _joined(self, received: list[Message]) -> list[Message]:
        """Join chunks up to a failure; raise it if no record comes before it."""
        if not self._own.chunk_memory_bytes or not self._joiner.has_work(received):
            return received
        now_ms = time.monotonic_ns() // 1_000_000
        batch: list[Message] = []
        for index, message in enumerate(received):
            try:
                self._resume(message)
                whole = self._joiner.join(message, now_ms)
            except HeadraceError as error:
                # A record that is too large is skipped when the caller polls again.
                is_skipped = not batch and isinstance(error, ChunkedRecordTooLarge)
                self._raw = received[index + is_skipped :]
                if batch:
                    break
                raise
            if whole is not None:
                batch.append(whole)
        self._report_dropped()
        return batch

    def _resume(self, message: Message) -> None:
        """Skip the records behind the group's commit that were processed before a restart."""
        place = place_of(message)
        if not self._has_group or place in self._is_resumed:
            return
        chunk = chunk_of(message)
        if chunk is None or chunk.place:
            return
        (found,) = self.committed([TopicPartition(*place)])
        self._is_resumed.add(place)
        processed = processed_by(found.metadata)
        if found.offset == message.offset() and processed is not None:
            self._joiner.skip_processed(place, processed)

    def _report_dropped(self) -> None:
        for (topic, partition), offset, reason in self._joiner.dropped:
            _log.warning(
                "incomplete chunked record dropped",
                extra={"topic": topic, "partition": partition, "offset": offset, "reason": reason},
            )
        self._joiner.dropped.clear()

    def _starting(self, partition: TopicPartition) -> TopicPartition:
        """Give a partition without offset its start, unless a group may have committed one.

        Otherwise librdkafka looks for a commit of the unsent group, and gives up the partition if
        the coordinator of a new cluster is not ready.
        """
        start = _STARTS.get(self._reset.lower())
        if self._has_group or partition.offset != OFFSET_INVALID or start is None:
            return partition
        return TopicPartition(partition.topic, partition.partition, start)

    def _receive(self, timeout_s: float) -> None:
        """Wait for records; passing errors, such as a missing topic, do not end the wait."""
        deadline = time.monotonic() + timeout_s
        left_s = timeout_s
        while self._polled(left_s) and not self._raw:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return

    def _polled(self, timeout_s: float) -> bool:
        """Wait for one message and take further fetched ones; return whether there were any.

        librdkafka's bulk call waits the whole time for a full list, which delays the first record.
        Received messages are kept where `_forget` drops them, because a rebalance between the two
        calls may revoke their partition.
        """
        first = None if self._raw else self._consumer.poll(timeout_s)
        if first is None:
            return bool(self._raw)
        self._raw.append(first)
        if self._own.max_poll_records > 1:
            self._raw += self._consumer.consume(self._own.max_poll_records - 1, 0)
        if any(map(Message.error, self._raw)):
            failed = [one for one in self._raw if one.error() is not None]
            self._raw = [message for message in self._raw if message.error() is None]
            for message in failed:
                self._report(message)
        return True

    def _report(self, message: Message) -> None:
        """Raise the error of a message, or log a passing one."""
        error, topic = message.error(), message.topic()
        assert error is not None
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART and topic not in self._missing:
            self._missing.add(topic or "")
            # Programs without our formatter show the message alone, so it names the topic.
            _log.warning("topic does not exist yet: %s", topic, extra={"topic": topic})
        if not _passes(error):
            raise exception_for(error)

    def _decoded(self, batch: list[Message], decode: Callable[[Message], None]) -> list[Message]:
        """Decode records up to an invalid one; raise its error if it is the first."""
        for index, message in enumerate(batch):
            try:
                decode(message)
            except Exception as error:
                self._raw = batch[index:] + self._raw
                if index:
                    return batch[:index]
                place = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
                raise DeserializationFailed(f"{place}: {error}", message) from error
        return batch

    def _store(self) -> None:
        """Pass the offsets of processed records to librdkafka's commit timer."""
        if not self._auto_commits or not self._progress.uncommitted:
            return
        try:
            self._consumer.store_offsets(
                offsets=self._joiner.commit_points(self._progress.uncommitted)
            )
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:
                raise raised(error) from None
            # The partitions were reassigned, so their offsets are not ours to commit.
        self._progress.uncommitted.clear()

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the state of assigned or revoked partitions."""
        self._drop({(part.topic, part.partition) for part in partitions})

    def _note_topics(self, names: Collection[str]) -> None:
        (first, *others) = names or ("^",)
        self._progress.only_topic = None if others or first.startswith("^") else first

    def _drop(self, places: set[Place]) -> None:
        self._progress.drop(places)
        self._joiner.drop(places)
        self._is_resumed -= places
        self._raw = [one for one in self._raw if one.error() or place_of(one) not in places]

    def _seek(self, target: TopicPartition) -> None:
        """Seek; librdkafka rejects a seek while it looks up the start of a partition."""
        deadline = time.monotonic() + self._own.api_timeout_s
        while True:
            try:
                return self._consumer.seek(target)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE or time.monotonic() > deadline:
                    raise raised(error) from None
            if self._assigned:
                return self._assign_again(target)
            time.sleep(_RETRY_S)

    def _assign_again(self, target: TopicPartition) -> None:
        """Repeat the assignment with another offset for one partition."""
        for known in self._consumer.position(_partitions(self._assigned)):
            if known.offset >= 0:
                self._assigned[known.topic, known.partition] = known.offset
        if (target.topic, target.partition) not in self._assigned:
            raise InvalidPartition(f"{target.topic}-{target.partition} is not assigned")
        self._assigned[target.topic, target.partition] = target.offset
        self._consumer.assign(_partitions(self._assigned))


def _passes(error: KafkaError) -> bool:
    """Return whether reading continues in spite of an error, which may be logged."""
    if error.code() in _QUIET:
        return True
    if error.code() == KafkaError._MAX_POLL_EXCEEDED:
        _log.warning("partitions revoked: %s", error.str(), extra={"error": error.name()})
        return True
    return not error.fatal() and (error.retriable() or error.code() in PASSING)


def _commit_failure(error: KafkaError) -> HeadraceError:
    if error.code() in _COMMIT_REFUSED:
        return CommitFailed(f"this member has lost its partitions: {error.str()}")
    return exception_for(error, "the commit failed")


def _partitions(offsets: Mapping[Place, int]) -> list[TopicPartition]:
    return [TopicPartition(*place, offset) for place, offset in offsets.items()]
