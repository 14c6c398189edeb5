"""Readers of one topic, from any offset or time, or as a member of a consumer group.

`RecordReader` assigns partitions to itself and commits nothing, so it does not affect other
consumers. `GroupReader` shares the topic with its group and commits. Both wrap confluent-kafka's
consumer and return lists of its messages.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from headrace.client.cluster import NoSuchTopic
from headrace.client.librdkafka import PASSING, ClientFailure, client_settings, translated

BATCH_RECORDS_MAX = 10_000
POLL_S = 0.1

_DEFAULTS: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "fetch.queue.backoff.ms": 5,  # The default of a second delays a fast reader.
    "queued.max.messages.kbytes": 65_536,
    "fetch.message.max.bytes": 8 << 20,
    "allow.auto.create.topics": False,
    "auto.offset.reset": "earliest",  # Applies only if retention overtakes the reader.
}


class Start(msgspec.Struct, frozen=True):
    """The start of reading: at most one of the three is set; the default is the end."""

    offset: int | None = None
    """An offset; a negative number counts from the end of each partition."""
    timestamp_ms: int | None = None
    """The first record at or after this time."""
    from_beginning: bool = False


class RecordReader:
    """Reads partitions of one topic without end, and reports when all ends were reached."""

    is_member = False
    """Whether the reader uses its group; librdkafka needs the name of one in any case."""

    def __init__(
        self, bootstrap: str, topic: str, properties: Mapping[str, Any], timeout_s: float = 10.0
    ) -> None:
        self.topic = topic
        self._bootstrap = bootstrap
        self._timeout_s = timeout_s
        self._assigned: frozenset[int] = frozenset()
        self._ended: set[int] = set()
        self.outage: str | None = None
        """The reason why no broker answers now; None once one answers again."""
        defaults = {"group.id": f"headrace-reader-{os.getpid()}", **_DEFAULTS}
        with self._translating():
            settings = client_settings(bootstrap, properties, defaults)
            self._consumer = Consumer({"error_cb": self._on_trouble, **settings})

    def partitions(self) -> list[int]:
        """List the partitions of the topic."""
        with self._translating():
            listed = self._consumer.list_topics(self.topic, timeout=self._timeout_s)
        topic = listed.topics[self.topic]
        if topic.error is not None and topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise NoSuchTopic(
                self.topic, self._consumer.list_topics(timeout=self._timeout_s).topics
            )
        if topic.error is not None:
            raise ClientFailure(f"topic {self.topic!r}: {topic.error.str()}")
        return sorted(topic.partitions)

    def assign(self, start: Start, partitions: Sequence[int]) -> None:
        """Start reading partitions."""
        self._assign(self._start_of(start, index) for index in partitions)

    def assign_at(self, offsets: Mapping[int, int]) -> None:
        """Start reading partitions, each at its own offset."""
        self._assign(TopicPartition(self.topic, index, at) for index, at in offsets.items())

    @property
    def is_at_end(self) -> bool:
        """True if every partition was read to its end at least once."""
        return self._ended >= self._assigned

    def read(self, count_max: int = BATCH_RECORDS_MAX, timeout_s: float = POLL_S) -> list[Message]:
        """Return the next records, or none after the timeout.

        Waits for one record and takes further fetched ones: librdkafka's bulk call waits the whole
        time for a full list, which delays the first record.
        """
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        self.outage = None
        messages = [first]
        if count_max > 1:
            messages += self._consumer.consume(count_max - 1, 0)
        if not any(message.error() for message in messages):
            return messages
        return [message for message in messages if self._is_record(message)]

    def commit(self) -> None:
        """Commit the position; does nothing without a group."""

    def close(self) -> None:
        """Disconnect, and leave the group if any."""
        self._consumer.close()

    def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset of a partition, and the offset after its last record."""
        wanted = TopicPartition(self.topic, partition)
        with self._translating():
            found = self._consumer.get_watermark_offsets(wanted, timeout=self._timeout_s)
        if found is None:
            raise ClientFailure(f"{self.topic}-{partition} did not report its offsets in time")
        return found[0], found[1]

    def offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        """Return the offset of the first record at or after a time, if any."""
        found = self._start_at_time(partition, timestamp_ms).offset
        return None if found == OFFSET_END else found

    def _assign(self, starts: Iterable[TopicPartition]) -> None:
        wanted = list(starts)
        with self._translating():
            self._consumer.assign(wanted)
        self._assigned = frozenset(one.partition for one in wanted)
        self._ended.clear()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Translate errors of librdkafka."""
        try:
            yield
        except KafkaException as error:
            raise translated(error, self._bootstrap) from error

    def _start_of(self, start: Start, partition: int) -> TopicPartition:
        if start.from_beginning:
            return TopicPartition(self.topic, partition, OFFSET_BEGINNING)
        if start.timestamp_ms is not None:
            return self._start_at_time(partition, start.timestamp_ms)
        first, end = self.bounds(partition)
        if start.offset is None:
            # Resolved now, not by librdkafka later, so that all records from now on are read.
            return TopicPartition(self.topic, partition, end)
        if start.offset < 0:
            return TopicPartition(self.topic, partition, max(first, end + start.offset))
        if not first <= start.offset <= end:
            raise ClientFailure(
                f"{self.topic}-{partition} has offsets {first} to {end}, not {start.offset}"
            )
        return TopicPartition(self.topic, partition, start.offset)

    def _start_at_time(self, partition: int, timestamp_ms: int) -> TopicPartition:
        wanted = TopicPartition(self.topic, partition, timestamp_ms)
        with self._translating():
            found = self._consumer.offsets_for_times([wanted], timeout=self._timeout_s)[0]
        if found.error is not None:
            raise ClientFailure(f"{self.topic}-{partition}: {found.error.str()}")
        offset = found.offset if found.offset >= 0 else OFFSET_END
        return TopicPartition(self.topic, partition, offset)

    def _on_trouble(self, error: KafkaError) -> None:
        """Keep the reason of an outage; librdkafka itself retries."""
        if error.code() in PASSING:
            self.outage = error.str()

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self._ended.add(message.partition() or 0)
            return False
        if error.retriable() or error.code() in PASSING:
            self._on_trouble(error)
            return False
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED and not self.is_member:
            return False  # librdkafka looks for the coordinator of a group that is not used.
        raise ClientFailure(f"{self.topic}-{message.partition()}: {error.str()} ({error.name()})")


class GroupReader(RecordReader):
    """Reads the partitions that its group assigns, from the group's committed offsets."""

    is_member = True

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        properties: Mapping[str, Any],
        *,
        from_beginning: bool = False,
        timeout_s: float = 10.0,
    ) -> None:
        reset = {"auto.offset.reset": "earliest" if from_beginning else "latest"}
        member = {"group.id": group, "enable.auto.offset.store": True}
        super().__init__(bootstrap, topic, {**reset, **properties, **member}, timeout_s)
        self._is_committed = True

    def join(self) -> None:
        """Join the group."""
        self.partitions()  # Reports a missing topic now instead of waiting for it.
        self._consumer.subscribe([self.topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    @property
    def is_at_end(self) -> bool:
        """True if partitions are assigned, and each was read to its end at least once."""
        return bool(self._assigned) and super().is_at_end

    def read(self, count_max: int = BATCH_RECORDS_MAX, timeout_s: float = POLL_S) -> list[Message]:
        found = super().read(count_max, timeout_s)
        self._is_committed = self._is_committed and not found
        return found

    def commit(self) -> None:
        """Commit all records that were read."""
        if self._is_committed:
            return
        with self._translating():
            self._consumer.commit(asynchronous=False)
        self._is_committed = True

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._assigned = frozenset(one.partition for one in partitions)
        self._ended.clear()

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._assigned -= {one.partition for one in partitions}
