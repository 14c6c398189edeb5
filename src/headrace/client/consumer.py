"""Records out of any topics of any Kafka: confluent-kafka's consumer, and what it lacks.

`poll` hands out what is there in lists, as Java's does, so that Python code runs per list and not
per record. A record counts as processed when the next is asked for: only then may its offset be
committed, by the timer of `enable.auto.commit` too. librdkafka alone would count a record as
processed when it is handed out, and lose the rest of a list when the process dies.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import confluent_kafka
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from headrace.client.librdkafka import PASSING, TimedOut, created, exception_for, raised
from headrace.client.librdkafka_log import FoldedLog
from headrace.client.partitioners import InvalidPartition
from headrace.client.progress import Place, Progress, place_of
from headrace.client.properties import InvalidProperty, Properties, split
from headrace.client.rebalancing import RebalanceListener, Rebalancing, is_cooperative
from headrace.client.serializers import AnyDeserializer, deserialization
from headrace.errors import HeadraceError

logger = logging.getLogger(__name__)

_ITERATION_S = 1.0
_RETRY_S = 0.02
_DEFAULTS: dict[str, Any] = {
    "client.id": "headrace",
    "fetch.queue.backoff.ms": 5,  # The default of a second makes a fast consumer wait for nothing.
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
# What poll says nothing of: ends of partitions, and topics that may still come.
_QUIET = frozenset({KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART})


class CommitFailed(HeadraceError):
    """The group has given this member's partitions to others; they read on from the last commit."""


class DeserializationFailed(HeadraceError):
    """A record cannot be read; `seek` past it to go on. `message` is the record."""

    def __init__(self, text: str, message: Message) -> None:
        super().__init__(text)
        self.message = message


class Consumer:
    """Reads records, as a member of a group or alone; close it, or use it in a `with`."""

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
            # librdkafka would take it for none, and confluent-kafka ends the process then.
            raise InvalidProperty("group.id must be a name of more than blanks")
        settings = {**_DEFAULTS, **given, "enable.auto.offset.store": False}
        if not self._has_group:  # librdkafka wants a name, even if no broker ever hears it.
            settings |= {"group.id": f"headrace-{uuid4()}", "enable.auto.commit": False}
        settings.setdefault("logger", FoldedLog())
        self._consumer = created(confluent_kafka.Consumer, settings)
        self._auto_commits = str(settings.get("enable.auto.commit", True)).lower() != "false"
        self._reset = str(settings.get("auto.offset.reset", "latest"))
        self._is_cooperative = is_cooperative(settings)
        self._decode = deserialization(key_deserializer, value_deserializer)
        self._rebalancing: Rebalancing | None = None
        self._assigned: dict[Place, int] = {}
        self._progress = Progress()
        self._raw: list[Message] = []
        self._missing: set[str] = set()  # Topics that somebody was warned of.
        self._is_closed = False

    def subscribe(
        self, topics: Sequence[str] | str, listener: RebalanceListener | None = None
    ) -> None:
        """Share topics with the group's other members; a name that begins with ^ is a regex."""
        if not self._has_group:
            raise InvalidProperty("a subscription needs group.id; without a group use assign")
        self._rebalancing = Rebalancing(
            self, listener or RebalanceListener(), self._forget, cooperative=self._is_cooperative
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
        """Read these partitions, each from its offset if it has one; a topic's name means all."""
        if isinstance(partitions, str):
            partitions = self.partitions_of(partitions)
        self._forget(self.assignment())
        self._assigned = {(part.topic, part.partition): part.offset for part in partitions}
        self._note_topics({part.topic for part in partitions})
        self._consumer.assign(list(partitions))

    def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        self._assigned = {}
        self._consumer.unsubscribe()
        self._forget(self.assignment())
        self._consumer.unassign()

    def poll(self, timeout_s: float = 1.0) -> list[Message]:
        """The next records as soon as there are any, or none when the time is up.

        Up to `max.poll.records`. Asking again says that those of the last time are processed.
        """
        self.fetch(timeout_s)
        return self._progress.hand_out()

    def __iter__(self) -> Iterator[Message]:
        """Records without end, one by one; each is processed when the next is asked for."""
        while True:
            self.fetch(_ITERATION_S)
            yield from self._progress.hand_out_singly()

    def fetch(self, timeout_s: float) -> bool:
        """Let records lie ready; whether there are any. `poll` is this, and `hand_out`."""
        if self._progress.settle():
            self._store()
        if not self._progress.has_unread:
            self._receive(timeout_s)
            batch, self._raw = self._raw, []
            self._progress.keep_unread(
                self._decoded(batch, self._decode) if self._decode else batch
            )
        return self._progress.has_unread

    def hand_out(self) -> list[Message]:
        """The records that lie ready."""
        return self._progress.hand_out()

    def hand_out_within(self, bytes_max: int, size_of: Callable[[Message], int]) -> list[Message]:
        """As many of the records that lie ready as fit, at least one if there is any."""
        return self._progress.hand_out_within(bytes_max, size_of)

    def hand_out_singly(self) -> Iterator[Message]:
        """The records that lie ready, each processed when the next is asked for."""
        return self._progress.hand_out_singly()

    def commit(self, offsets: Sequence[TopicPartition] | None = None) -> None:
        """Commit what was handed out, or these offsets, and wait until the group has them."""
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
        """Commit without waiting; the property `on_commit` is a function that hears how it went."""
        wanted = self.uncommitted() if offsets is None else list(offsets)
        if wanted:
            self._consumer.commit(offsets=wanted, asynchronous=True)
            if offsets is None:
                self.note_commit()

    def uncommitted(self) -> list[TopicPartition]:
        """The offsets to commit for what was handed out since the last commit."""
        return _partitions(self._progress.to_commit())

    def note_commit(self) -> None:
        """What was handed out so far is committed, by `commit` or by a transaction."""
        self._progress.note_commit()

    def seek(self, partition: TopicPartition, offset: int | None = None) -> None:
        """Go on at an offset, of the partition itself or beside it, with the next poll."""
        wanted = partition.offset if offset is None else offset
        place = (partition.topic, partition.partition)
        starts = self._rebalancing.starts if self._rebalancing is not None else None
        if starts is not None:
            starts[place] = wanted
            return
        self._drop({place})
        self._seek(TopicPartition(*place, wanted))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Read what there is once more, in these partitions or in all that are assigned."""
        for partition in self.assignment() if partitions is None else partitions:
            self.seek(partition, OFFSET_BEGINNING)

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Skip to what is written from now on."""
        for partition in self.assignment() if partitions is None else partitions:
            self.seek(partition, OFFSET_END)

    def seek_to_time(
        self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None
    ) -> None:
        """Go to the first record of this time or later, or to the end where there is none."""
        for found in self.offsets_for_time(timestamp_ms, partitions):
            self.seek(found)

    def rewind(self) -> None:
        """Go back to what is committed, as after a failure: the rest is handed out again."""
        handed = self._progress.first_offsets()
        for partition in self.committed(self.assignment()):
            place = (partition.topic, partition.partition)
            if partition.offset >= 0:
                self.seek(partition)
            elif place in handed:
                self.seek(partition, handed[place])
            elif self._reset in ("earliest", "smallest", "beginning"):
                self.seek(partition, OFFSET_BEGINNING)

    def position(self, partition: TopicPartition) -> int | None:
        """The offset that is handed out next, once something was."""
        return self._progress.position((partition.topic, partition.partition))

    def committed(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """The group's committed offsets; a negative one means that there is none."""
        if not partitions:
            return []
        try:
            return self._consumer.committed(list(partitions), timeout=self._own.api_timeout_s)
        except KafkaException as error:
            raise raised(error) from None

    def assignment(self) -> list[TopicPartition]:
        """The partitions that this consumer reads now."""
        return self._consumer.assignment()

    def pause(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        """Hand out nothing of these partitions, or of all, until they are resumed."""
        self._consumer.pause(self.assignment() if partitions is None else list(partitions))

    def resume(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        self._consumer.resume(self.assignment() if partitions is None else list(partitions))

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """A partition's first offset, and the one after the last that may be read."""
        try:
            found = self._consumer.get_watermark_offsets(partition, timeout=self._own.api_timeout_s)
        except KafkaException as error:
            raise raised(error) from None
        if found is None:
            raise TimedOut(f"{partition.topic}-{partition.partition} did not tell its offsets")
        return found[0], found[1]

    def offsets_for_time(
        self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        """The first offset of this time or later in each partition, or its end."""
        asked = self.assignment() if partitions is None else partitions
        wanted = [TopicPartition(part.topic, part.partition, timestamp_ms) for part in asked]
        try:
            return self._consumer.offsets_for_times(wanted, timeout=self._own.api_timeout_s)
        except KafkaException as error:
            raise raised(error) from None

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """All partitions of a topic."""
        try:
            listed = self._consumer.list_topics(topic, timeout=self._own.api_timeout_s)
        except KafkaException as error:
            raise raised(error) from None
        found = listed.topics[topic]
        if found.error is not None:
            raise exception_for(found.error, f"topic {topic!r}")
        return [TopicPartition(topic, index) for index in sorted(found.partitions)]

    def group_metadata(self) -> object:
        """Who this member is, for the coordinator of a transaction."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leave the group; with `enable.auto.commit` what was handed out is committed."""
        if not self._is_closed:
            self._progress.settle()
            self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.close_after_error()

    def close_after_error(self) -> None:
        """Leave the group; what was being worked on is not committed and will be read again."""
        if not self._is_closed:
            self._progress.settle_after_error()
            self._leave()

    def _leave(self) -> None:
        self._store()
        self._is_closed = True
        self._consumer.close()

    def _receive(self, timeout_s: float) -> None:
        """Wait for records; news that pass, such as of a topic that is missing, end no wait."""
        deadline = time.monotonic() + timeout_s
        left_s = timeout_s
        while self._heard(left_s) and not self._raw:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return

    def _heard(self, timeout_s: float) -> bool:
        """Wait for one message and take what is there besides; whether there was any.

        librdkafka's own bulk call would wait the whole time for a full list, and so add to the
        age of the first record. What is received lies where `_forget` finds it, as a rebalance
        between the two calls may take its partition away.
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
                self._look_at(message)
        return True

    def _look_at(self, message: Message) -> None:
        """Raise an error, unless it passes; a topic that is missing may still come."""
        error, topic = message.error(), message.topic()
        assert error is not None
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART and topic not in self._missing:
            self._missing.add(topic or "")
            logger.warning("topic %s does not exist; reading begins when it is made", topic)
        if not _passes(error):
            raise exception_for(error)

    def _decoded(self, batch: list[Message], decode: Callable[[Message], None]) -> list[Message]:
        """The records up to one that cannot be read, which is told when it is the first."""
        for index, message in enumerate(batch):
            try:
                decode(message)
            except Exception as error:
                self._raw = batch[index:]
                if index:
                    return batch[:index]
                place = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
                raise DeserializationFailed(f"{place}: {error}", message) from error
        return batch

    def _store(self) -> None:
        """Tell librdkafka's timer what it may commit."""
        if not self._auto_commits or not self._progress.uncommitted:
            return
        try:
            self._consumer.store_offsets(offsets=_partitions(self._progress.uncommitted))
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:
                raise raised(error) from None
            # The partitions have gone to another member, and their offsets with them.
        self._progress.uncommitted.clear()

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions have come or gone: nothing that was known of them holds any more."""
        self._drop({(part.topic, part.partition) for part in partitions})

    def _note_topics(self, names: Collection[str]) -> None:
        (first, *others) = names or ("^",)
        self._progress.only_topic = None if others or first.startswith("^") else first

    def _drop(self, places: set[Place]) -> None:
        self._progress.drop(places)
        self._raw = [one for one in self._raw if one.error() or place_of(one) not in places]

    def _seek(self, target: TopicPartition) -> None:
        """librdkafka refuses a seek while it still finds out where to start a partition."""
        deadline = time.monotonic() + self._own.api_timeout_s
        while True:
            try:
                return self._consumer.seek(target)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE or time.monotonic() > deadline:
                    raise raised(error) from None
            if self._assigned:
                return self._assign_anew(target)
            time.sleep(_RETRY_S)

    def _assign_anew(self, target: TopicPartition) -> None:
        """Start partitions that we assigned ourselves once more, one of them elsewhere."""
        for known in self._consumer.position(_partitions(self._assigned)):
            if known.offset >= 0:
                self._assigned[known.topic, known.partition] = known.offset
        if (target.topic, target.partition) not in self._assigned:
            raise InvalidPartition(f"{target.topic}-{target.partition} is not assigned")
        self._assigned[target.topic, target.partition] = target.offset
        self._consumer.assign(_partitions(self._assigned))


def _passes(error: KafkaError) -> bool:
    """Whether reading goes on by itself, if need be after a warning."""
    if error.code() in _QUIET:
        return True
    if error.code() == KafkaError._MAX_POLL_EXCEEDED:
        logger.warning("%s; the group has taken the partitions away", error.str())
        return True
    return not error.fatal() and (error.retriable() or error.code() in PASSING)


def _commit_failure(error: KafkaError) -> HeadraceError:
    if error.code() in _COMMIT_REFUSED:
        return CommitFailed(f"the group has moved on without this member: {error.str()}")
    return exception_for(error, "the commit failed")


def _partitions(offsets: Mapping[Place, int]) -> list[TopicPartition]:
    return [TopicPartition(*place, offset) for place, offset in offsets.items()]
